//! `petstore man`: the manual pages.

use std::io;
use std::path::Path;

use clap::Command;

use crate::error::{CliError, Kind, Result};
use crate::output::Printer;

/// Prints the page of all commands, or writes a page for each command into a folder.
pub(crate) fn run(folder: Option<&Path>, printer: &Printer, tree: Command) -> Result<()> {
    let Some(folder) = folder else {
        let page = clap_mangen::Man::new(tree.disable_help_subcommand(true));
        return Ok(page.render(&mut printer.stdout())?);
    };
    write(tree, folder).map_err(|problem| {
        let action = format!("cannot write to {}", folder.display());
        CliError::io(Kind::Internal, action, &problem)
    })
}

fn write(tree: Command, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(tree, folder)
}
