//! The `petstore` command line as a library: [`run`] is the whole program, with its arguments,
//! variables and streams handed in as an [`Env`], so that it can be tested in process.
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

mod settings;
mod ui;

mod explain;
mod global;

mod trace;

mod context;

mod commands;

use futures_util::StreamExt as _;

pub use env::{Dirs, Env, Prompt, Signal, Signals, Stream};

use crate::commands::args::{self, Args};
use crate::commands::help;
use crate::context::{Context, take_ui};
use crate::error::{CliError, Failure, Kind};
use crate::global::GlobalArgs;
use crate::settings::config_file::ConfigFile;
use crate::settings::precedence::Settings;

/// Runs the program to its end, and returns its exit code.
pub async fn run(mut env: Env) -> u8 {
    if env.var(help::COMPLETE).is_some() {
        // An error would disturb the line that is being typed.
        let _ = help::complete(env, args::tree());
        return 0;
    }
    // The crypto provider of every client below. Where there is one already, that serves as well.
    #[cfg(feature = "rustls")]
    let _ = rustls::crypto::ring::default_provider().install_default();
    let args = match args::parse(&env) {
        Ok(args) => args,
        Err(usage) => return explain_usage(&usage, env),
    };
    let config = match args.command.needs_settings() && !args.global.wants_mock() {
        true => ConfigFile::load(&env),
        false => Ok(ConfigFile::default()),
    };
    let settings = config.and_then(|config| {
        Settings::resolve(args.global.profile(), &args.global.values, &env, config)
    });
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => return fail(env, &args.global, error),
    };
    let mut signals: Signals = Box::pin(futures_util::stream::pending());
    if !args.command.handles_signals() {
        std::mem::swap(&mut signals, &mut env.signals);
    }
    run_command(args, settings, env, signals).await
}

async fn run_command(args: Args, settings: Settings, env: Env, mut signals: Signals) -> u8 {
    let Args { global, command } = args;
    let deny_deprecated = global.deny_deprecated;
    let mut context = Context::new(global, settings, env, args::tree);
    let changes = command.changes();
    let work = async {
        command.run(&mut context).await?;
        context.flush()?;
        if deny_deprecated && context.was_deprecated() {
            return Err(CliError::new(Kind::Partial, "a deprecated operation was used"));
        }
        Ok(())
    };
    let result = tokio::select! {
        // In this order, so that signals are listened for before the work begins.
        biased;
        Some(signal) = signals.next() => Err(stopped(signal, changes)),
        result = work => result,
    };
    context.share_limits().await;
    let ui = context.ui.clone();
    match result {
        Ok(()) => {
            ui.finish();
            0
        }
        Err(error) => match context.facts.explain(error) {
            Ok(failure) => {
                ui.error(&failure);
                failure.kind.code()
            }
            Err(code) => {
                ui.finish();
                code
            }
        },
    }
}

/// Prints help and versions where results go, and mistakes where errors go.
fn explain_usage(usage: &clap::Error, mut env: Env) -> u8 {
    use clap::error::ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion, MissingSubcommand,
    };
    let (global, color) = GlobalArgs::of_mistyped(&env.args);
    let wanted = matches!(usage.kind(), DisplayHelp | DisplayVersion);
    if wanted
        || matches!(usage.kind(), DisplayHelpOnMissingArgumentOrSubcommand | MissingSubcommand)
    {
        let screen = screen::Screen::new(&env, color, env.stdout.is_terminal);
        let text = usage.render();
        let text = if screen.color { text.ansi().to_string() } else { text.to_string() };
        let text = if env.args.len() < 2 { help::START.to_owned() } else { text };
        let text = format!("{}\n", text.trim_end());
        let stream = if wanted { &mut env.stdout } else { &mut env.stderr };
        let written = stream.writer.write_all(text.as_bytes()).and_then(|()| stream.writer.flush());
        return match (written, wanted) {
            (Ok(()), true) => 0,
            (Ok(()), false) => Kind::Usage.code(),
            (Err(problem), _) => fail(env, &global, problem.into()),
        };
    }
    let args: Vec<_> = env.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let error = suggest::usage_error(usage, &args::tree(), &args);
    let options = global.ui_options(&env, color);
    let ui = take_ui(&mut env, options);
    if let CliError::Failure(failure) = error {
        ui.error(&failure);
    }
    Kind::Usage.code()
}

/// Prints an error that came before the settings were known.
fn fail(mut env: Env, global: &GlobalArgs, error: CliError) -> u8 {
    let (_, color) = GlobalArgs::of_mistyped(&env.args);
    let options = global.ui_options(&env, color);
    let ui = take_ui(&mut env, options);
    match error {
        CliError::Failure(failure) => {
            ui.error(&failure);
            failure.kind.code()
        }
        CliError::Client(error) => {
            ui.error(&Failure::new(Kind::Internal, error.to_string()));
            Kind::Internal.code()
        }
        CliError::Silent(code) => code,
    }
}

fn stopped(signal: Signal, changes: bool) -> CliError {
    let error = match signal {
        Signal::Interrupt => CliError::new(Kind::Interrupted, "interrupted"),
        Signal::Terminate => CliError::new(Kind::Terminated, "terminated"),
    };
    match changes {
        true => error.hint("a request that was in flight may have been carried out all the same"),
        false => error,
    }
}
