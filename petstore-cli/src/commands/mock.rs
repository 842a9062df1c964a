//! `petstore mock`: the mock's command line.

use std::future::pending;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use futures_util::StreamExt as _;
use petstore_mock::cli::{Io, MockArgs};

use crate::env::{Signals, System};
use crate::error::{CliError, Result};
use crate::output::Printer;
use crate::ui::Ui;

/// The mock's arguments.
#[derive(Debug)]
pub(crate) struct Mock {
    args: MockArgs,
}

impl Args for Mock {
    /// Adds no options. The mock has nearly as many as all other commands together, so they are
    /// added when the command is used.
    fn augment_args(command: Command) -> Command {
        let about = "Run a mock server, like `petstore-mock`";
        // The mock's own long text is for those who embed it.
        command.about(about).long_about(None)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Mock {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let args = MockArgs::from_arg_matches(matches)?;
        Ok(Self { args })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.args.update_from_arg_matches(matches)
    }
}

impl Mock {
    /// Adds the options to the command.
    pub(crate) fn with_options(command: Command) -> Command {
        Self::augment_args(MockArgs::augment_args(command))
    }

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
