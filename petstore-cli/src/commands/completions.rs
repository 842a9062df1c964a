//! `petstore completions`, and what the shells ask for when the user presses TAB.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;

use super::help::topics;
use super::pets::PETS;
use crate::env::{Env, System};
use crate::error::{CliError, ErrorFormat};
use crate::output::{OutputFormat, Printer};
use crate::screen::Color;
use crate::settings::config_file::ConfigFile;
use crate::settings::value_names;
use crate::ui::Ui;

/// The completion scripts set this variable to the name of the shell.
pub(crate) const COMPLETE: &str = "PETSTORE_COMPLETE";

/// Print the completions of a shell.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// bash, zsh, fish, elvish or powershell
    #[arg(hide_possible_values = true)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, printer: &Printer, ui: &Ui) -> Result<(), CliError> {
        const NAME: &str = "petstore";

        let shells = Shells::builtins();
        let completer = shells.completer(&self.shell.to_string());
        let completer = completer.ok_or_else(|| CliError::usage("no such shell"))?;
        completer.write_registration(COMPLETE, NAME, NAME, NAME, &mut printer.stdout())?;
        let place = match self.shell {
            Shell::Bash => "~/.local/share/bash-completion/completions/petstore",
            Shell::Zsh => "a folder of $fpath, as _petstore",
            Shell::Fish => "~/.config/fish/completions/petstore.fish",
            Shell::Elvish => "~/.config/elvish/rc.elv",
            _ => "your $PROFILE",
        };
        ui.note(&format!("put it into {place}"));
        Ok(())
    }
}

/// Returns whether a shell asks for completions.
pub(crate) fn are_requested(env: &Env) -> bool {
    env.vars
        .get(COMPLETE)
        .is_some_and(|shell| !shell.is_empty())
}

/// Writes the completions of an incomplete line. Reads the names of profiles, and sends no
/// requests.
pub(crate) fn complete(mut env: Env, tree: Command) -> Result<(), CliError> {
    let shells = Shells::builtins();
    let shell = env.vars.get(COMPLETE).and_then(|name| name.to_str());
    let shell = shell.and_then(|name| shells.completer(name));
    // The line follows `--`.
    let line: Vec<_> = env
        .args
        .iter()
        .skip_while(|arg| *arg != "--")
        .skip(1)
        .cloned()
        .collect();
    if let (Some(shell), false) = (shell, line.is_empty()) {
        let types_option = line
            .last()
            .is_some_and(|word| word.to_string_lossy().starts_with('-'));
        let tree = if types_option {
            tree.mut_args(|arg| arg.hide(false))
        } else {
            tree
        };
        let dirs = std::mem::take(&mut env.dirs);
        let system = System::new(std::mem::take(&mut env.vars), dirs, env.now, env.width);
        let mut tree = with_values(tree, &system);
        let folder = Some(Path::new("."));
        shell.write_complete(&mut tree, line, folder, &mut env.stdout.writer)?;
        env.stdout.writer.flush()?;
    }
    Ok(())
}

/// Adds values that the command tree does not have (profiles, fields, topics), and shows all
/// options.
fn with_values(tree: Command, system: &System) -> Command {
    let profiles = ConfigFile::load(system).unwrap_or_default();
    let profiles = one_of(profiles.profile_names().map(str::to_owned).collect());
    let chosen = profiles.clone();
    let commands = tree.get_subcommands().map(Command::get_name);
    let words = commands
        .chain(topics().map(|(topic, _)| topic))
        .map(str::to_owned);
    let words = one_of(words.collect());
    let fields = ArgValueCompleter::new(complete_fields);
    tree.mut_arg("profile", |arg| arg.add(profiles))
        .mut_arg("output", |arg| {
            arg.add(one_of(value_names::<OutputFormat>()))
        })
        .mut_arg("color", |arg| arg.add(one_of(value_names::<Color>())))
        .mut_arg("error_format", |arg| {
            arg.add(one_of(value_names::<ErrorFormat>()))
        })
        .mut_arg("fields", |arg| arg.add(fields).value_delimiter(None))
        .mut_subcommand("config", |config| {
            config.mut_subcommand("use", |choice| {
                choice.mut_arg("name", |arg| arg.add(chosen))
            })
        })
        .mut_subcommand("pets", |pets| {
            pets.mut_subcommand("import", |import| {
                import.mut_arg("file", |arg| arg.hide(false))
            })
        })
        .mut_subcommand("help", |help| help.mut_arg("words", |arg| arg.add(words)))
}

fn one_of(names: Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |word: &OsStr| {
        let word = word.to_string_lossy();
        let fits = names.iter().filter(|name| name.starts_with(&*word));
        fits.map(CompletionCandidate::new).collect()
    })
}

/// Completes the last field of a list: `id,na` becomes `id,name`.
fn complete_fields(word: &OsStr) -> Vec<CompletionCandidate> {
    let word = word.to_string_lossy();
    let (before, last) = word
        .rfind(',')
        .map_or(("", &*word), |comma| word.split_at(comma + 1));
    let fits = PETS.fields.iter().filter(|field| field.starts_with(last));
    fits.map(|field| CompletionCandidate::new(format!("{before}{field}")))
        .collect()
}
