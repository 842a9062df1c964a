//! `petstore man`.

use std::path::PathBuf;

use clap_mangen::Man as Page;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Writes the manual pages
///
/// The first page to standard output; or all of them, one for each command, into a folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore man > petstore.1
  petstore man man1")]
pub(crate) struct Man {
    /// The folder, which is made where there is none
    folder: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, context: &mut Context) -> Result<(), CliError> {
        let mut tree = context.tree();
        let Some(folder) = self.folder else {
            let mut page = Vec::new();
            Page::new(tree).render(&mut page)?;
            return Ok(context.stdout().write_all(&page)?);
        };
        tree.build();
        let write = || {
            std::fs::create_dir_all(&folder)?;
            clap_mangen::generate_to(tree, &folder)
        };
        write().map_err(|problem| {
            let folder = folder.display();
            CliError::new(Exit::Internal, format!("could not write to {folder}: {problem}"))
        })
    }
}
