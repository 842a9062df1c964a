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

mod env;
mod error;
mod escape;

mod files;
mod screen;
mod suggest;
mod time;

mod output;
mod status;

mod settings;
mod ui;

mod explain;
mod global;

mod trace;

mod context;

mod commands;

use futures_util::StreamExt as _;

pub use env::{Dirs, Env, Prompt, Signal, Signals, Stream};

use crate::commands::args::{self, Args, Cmd};
use crate::commands::help;
use crate::context::{Context, Purpose};
use crate::error::{CliError, ErrorFormat, Kind};
use crate::global::GlobalArgs;

/// Runs the program, and returns its exit code.
pub async fn run(env: Env) -> u8 {
    if env.var(help::COMPLETE).is_some() {
        // An error message would disturb the line being typed.
        let _ = help::complete(env, args::tree());
        return 0;
    }
    // The crypto provider of all clients. An installed provider is used as well.
    #[cfg(feature = "rustls")]
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (global, command) = match args::parse(&env) {
        Ok(Args { global, command }) => (global, Ok(command)),
        Err(mistake) => (GlobalArgs::of_mistyped(&env.args), Err(mistake)),
    };
    let mut context = Context::new(global, env);
    context.ui.start_status_line();
    let result = match command {
        Ok(command) => run_command(command, &mut context).await,
        Err(mistake) => explain_usage(&mistake, &mut context),
    };
    context.end(result).await
}

async fn run_command(command: Cmd, context: &mut Context) -> Result<(), CliError> {
    if command.needs_settings()
        && let Some(problem) = context.settings.problem.take()
    {
        return Err(problem);
    }
    let mut signals: Signals = Box::pin(futures_util::stream::pending());
    if !command.handles_signals() {
        std::mem::swap(&mut signals, &mut context.env.signals);
    }
    let signal = tokio::select! {
        // In this order, so that signals are received before the work starts.
        biased;
        Some(signal) = signals.next() => signal,
        result = command.run(context) => return result,
    };
    let error = CliError::from(signal);
    if context.facts.purpose != Purpose::Read {
        let hint = "a request in flight may still be processed";
        return Err(error.hint(hint));
    }
    Err(error)
}

/// Prints help and versions to standard output, and errors to standard error.
fn explain_usage(mistake: &clap::Error, context: &mut Context) -> Result<(), CliError> {
    use clap::error::ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion, MissingSubcommand,
    };
    let mut tree = args::tree();
    tree.build();
    let args = context
        .env
        .args
        .iter()
        .map(|arg| arg.to_string_lossy().into_owned());
    let args: Vec<_> = args.collect();
    let screen = &context.options.screen;
    let is_json = context.ui.options.format == ErrorFormat::Json;
    let text = match mistake.kind() {
        DisplayHelp | DisplayVersion => {
            let text = screen.styled(&mistake.render());
            return context.print_help(&text);
        }
        DisplayHelpOnMissingArgumentOrSubcommand | MissingSubcommand if !is_json => {
            match suggest::command_of(&tree, &args, "") {
                (command, path) if path == command.get_name() => help::START.to_owned(),
                (command, _) => screen.styled(&command.clone().render_help()),
            }
        }
        _ => return Err(suggest::usage_error(mistake, &tree, &args)),
    };
    context.ui.text(&format!(
        "{}\n",
        context.ui.options.screen.fold(&text).trim_end()
    ));
    Err(CliError::Silent(Kind::Usage.code()))
}
