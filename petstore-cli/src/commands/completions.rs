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

use super::help::topics;
use super::pets::PETS;
use crate::env::{Env, System};
use crate::error::{CliError, Result};
use crate::output::Printer;
use crate::settings::Values;
use crate::settings::config_file::{ConfigFile, Profile};
use crate::ui::Ui;

/// The completion scripts set this variable to the name of the shell.
pub(crate) const COMPLETE: &str = "PETSTORE_COMPLETE";

/// The scripts of bash, zsh and elvish set this variable to the position of the incomplete word.
const INDEX: &str = "_CLAP_COMPLETE_INDEX";

/// The offered methods of `petstore api`, which also accepts others.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// zsh only loads a file of `$fpath` at the first TAB. These lines make that first TAB complete
/// too.
const ZSH_FIRST_TAB: &str = r#"
if [[ $funcstack[1] == _petstore ]]; then
    _clap_dynamic_completer_petstore "$@"
fi
"#;

/// Print the completions of a shell.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// bash, zsh, fish, elvish or powershell
    #[arg(hide_possible_values = true)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, printer: &Printer, ui: &Ui) -> Result<()> {
        const NAME: &str = "petstore";

        let shells = Shells::builtins();
        let completer = shells.completer(&self.shell.to_string());
        let completer = completer.ok_or_else(|| CliError::usage("no such shell"))?;
        completer.write_registration(COMPLETE, NAME, NAME, NAME, &mut printer.stdout())?;
        if self.shell == Shell::Zsh {
            printer.stdout().write_all(ZSH_FIRST_TAB.as_bytes())?;
        }
        let place = place(self.shell);
        ui.note(&format!("put it into {place}"));
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
pub(crate) fn are_requested(env: &Env) -> bool {
    match env.vars.get(COMPLETE) {
        Some(shell) => !shell.is_empty(),
        None => false,
    }
}

/// Writes the completions of an incomplete line. Reads the names of profiles, and sends no
/// requests.
pub(crate) fn complete(mut env: Env, tree: Command) -> Result<()> {
    let shells = Shells::builtins();
    let shell = env.vars.get(COMPLETE).and_then(|name| name.to_str());
    let Some(shell) = shell.and_then(|name| shells.completer(name)) else {
        return Ok(());
    };
    let line = Line::of(&env);
    let dirs = std::mem::take(&mut env.dirs);
    let system = System::new(std::mem::take(&mut env.vars), dirs, env.now, env.width);
    let profiles = ConfigFile::load(&system).unwrap_or_default();
    let known = Known {
        profiles: profiles.profile_names().map(str::to_owned).collect(),
        help: names_of_help(&tree, &line),
        setting: line.before.last().cloned().unwrap_or_default(),
        shows_options: line.word.starts_with('-'),
    };
    let folder = Some(Path::new("."));
    let mut tree = with_values(tree, &known);
    shell.write_complete(&mut tree, line.words, folder, &mut env.stdout.writer)?;
    Ok(env.stdout.writer.flush()?)
}

/// The incomplete line.
struct Line {
    /// All words, as the shell passes them.
    words: Vec<OsString>,
    /// The words before the incomplete one.
    before: Vec<String>,
    word: String,
}

impl Line {
    /// Reads the line, which follows `--`.
    fn of(env: &Env) -> Self {
        let args = env.args.iter().skip_while(|arg| *arg != "--");
        let mut words: Vec<OsString> = args.skip(1).cloned().collect();
        separate_values(&mut words);
        let index = match index(env) {
            Some(index) => index,
            None => words.len().saturating_sub(1),
        };
        let mut before = Vec::new();
        for word in words.iter().take(index) {
            before.push(word.to_string_lossy().into_owned());
        }
        let word = words.get(index).map(|word| word.to_string_lossy());
        Self {
            word: word.unwrap_or_default().into_owned(),
            before,
            words,
        }
    }
}

/// Returns the position of the incomplete word, if the shell's script passes it.
fn index(env: &Env) -> Option<usize> {
    let index = env.vars.get(INDEX)?;
    index.to_str()?.parse().ok()
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

/// Returns what may follow in `petstore help …`.
fn names_of_help(tree: &Command, line: &Line) -> Vec<String> {
    let mut words = line.before.iter().skip_while(|word| *word != "help");
    words.next();
    let mut command = tree;
    let mut names: Vec<_> = topics().map(|topic| topic.name.to_owned()).collect();
    for word in words {
        let Some(inner) = command.find_subcommand(word) else {
            return Vec::new();
        };
        command = inner;
        names.clear();
    }
    for inner in command.get_subcommands() {
        if !inner.is_hide_set() {
            names.push(inner.get_name().to_owned());
        }
    }
    names
}

/// The values that the command tree does not contain.
struct Known {
    profiles: Vec<String>,
    /// What may follow in `petstore help …`.
    help: Vec<String>,
    /// The setting of `petstore config set`.
    setting: String,
    /// Whether the incomplete word is an option.
    shows_options: bool,
}

/// Adds the values, and hides the aliases of commands. clap offers only one name of each command,
/// and would choose the first in the alphabet.
fn with_values(command: Command, known: &Known) -> Command {
    let mut names: Vec<&'static str> = Vec::new();
    for name in command.get_all_aliases() {
        // clap needs names that live as long as the process. The process ends after this
        // completion.
        names.push(name.to_owned().leak());
    }
    let command = command.visible_alias(None).aliases(names);
    let command = command.mut_args(|arg| {
        let is_hidden = arg.is_hide_set() && !known.shows_options && !arg.is_positional();
        let mut arg = arg.hide(is_hidden);
        if arg.is_global_set() {
            // Listed after the options of the command.
            arg = arg.display_order(100);
        }
        match known.values_of(&arg) {
            Some(values) => arg.add(values).value_delimiter(None),
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
            "fields" => Some(ArgValueCompleter::new(complete_fields)),
            "words" => Some(one_of(self.help.clone())),
            "value" => Some(one_of(Values::choices(&self.setting))),
            "method" => Some(one_of(METHODS.map(str::to_owned).into())),
            "journal" => Some(files(is_journal)),
            _ if Values::NAMES.contains(&name) => {
                let choices = Values::choices(name);
                if choices.is_empty() {
                    return None;
                }
                Some(one_of(choices))
            }
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

/// Completes the last field of a list: `id,na` becomes `id,name`.
fn complete_fields(word: &OsStr) -> Vec<CompletionCandidate> {
    let word = word.to_string_lossy();
    let (before, last) = match word.rfind(',') {
        Some(comma) => word.split_at(comma + 1),
        None => ("", &*word),
    };
    let mut candidates = Vec::new();
    for field in PETS.fields {
        if field.starts_with(last) {
            candidates.push(CompletionCandidate::new(format!("{before}{field}")));
        }
    }
    candidates
}
