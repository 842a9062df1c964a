//! `petstore mock`: the mock's own command line.

use petstore_mock::cli::{Io, MockArgs};

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Runs the mock server
///
/// It implements the whole service, quotas and bans included. The same as the program
/// `petstore-mock`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore mock exec -- petstore pets list
  petstore mock openapi --format json")]
pub(crate) struct Mock {
    #[command(flatten)]
    args: MockArgs,
}

impl Mock {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let token = context.env.var("PETSTORE_MOCK_ADMIN_TOKEN").map(str::to_owned);
        let mut err = context.report.clone();
        let trusted = context.env.vars.get("SSL_CERT_FILE").map(Into::into);
        let io = Io { out: context.stdout(), err: &mut err, admin_token: token, trusted };
        match self.args.run(io).await {
            0 => Ok(()),
            // It has said why.
            code => Err(CliError::new(Exit::Other(code), "")),
        }
    }
}
