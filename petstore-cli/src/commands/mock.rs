//! `petstore mock`: the mock's command line.

use std::future::pending;

use futures_util::StreamExt as _;
use petstore_mock::cli::{Io, MockArgs};

use crate::env::{Signals, System};
use crate::error::{CliError, Result};
use crate::output::Printer;
use crate::ui::Ui;

/// Run a mock server, like `petstore-mock`.
#[derive(Debug, clap::Args)]
pub(crate) struct Mock {
    #[command(flatten)]
    args: MockArgs,
}

impl Mock {
    pub(crate) async fn run(
        self,
        system: &System,
        mut signals: Signals,
        printer: &Printer,
        ui: &Ui,
    ) -> Result<()> {
        // The mock handles the process's signals. They must be received here too, or the process
        // would be ended.
        let discard = async {
            while signals.next().await.is_some() {}
            pending::<u8>().await
        };
        let mut out = printer.stdout();
        let mut err = ui.clone();
        let io = Io {
            out: &mut out,
            err: &mut err,
            is_terminal: printer.screen().is_terminal(),
            is_verbose: ui.verbosity() > 0,
            variable: &|name| system.raw_var(name).cloned(),
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
