//! `petstore man`: the manual pages.

use std::io;
use std::path::{Path, PathBuf};

use clap::Command;

use crate::error::{CliError, Kind, Result};
use crate::output::Printer;

/// Write the manual pages.
#[derive(Debug, clap::Args)]
#[command(after_long_help = examples!("petstore man > petstore.1", "petstore man man1"))]
pub(crate) struct Man {
    /// Write a page for each command into this folder
    #[arg(value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, printer: &Printer, tree: Command) -> Result<()> {
        match &self.folder {
            Some(folder) => write(tree, folder).map_err(|problem| {
                let action = format!("cannot write to {}", folder.display());
                CliError::io(Kind::Internal, action, &problem)
            }),
            None => {
                let page = clap_mangen::Man::new(tree.disable_help_subcommand(true));
                Ok(page.render(&mut printer.stdout())?)
            }
        }
    }
}

fn write(tree: Command, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(tree, folder)
}
