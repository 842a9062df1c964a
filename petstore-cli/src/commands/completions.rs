//! `petstore completions`, and the completions themselves, which the shells request when the user
//! presses TAB.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;

use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter};
use clap_complete::env::Shells;

use super::api::METHODS;
use super::pets::PETS;
use crate::context::Context;
use crate::env::{Env, System};
use crate::error::{CliError, Result};
use crate::settings::config_file::{ConfigFile, Profile};

/// The stores that need no address.
const STORES: [&str; 2] = ["file", "off"];

/// The completion scripts set this variable to the name of the shell.
pub(crate) const COMPLETE: &str = "PETSTORE_COMPLETE";

/// The scripts of bash, zsh and elvish set this variable to the position of the incomplete word.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";

/// zsh only loads a file of `$fpath` at the first TAB. These lines make that first TAB complete
/// too.
const ZSH_FIRST_TAB: &str = r#"
if [[ $funcstack[1] == _petstore ]]; then
    _clap_dynamic_completer_petstore "$@"
fi
"#;

/// bash passes a word with its backslashes, and inserts a candidate as it is. These lines remove the
/// backslashes, and make bash quote special characters as in file names.
const BASH_QUOTES: &str = r#"
_petstore() {
    _clap_complete_petstore "$1" "${2//\\/}" "$3"
    [[ "${COMPREPLY[*]}" != *[!a-zA-Z0-9_./:=@%+,-]* ]] || compopt -o filenames 2> /dev/null
}
complete -o nospace -o bashdefault -F _petstore petstore
"#;

/// Print the completions of a shell.
#[derive(Debug, clap::Args)]
#[command(after_long_help = examples!(
    "petstore completions bash > petstore.bash",
    "petstore completions zsh > _petstore",
    "petstore completions fish > petstore.fish";
    "The completions know commands, options, values, settings, files and profiles. They send no \
     requests."
))]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, context: &Context) -> Result<()> {
        const NAME: &str = "petstore";

        let shells = Shells::builtins();
        let completer = shells.completer(&self.shell.to_string());
        let completer = completer.ok_or_else(|| CliError::usage("no such shell"))?;
        let printer = context.printer();
        completer.write_registration(COMPLETE, NAME, NAME, NAME, &mut printer.stdout())?;
        match self.shell {
            Shell::Bash => printer.print(BASH_QUOTES)?,
            Shell::Zsh => printer.print(ZSH_FIRST_TAB)?,
            _ => {}
        }
        let place = place(self.shell);
        context.ui().note(&format!("put it into {place}"));
        Ok(())
    }
}

/// Returns where a shell looks for its script.
fn place(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => "~/.local/share/bash-completion/completions/petstore",
        Shell::Zsh => "a folder of $fpath, as _petstore",
        Shell::Fish => "~/.config/fish/completions/petstore.fish",
        Shell::Elvish => "~/.config/elvish/rc.elv",
        _ => "your $PROFILE",
    }
}

/// Returns whether a shell asks for completions.
pub(crate) fn are_requested(system: &System) -> bool {
    system.var(COMPLETE).is_some()
}

/// Writes the completions of an incomplete line. Reads the names of profiles, and sends no
/// requests.
pub(crate) fn complete(mut env: Env, system: &System, tree: Command) -> Result<()> {
    let shells = Shells::builtins();
    let Some(shell) = system.var(COMPLETE).and_then(|name| shells.completer(name)) else {
        return Ok(());
    };
    // The line follows `--`.
    let line = env.args.iter().skip_while(|arg| *arg != "--");
    let mut words: Vec<OsString> = line.skip(1).cloned().collect();
    separate_values(&mut words);
    let index = system.var(INDEX).and_then(|index| index.parse().ok());
    let index = index.unwrap_or(words.len().saturating_sub(1));
    let word = |at: usize| match words.get(at) {
        Some(word) => word.to_string_lossy().into_owned(),
        None => String::new(),
    };
    let shows_options = word(index).starts_with('-');
    let setting = word(index.saturating_sub(1));
    let profiles = ConfigFile::load(system).unwrap_or_default();
    let known = Known {
        profiles: profiles.profile_names().map(str::to_owned).collect(),
        values: values_of_setting(&tree, &setting),
        shows_options,
    };
    let mut tree = with_values(tree, &known);
    let folder = Some(Path::new("."));
    shell.write_complete(&mut tree, words, folder, &mut env.stdout.writer)?;
    Ok(env.stdout.writer.flush()?)
}

