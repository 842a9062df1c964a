//! `petstore config path`.

use serde_json::json;

use crate::config::Config;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Shows where the configuration file is, or would be
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore config path")]
pub(crate) struct Path {}

impl Path {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let output = context.output(None)?;
        match Config::path(&context.env.dirs) {
            Some(path) => output.document(&json!(path.display().to_string())).await,
            None => Err(CliError::new(Exit::Config, "there is no folder for the configuration")
                .hint("set HOME or XDG_CONFIG_HOME")),
        }
    }
}
