//! The `petstore` command line as a library. [`run`] is the whole program. It gets arguments,
//! variables and streams as an [`Env`], so that it can be tested in process.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use petstore_cli::{Env, Stream};
//!
//! let quiet = || Stream { writer: Box::new(std::io::sink()), is_terminal: false };
//! let env = Env {
//!     args: vec!["petstore".into(), "--version".into()],
//!     vars: Default::default(),
//!     stdin: Box::new(std::io::empty()),
//!     stdin_is_terminal: false,
//!     stdout: quiet(),
//!     stderr: quiet(),
//!     prompt: None,
//!     dirs: Default::default(),
//!     now: || std::time::SystemTime::UNIX_EPOCH,
//!     width: None,
//!     signals: Box::pin(futures_util::stream::pending()),
//! };
//! assert_eq!(petstore_cli::run(env).await, 0);
//! # }
//! ```

mod error;
mod escape;
mod time;

mod env;
mod suggest;

mod files;
mod screen;

mod output;
mod status;

mod settings;

mod ui;

mod global;
mod input;
mod session;

mod context;

mod commands;

use futures_util::StreamExt as _;

pub use env::{Dirs, Env, Prompt, Signal, Signals, Stream};

use crate::commands::args::{self, Args, Cmd};
use crate::commands::{completions, mistakes};
use crate::context::Context;
use crate::env::System;
use crate::error::{CliError, Kind, Result};
use crate::global::GlobalArgs;
use crate::screen::Screen;

/// Sets the crypto provider of all clients. If one is already installed, that one stays.
fn install_crypto_provider() {
    #[cfg(feature = "rustls")]
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Runs the program, and returns its exit code.
pub async fn run(env: Env) -> u8 {
    let system = System::new(env.vars.clone(), env.dirs.clone(), env.now, env.width);
    if completions::are_requested(&system) {
        // An error message would disturb the line being typed.
        let _ = completions::complete(env, &system, args::tree(None));
        return 0;
    }
    install_crypto_provider();
    let (global, command) = match args::parse(&env.args, system.columns()) {
        Ok(Args { global, command }) => (global, Ok(command)),
        Err(mistake) => (GlobalArgs::of_mistyped(&env.args), Err(mistake)),
    };
    let context = Context::new(&global, env, system);
    context.ui().start_status_line();
    let result = match command {
        Ok(command) => run_command(command, &context).await,
        Err(mistake) => explain_usage(&mistake, &context),
    };
    context.end(result).await
}

async fn run_command(command: Cmd, context: &Context) -> Result<()> {
    if command.needs_settings() {
        context.require_settings()?;
    }
    if command.handles_signals() {
        return command.run(context).await;
    }
    let mut signals = context.take_signals();
    let signal = tokio::select! {
        // Signals come first, so that they are received before the work starts.
        biased;
        Some(signal) = signals.next() => signal,
        result = command.run(context) => return result,
    };
    let error = CliError::from(signal);
    if context.purpose().is_read() {
        return Err(error);
    }
    Err(error.hint("a request in flight may still be processed"))
}

/// Prints help and versions to standard output, and errors to standard error.
fn explain_usage(mistake: &clap::Error, context: &Context) -> Result<()> {
    use clap::error::ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion,
    };

    let text = |screen: &Screen| match screen.has_color() {
        true => mistake.render().ansi().to_string(),
        false => mistake.render().to_string(),
    };
    let ui = context.ui();
    match mistake.kind() {
        DisplayHelp | DisplayVersion => {
            let printer = context.printer();
            printer.print(text(printer.screen()))
        }
        DisplayHelpOnMissingArgumentOrSubcommand if ui.is_json() => {
            Err(CliError::usage("a command is missing").hint("`--help` lists the commands"))
        }
        DisplayHelpOnMissingArgumentOrSubcommand => {
            ui.text(&text(ui.screen()));
            Err(CliError::Silent(Kind::Usage.code()))
        }
        _ => Err(mistakes::usage_error(mistake, context.args())),
    }
}
