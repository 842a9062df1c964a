//! `petstore completions`, and the completions themselves, which the shells request when the user
//! presses TAB.

use std::any::TypeId;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter,
};
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

/// Prints the script of a shell.
pub(crate) fn run(shell: Shell, context: &Context) -> Result<()> {
    const NAME: &str = "petstore";

    let shells = Shells::builtins();
    let printer = context.printer();
    let Some(completer) = shells.completer(&shell.to_string()) else {
        return Err(CliError::internal("no such shell"));
    };
    completer.write_registration(COMPLETE, NAME, NAME, NAME, &mut printer.stdout())?;
    match shell {
        Shell::Bash => printer.print(BASH_QUOTES)?,
        Shell::Zsh => printer.print(ZSH_FIRST_TAB)?,
        _ => {}
    }
    context.ui().note(&format!("put it into {}", place(shell)));
    Ok(())
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
    let word = |at: usize| {
        words
            .get(at)
            .map(|word| word.to_string_lossy().into_owned())
    };
    let shows_options = word(index).unwrap_or_default().starts_with('-');
    let setting = word(index.saturating_sub(1)).unwrap_or_default();
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
    let options = tree.get_arguments().filter(|arg| arg.get_id() == setting);
    let values = options.flat_map(Arg::get_possible_values);
    values.map(|value| value.get_name().to_owned()).collect()
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
        known.add_values(arg)
    });
    command.mut_subcommands(|inner| with_values(inner, known))
}

impl Known {
    fn add_values(&self, arg: Arg) -> Arg {
        if arg.get_value_parser().type_id() == TypeId::of::<Profile>() {
            return arg.add(one_of(&self.profiles));
        }
        match arg.get_id().as_str() {
            "fields" => arg.add(one_of(PETS.fields)),
            "value" => arg.add(one_of(&self.values)),
            "method" => arg.add(one_of(&METHODS)),
            "limits_store" => arg.add(one_of(&STORES)),
            "journal" => arg.add(files(is_journal)),
            _ if arg.get_value_hint() == ValueHint::FilePath => {
                arg.add(files(|path| !is_journal(path)))
            }
            _ => arg,
        }
    }
}

fn one_of(names: &[impl ToString]) -> ArgValueCandidates {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    ArgValueCandidates::new(move || names.iter().map(CompletionCandidate::new).collect())
}

/// Completes the paths of offered files, and of all folders on the way to them.
fn files(is_offered: fn(&Path) -> bool) -> ArgValueCompleter {
    let offered = move |path: &Path| path.is_file() && is_offered(path);
    ArgValueCompleter::new(PathCompleter::any().filter(offered).current_dir("."))
}

/// Returns whether a file has the name of an import's journal.
fn is_journal(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end == "petstore-journal")
}
