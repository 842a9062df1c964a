//! `petstore man`: the manual pages.

use std::io;
use std::path::Path;

use clap::Command;

use crate::context::Context;
use crate::error::{CliError, Kind, Result};

/// Prints the page of all commands, or writes a page for each command into a folder.
pub(crate) fn run(folder: Option<&Path>, context: &Context, tree: Command) -> Result<()> {
    let Some(folder) = folder else {
        let page = clap_mangen::Man::new(tree.disable_help_subcommand(true));
        return Ok(page.render(&mut context.printer().stdout())?);
    };
    let shown = context.system().shown(folder);
    match write(tree, folder) {
        Ok(()) => {
            let text = format!("wrote a manual page for each command into {shown}");
            context.ui().note(&text);
            Ok(())
        }
        Err(problem) => {
            let action = format!("cannot write to {shown}");
            Err(CliError::io(Kind::Internal, action, &problem))
        }
    }
}

fn write(tree: Command, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(tree, folder)
}
