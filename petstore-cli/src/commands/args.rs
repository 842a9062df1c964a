//! The arguments, and the command that they start.

use clap::{Arg, ArgAction, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use super::pets::Pets;
use super::store::Store;
use super::{api, auth, completions, config, doctor, help, limits, man};
use crate::context::Context;
use crate::env::Env;
use crate::error::Result;
use crate::global::{GlobalArgs, UNBROKEN};

#[derive(Debug, Parser)]
#[command(name = "petstore", version, subcommand_required = true)]
/// List, create and import pets of a Pet Store service.
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,

    #[command(subcommand)]
    pub(crate) command: Cmd,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Cmd {
    /// List, create, import and export pets.
    #[command(subcommand, alias = "pet")]
    Pets(Pets),
    /// Show the store.
    #[command(subcommand)]
    Store(Store),
    Api(Box<api::Api>),
    #[command(aliases = ["rate-limit", "rate-limits"])]
    Limits(limits::Limits),
    /// Log in, log out, check the API key.
    #[command(subcommand)]
    Auth(auth::Auth),
    /// Show and change settings and profiles.
    #[command(subcommand)]
    Config(config::Config),
    /// Check configuration, key, service, clock and rate limits.
    Doctor,
    #[command(alias = "completion")]
    Completions(completions::Completions),
    Man(man::Man),
    Help(help::Help),
    /// Print the version.
    #[command(hide = true)]
    Version,
}

/// Returns the command tree with the texts of the help.
pub(crate) fn tree() -> Command {
    let command = Args::command()
        .bin_name("petstore")
        .term_width(UNBROKEN)
        .args_override_self(true);
    lay_out(command)
}

/// Reads the arguments.
pub(crate) fn parse(env: &Env) -> Result<Args, clap::Error> {
    let matches = tree().try_get_matches_from(&env.args)?;
    Args::from_arg_matches(&matches)
}

/// Sets the layout of the help of a command: examples, options, notes. A subcommand is laid out
/// only when it is used, because laying out all of them takes longer than a request.
fn lay_out(command: Command) -> Command {
    let path = command.get_bin_name().unwrap_or_default().to_owned();
    let help = Arg::new("help").short('h').long("help");
    let help = help.action(ArgAction::HelpShort).help("print this help");
    let command = command
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .arg(help);
    let text = match help::text(&path) {
        Some(text) => text,
        None => {
            let more = format!("Examples and options: {path} <command> --help");
            format!("Commands:\n{{subcommands}}\n\n{more}\n")
        }
    };
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let text = format!("{about}\n\nUsage: {{usage}}\n\n{text}");
    let usage = usage(&command, &path);
    let command = command.override_usage(usage).help_template(text);
    command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        inner.bin_name(path).defer(lay_out)
    })
}

fn usage(command: &Command, path: &str) -> String {
    let mut usage = match command.has_subcommands() {
        true => format!("{path} <command> [options]"),
        false => format!("{path} [options]"),
    };
    for arg in command.get_positionals() {
        let names = arg.get_value_names().unwrap_or_default();
        let id = arg.get_id().as_str().to_uppercase();
        let name = match names.first() {
            Some(name) => name.as_str(),
            None => &id,
        };
        usage += &match (arg.is_last_set(), arg.is_required_set()) {
            (true, _) => format!(" -- {name}..."),
            (false, true) => format!(" {name}"),
            (false, false) => format!(" [{name}]"),
        };
        if matches!(arg.get_action(), ArgAction::Append) {
            usage += "...";
        }
    }
    usage
}

impl Cmd {
    pub(crate) async fn run(self, context: &mut Context) -> Result<()> {
        let ui = context.ui().clone();
        let printer = context.printer().clone();
        let system = context.system().clone();
        let connector = context.connector().clone();
        match self {
            Self::Pets(pets) => pets.run(context).await,
            Self::Store(store) => store.run(&connector, &printer, &ui).await,
            Self::Api(api) => api.run(&connector, &printer, &ui, context.reader()).await,
            Self::Limits(limits) => limits.run(&connector, &system, &printer, &ui).await,
            Self::Auth(auth) => auth.run(context).await,
            Self::Config(config) => config.run(&connector, &system, &printer, &ui).await,
            Self::Doctor => {
                let problem = context.take_problem();
                doctor::run(problem, &connector, &system, &printer).await
            }
            Self::Completions(completions) => completions.run(&printer, &ui),
            Self::Man(man) => man.run(&printer, tree()),
            Self::Help(help) => help.run(&printer, tree()),
            Self::Version => printer.print(concat!("petstore ", env!("CARGO_PKG_VERSION"), "\n")),
        }
    }

    /// Returns whether the command needs the configuration. Others work even if it is invalid.
    pub(crate) fn needs_settings(&self) -> bool {
        match self {
            Self::Config(config) => !matches!(config, config::Config::Path),
            Self::Pets(_) | Self::Store(_) | Self::Api(_) | Self::Limits(_) | Self::Auth(_) => true,
            _ => false,
        }
    }

    /// Returns whether the command handles signals itself.
    pub(crate) fn handles_signals(&self) -> bool {
        matches!(self, Self::Pets(Pets::Import(_) | Pets::Export(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_laid_out_only_when_it_is_built() {
        let is_laid_out = |tree: &Command| {
            let pets = tree.find_subcommand("pets").unwrap();
            pets.get_arguments().any(|arg| arg.get_id() == "help")
        };
        let mut tree = tree();
        assert!(!is_laid_out(&tree));
        tree.build();
        assert!(is_laid_out(&tree));
    }
}
