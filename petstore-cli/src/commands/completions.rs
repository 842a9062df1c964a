//! `petstore completions`.

use clap_complete::Shell;

use crate::context::Context;
use crate::error::CliError;

/// Writes the completions of a shell
///
/// They know all commands, flags and formats, and send nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore completions bash > petstore.bash
  petstore completions zsh > _petstore
  petstore completions fish > petstore.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, context: &mut Context) -> Result<(), CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut context.tree(), "petstore", &mut script);
        Ok(context.stdout().write_all(&script)?)
    }
}
