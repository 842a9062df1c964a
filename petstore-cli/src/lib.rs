//! The `petstore` command line as a library: [`run`] is the whole program, with its arguments,
//! variables and streams handed in as an [`Env`], so that it can be tested in process.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use petstore_cli::{Env, Exit, Stream};
//!
//! let silent = || Stream { writer: Box::new(std::io::sink()), is_terminal: false };
//! let env = Env {
//!     args: vec!["petstore".into(), "--version".into()],
//!     vars: Default::default(),
//!     stdin: Box::new(std::io::empty()),
//!     stdout: silent(),
//!     stderr: silent(),
//!     prompt: None,
//!     dirs: Default::default(),
//!     now: || std::time::SystemTime::UNIX_EPOCH,
//!     width: None,
//!     interrupts: Box::pin(futures_util::stream::pending()),
//! };
//! assert_eq!(petstore_cli::run(env).await, Exit::Done);
//! # }
//! ```

mod env;
mod exit;
mod safe;
mod suggest;
mod time;

mod error;
mod files;
mod style;

mod output;
mod state;

mod report;

mod flags;

mod config;

mod settings;

mod keyring;

mod keys;

mod context;

mod import;
mod preview;

mod commands;

mod args;

use std::io::Write as _;

use clap::FromArgMatches as _;
use clap::error::{ContextKind, ContextValue};
use futures_util::stream::{self, StreamExt as _};

pub use env::{Dirs, Env, Interrupts, Prompt, Stream};
pub use exit::Exit;

use crate::args::Args;
use crate::commands::completions;
use crate::context::Context;
use crate::error::CliError;
use crate::report::Report;
use crate::settings::Settings;

/// How wide help is laid out at the most.
const WIDTH: u16 = 100;

/// Runs the program to its end, and returns how it ended.
pub async fn run(mut env: Env) -> Exit {
    if env.var(completions::VARIABLE).is_some() {
        // A line that is being typed is no place for an error.
        return completions::answer(env, commands(None))
            .map_or_else(|error| error.exit, |()| Exit::Done);
    }
    let args = match parse(&env) {
        Ok(args) => args,
        Err(usage) => return explain(usage, env),
    };
    let mut interrupts: Interrupts = Box::pin(stream::pending());
    if !args.command.minds_signals() {
        std::mem::swap(&mut interrupts, &mut env.interrupts);
    }
    let settings = match args.command.reads_settings() {
        true => Settings::resolve(&args.global, &env),
        false => Settings::without_file(&args.global, &env),
    };
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => {
            let style = flags::style_of_what_was_typed(&env, env.stderr.is_terminal);
            return finish(Err(error), &Report::new(env.stderr, style));
        }
    };
    let deny_deprecated = args.global.deny_deprecated;
    let mut context = Context::new(args.global, settings, env, commands);
    let report = context.report.clone();
    let changes = args.command.changes();
    let work = async {
        args.command.run(&mut context).await?;
        context.flush()?;
        if deny_deprecated && context.report.was_deprecated() {
            return Err(CliError::new(Exit::Partial, "a deprecated operation was used"));
        }
        Ok(())
    };
    let result = tokio::select! {
        // In this order, so that Ctrl-C is listened for before the work begins.
        biased;
        Some(()) = interrupts.next() => Err(interrupted(changes)),
        result = work => result,
    };
    context.share_limits().await;
    finish(result, &report)
}

/// Returns all that can be typed, with help laid out for a width.
fn commands(width: Option<u16>) -> clap::Command {
    args::tree().term_width(width.unwrap_or(WIDTH).clamp(40, WIDTH).into())
}

fn parse(env: &Env) -> Result<Args, clap::Error> {
    let matches = commands(env.width).try_get_matches_from(&env.args)?;
    Args::from_arg_matches(&matches)
}

/// Prints help and versions where results go, and mistakes where errors go.
fn explain(mut usage: clap::Error, mut env: Env) -> Exit {
    if let Some(tip) = suggest::tip(&usage, &args::tree()) {
        usage.remove(ContextKind::SuggestedSubcommand);
        usage.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    let wrong = usage.use_stderr();
    let stream = if wrong { &env.stderr } else { &env.stdout };
    let style = flags::style_of_what_was_typed(&env, stream.is_terminal);
    let text = usage.render();
    let text = if style.color { text.ansi().to_string() } else { text.to_string() };
    let report = Report::new(env.stderr, style);
    if wrong {
        report.usage(&text);
        return Exit::Usage;
    }
    let written = env.stdout.writer.write_all(text.as_bytes());
    let written = written.and_then(|()| env.stdout.writer.flush());
    finish(written.map_err(CliError::from), &report)
}

fn finish(result: Result<(), CliError>, report: &Report) -> Exit {
    report.clear();
    match result {
        Ok(()) => Exit::Done,
        Err(error) => {
            // A reader that went away is no error, and hears of none; the mock has told its own.
            if !matches!(error.exit, Exit::Done | Exit::Other(_)) {
                report.error(&error);
            }
            error.exit
        }
    }
}

fn interrupted(changes: bool) -> CliError {
    let error = CliError::new(Exit::Interrupted, "interrupted");
    if changes {
        return error.hint("a request that was under way may have been carried out all the same");
    }
    error
}
