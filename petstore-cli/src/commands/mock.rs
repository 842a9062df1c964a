//! `petstore mock`: the mock's command line.

use std::future::pending;

use futures_util::StreamExt as _;
use petstore_mock::cli::{Io, MockArgs};

use crate::context::Context;
use crate::env::Signals;
use crate::error::CliError;

/// Run a mock server, like `petstore-mock`.
#[derive(Debug, clap::Args)]
pub(crate) struct Mock {
    #[command(flatten)]
    args: MockArgs,
}

impl Mock {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let admin_token = context
            .env
            .var("PETSTORE_MOCK_ADMIN_TOKEN")
            .map(str::to_owned);
        let trusted = context.env.vars.get("SSL_CERT_FILE").map(Into::into);
        // The mock handles the process's signals. The process ends if nobody receives them here too.
        let none: Signals = Box::pin(futures_util::stream::pending());
        let mut signals = std::mem::replace(&mut context.env.signals, none);
        let discard = async {
            while signals.next().await.is_some() {}
            pending::<u8>().await
        };
        let mut err = context.ui.clone();
        let io = Io {
            out: &mut context.stdout,
            err: &mut err,
            admin_token,
            trusted,
        };
        let code = tokio::select! {
            code = self.args.run(io) => code,
            code = discard => code,
        };
        match code {
            0 => Ok(()),
            // The mock has already printed the reason.
            code => Err(CliError::Silent(code)),
        }
    }
}
