//! `petstore mock`: the mock's command line.

use petstore_mock::cli::{Io, MockArgs};

use crate::context::Context;
use crate::error::CliError;

/// Run a mock server, like `petstore-mock`.
#[derive(Debug, clap::Args)]
pub(crate) struct Mock {
    #[command(flatten)]
    args: MockArgs,
}

impl Mock {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let admin_token = context.env.var("PETSTORE_MOCK_ADMIN_TOKEN").map(str::to_owned);
        let trusted = context.env.vars.get("SSL_CERT_FILE").map(Into::into);
        let mut err = context.ui.clone();
        let io = Io { out: &mut context.stdout, err: &mut err, admin_token, trusted };
        match self.args.run(io).await {
            0 => Ok(()),
            // The mock has already printed the reason.
            code => Err(CliError::Silent(code)),
        }
    }
}
