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
        let mut tree = tree.disable_help_subcommand(true);
        tree.build();
        let Some(folder) = self.folder else {
            page(&tree).render(&mut printer.stdout())?;
            return Ok(());
        };
        match write(&tree, &folder) {
            Ok(()) => Ok(()),
            Err(problem) => {
                let action = format!("cannot write to {}", folder.display());
                Err(CliError::io(Kind::Internal, action, &problem))
            }
        }
    }
}

/// Writes the pages of a command and of those below it.
fn write(command: &Command, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for inner in command.get_subcommands() {
        if !inner.is_hide_set() {
            write(inner, folder)?;
        }
    }
    page(command).generate_to(folder)?;
    Ok(())
}

fn page(command: &Command) -> clap_mangen::Man {
    clap_mangen::Man::new(command.clone()).source(concat!("petstore ", env!("CARGO_PKG_VERSION")))
}
