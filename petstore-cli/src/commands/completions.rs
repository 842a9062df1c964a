//! `petstore completions`, and the answers to a shell that asks `petstore` itself what can follow.

use clap::{Command, ValueEnum as _};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;

use super::help::TOPICS;
use crate::config::Config;
use crate::context::Context;
use crate::env::Env;
use crate::error::CliError;

/// Is set by the scripts of `--dynamic` to the shell that asks.
pub(crate) const VARIABLE: &str = "PETSTORE_COMPLETE";

/// Writes the completions of a shell
///
/// They know all commands, flags and formats, and send nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore completions bash > petstore.bash
  petstore completions zsh > _petstore
  petstore completions fish > petstore.fish
  petstore completions bash --dynamic > petstore.bash")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,

    /// Has the shell ask petstore each time, which also knows your profiles; best read anew by each
    /// shell that starts
    #[arg(long)]
    dynamic: bool,
}

impl Completions {
    pub(crate) fn run(self, context: &mut Context) -> Result<(), CliError> {
        const NAME: &str = "petstore";

        let mut script = Vec::new();
        let name = self.shell.to_possible_value().map(|shell| shell.get_name().to_owned());
        match Shells::builtins().completer(&name.unwrap_or_default()) {
            Some(shell) if self.dynamic => {
                shell.write_registration(VARIABLE, NAME, NAME, NAME, &mut script)?;
            }
            _ => clap_complete::generate(self.shell, &mut context.tree(), NAME, &mut script),
        }
        Ok(context.stdout().write_all(&script)?)
    }
}

/// Writes what can follow in a line that is being typed. Reads the names of profiles, and sends
/// nothing; where it does not know, it says nothing.
pub(crate) fn answer(mut env: Env, tree: Command) -> Result<(), CliError> {
    let shells = Shells::builtins();
    let shell = env.var(VARIABLE).and_then(|name| shells.completer(name));
    // The line stands after `--`.
    let line: Vec<_> = env.args.iter().skip_while(|arg| *arg != "--").skip(1).cloned().collect();
    if let (Some(shell), false) = (shell, line.is_empty()) {
        let mut text = Vec::new();
        shell.write_complete(&mut with_names(tree, &env), line, None, &mut text)?;
        env.stdout.writer.write_all(&text)?;
        env.stdout.writer.flush()?;
    }
    Ok(())
}

/// Adds what is not in the tree itself: the profiles, and the topics of the help.
fn with_names(tree: Command, env: &Env) -> Command {
    let profiles = Config::load(&env.dirs).map(|config| config.profiles).unwrap_or_default();
    let profiles = one_of(profiles.into_keys().collect());
    let commands = tree.get_subcommands().map(|command| command.get_name().to_owned());
    let topics = TOPICS.iter().map(|(topic, _)| (*topic).to_owned());
    let helped = one_of(commands.chain(topics).collect());
    let chosen = profiles.clone();
    tree.mut_arg("profile", |arg| arg.add(profiles))
        .mut_subcommand("config", |config| {
            config.mut_subcommand("use", |choice| choice.mut_arg("name", |arg| arg.add(chosen)))
        })
        .mut_subcommand("help", |help| help.mut_arg("words", |arg| arg.add(helped)))
}

fn one_of(names: Vec<String>) -> ArgValueCandidates {
    ArgValueCandidates::new(move || names.iter().map(CompletionCandidate::new).collect())
}