/// Returns the values of a setting that its option accepts.
fn values_of_setting(tree: &Command, setting: &str) -> Vec<String> {
    if setting == "limits_store" {
        return STORES.map(str::to_owned).into();
    }
    let mut values = Vec::new();
    for option in tree.get_arguments().filter(|arg| arg.get_id() == setting) {
        for value in option.get_possible_values() {
            values.push(value.get_name().to_owned());
        }
    }
    values
}

/// bash passes `--output=js` as three words, and replaces only the last one. Turns them into an
/// option and its value without `=`, and keeps the number of words.
fn separate_values(words: &mut [OsString]) {
    for at in 2..words.len() {
        if words[at - 1] == "=" {
            words[at - 1] = words[at - 2].clone();
            words[at - 2].push("=");
        }
    }
}

/// The values that the command tree does not contain.
struct Known {
    profiles: Vec<String>,
    /// The values of the setting in `petstore config set`.
    values: Vec<String>,
    /// Whether the incomplete word is an option.
    shows_options: bool,
}

/// Adds the values, and hides the options of every command unless one is being typed.
fn with_values(command: Command, known: &Known) -> Command {
    let command = command.mut_args(|arg| {
        let arg = match arg.is_global_set() {
            // Listed after the options of the command.
            true => arg.hide(!known.shows_options).display_order(100),
            false => arg,
        };
        match known.values_of(&arg) {
            Some(values) => arg.add(values),
            None => arg,
        }
    });
    command.mut_subcommands(|inner| with_values(inner, known))
}

impl Known {
    fn values_of(&self, arg: &Arg) -> Option<ArgValueCompleter> {
        let name = arg.get_id().as_str();
        if arg.get_value_parser().type_id() == TypeId::of::<Profile>() {
            return Some(one_of(self.profiles.clone()));
        }
        match name {
            "fields" => Some(one_of(
                PETS.fields.iter().map(|&name| name.to_owned()).collect(),
            )),
            "value" => Some(one_of(self.values.clone())),
            "method" => Some(one_of(METHODS.map(str::to_owned).into())),
            "journal" => Some(files(is_journal)),
            "limits_store" => Some(one_of(STORES.map(str::to_owned).into())),
            _ if arg.get_value_hint() == ValueHint::FilePath => {
                Some(files(|path| !is_journal(path)))
            }
            _ => None,
        }
    }
}

/// Completes the paths of offered files, and of all folders on the way to them.
fn files(is_offered: fn(&Path) -> bool) -> ArgValueCompleter {
    let offered = move |path: &Path| path.is_file() && is_offered(path);
    ArgValueCompleter::new(PathCompleter::any().filter(offered).current_dir("."))
}

/// Returns whether a file has the name of an import's journal.
fn is_journal(path: &Path) -> bool {
    match path.extension() {
        Some(end) => end == "petstore-journal",
        None => false,
    }
}

fn one_of(names: Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |word: &OsStr| fitting(&names, word))
}

/// Returns the names that start with a word.
fn fitting(names: &[String], word: &OsStr) -> Vec<CompletionCandidate> {
    let word = word.to_string_lossy();
    let mut candidates = Vec::new();
    for name in names {
        if name.starts_with(&*word) {
            candidates.push(CompletionCandidate::new(name));
        }
    }
    candidates
}
