//! Suggestions for mistyped names, and messages for invalid command lines.

use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use crate::error::{CliError, Invalid, either};
use crate::escape;

/// The methods that people type before the path of `petstore api`.
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];
/// The names under which people look for the API key among the settings.
const KEY_NAMES: [&str; 5] = ["key", "api_key", "api-key", "apikey", "token"];

/// Options of other programs, and their names here.
const OTHER_NAMES: [(&str, &str); 10] = [
    ("json", "-o json"),
    ("csv", "-o csv"),
    ("format", "-o FORMAT"),
    ("query", "--jq EXPRESSION"),
    ("filter", "--jq EXPRESSION"),
    ("columns", "--fields LIST"),
    ("no-color", "--color never"),
    ("insecure", "--ca-file FILE"),
    ("url", "--base-url URL"),
    ("host", "--base-url URL"),
];

/// Extensions of files that are also names of output formats.
pub(crate) const FILE_FORMATS: [&str; 4] = ["csv", "json", "ndjson", "tsv"];

/// Verbs that users may try on pets, by what they ask for.
const PET_VERBS: [(&str, &[&str]); 2] = [
    ("deletes pets", &["delete", "remove", "rm"]),
    (
        "changes pets",
        &["update", "edit", "patch", "put", "rename", "sell"],
    ),
];

/// Returns a hint for a verb that users may try on pets: the command that does it, if there is one.
fn pet_verb(pets: &Command, verb: &str) -> Option<String> {
    let (does, verbs) = PET_VERBS
        .into_iter()
        .find(|(_, verbs)| verbs.contains(&verb))?;
    let command = verbs.iter().find_map(|verb| pets.find_subcommand(verb));
    Some(match command {
        Some(command) => format!("did you mean `petstore pets {}`?", command.get_name()),
        None => format!("the service has no operation that {does}"),
    })
}

/// Returns the candidate most similar to a name, if any is similar. Case does not count.
pub(crate) fn similar<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    const MIN_LIKENESS: f64 = 0.75;

    let name = plain(name);
    let mut likest = None;
    let mut most = MIN_LIKENESS;
    for other in candidates {
        let likeness = strsim::jaro_winkler(&name, &plain(other));
        // Of equals, the last one counts.
        if likeness > MIN_LIKENESS && likeness >= most {
            most = likeness;
            likest = Some(other);
        }
    }
    likest
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

/// Asks whether the user meant the most similar candidate, if there is one.
pub(crate) fn did_you_mean<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<String> {
    let meant = similar(name, candidates)?;
    Some(format!("did you mean `{meant}`?"))
}

/// What is wrong with a command line, and a hint.
struct Advice {
    problem: String,
    hint: Option<String>,
}

impl Advice {
    fn new(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            hint: None,
        }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

/// A command line that the parser refused.
struct Mistake<'m> {
    error: &'m clap::Error,
    args: &'m [String],
    /// The argument that is wrong, as the parser writes it.
    shown: String,
    /// The value that is wrong.
    value: String,
    command: &'m Command,
    /// The full name of the command.
    path: String,
}

/// Turns an error of the argument parser into a message.
pub(crate) fn usage_error(error: &clap::Error, tree: &Command, args: &[String]) -> CliError {
    let shown = text(error, ContextKind::InvalidArg);
    let word = text(error, ContextKind::InvalidSubcommand);
    let until = if word.is_empty() { &shown } else { &word };
    let (command, path) = command_of(tree, args, until);
    let mistake = Mistake {
        error,
        args,
        value: text(error, ContextKind::InvalidValue),
        command,
        path,
        shown,
    };
    let Advice { problem, hint } = match error.kind() {
        ErrorKind::InvalidSubcommand => mistake.no_command(tree, &word),
        ErrorKind::UnknownArgument => mistake.unknown_argument(),
        ErrorKind::InvalidValue => mistake.no_choice(),
        ErrorKind::ValueValidation => mistake.invalid_value(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            let problem = format!("`{}` needs a command", mistake.path);
            Advice::new(problem).hint(mistake.help())
        }
        ErrorKind::TooManyValues => {
            let name = mistake.name();
            Advice::new(format!("`{name}` takes no value"))
        }
        ErrorKind::MissingRequiredArgument => mistake.missing(),
        ErrorKind::ArgumentConflict => mistake.conflict(),
        ErrorKind::InvalidUtf8 => not_unicode(args),
        other => Advice::new(other.to_string()).hint(mistake.help()),
    };
    CliError::usage(problem).hint_if(hint)
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> String {
    texts(error, kind).into_iter().next().unwrap_or_default()
}

impl Mistake<'_> {
    /// Returns the option as typed.
    fn name(&self) -> String {
        option_name(&self.shown)
    }

    /// Returns the command without the program's name.
    fn short(&self) -> &str {
        self.path.trim_start_matches("petstore ")
    }

    fn help(&self) -> String {
        let what = match self.command.has_subcommands() {
            true => "lists the commands",
            false => "has examples",
        };
        format!("`{} --help` {what}", self.path)
    }

    /// Returns the option with its value, or the value of an argument without a name.
    fn given(&self) -> String {
        let name = self.name();
        match name.starts_with('-') {
            true => format!("{name} {}", self.value),
            false => self.value.clone(),
        }
    }

    /// Returns whether no command was typed before the mistake.
    fn is_bare(&self, tree: &Command) -> bool {
        self.command.get_name() == tree.get_name()
    }

    fn no_command(&self, tree: &Command, word: &str) -> Advice {
        let typed = format!("{} {word}", self.path);
        let short = typed.trim_start_matches("petstore ");
        let problem = format!("no command `{short}`");
        // A verb without a command is about pets too: somebody who types `delete 3` does not mean a
        // profile.
        let name = self.command.get_name();
        let is_about_pets = self.is_bare(tree) || name == "pets";
        if is_about_pets
            && let Some(pets) = tree.find_subcommand("pets")
            && let Some(hint) = pet_verb(pets, word)
        {
            return Advice::new(problem).hint(hint);
        }
        if let Some(quoted) = command_in_quotes(self.command, word) {
            let hint = format!("did you mean `{} {quoted}`, without quotes?", self.path);
            return Advice::new(problem).hint(hint);
        }
        let hint = match self.meant_command(tree, word) {
            Some(meant) => format!("did you mean `{} {meant}`?", self.path),
            None => self.help(),
        };
        Advice::new(problem).hint(hint)
    }

    /// Returns the command that a word probably means.
    fn meant_command(&self, tree: &Command, word: &str) -> Option<String> {
        if self.is_bare(tree)
            && let Some(full) = full_name(tree, word)
        {
            return Some(full);
        }
        let names = self.command.get_subcommands().map(Command::get_name);
        similar(word, names).map(str::to_owned)
    }

    /// Returns what is wrong with an argument that a command does not have, and a hint.
    fn unknown_argument(&self) -> Advice {
        let name = self.name();
        let path = self.short();
        if !name.starts_with('-') {
            let word = &self.shown;
            let problem = format!("`{path}` does not take `{word}`");
            let hint = match meant_word(self.command, self.args, word) {
                Some(meant) => meant,
                None => self.help(),
            };
            return Advice::new(problem).hint(hint);
        }
        if name.contains("key") || name.contains("token") {
            let problem = "no option takes the key, because others could read it";
            let hint = "set PETSTORE_API_KEY, or run `petstore auth login`";
            return Advice::new(problem).hint(hint);
        }
        let arguments = self.command.get_arguments();
        let known: Vec<_> = arguments.filter_map(Arg::get_long).collect();
        let problem = format!("`{path}` has no option `{name}`");
        // There are no suggestions for a single letter.
        let Some(long) = name.strip_prefix("--") else {
            return Advice::new(problem).hint(self.help());
        };
        if known.contains(&long) {
            let problem = format!("`{path}` does not take `{name}` after `--`");
            return Advice::new(problem).hint(self.help());
        }
        if self
            .command
            .get_positionals()
            .any(|arg| arg.get_id() == long)
        {
            let hint = format!(
                "the {long} is an argument: `{} {}`",
                self.path,
                long.to_uppercase()
            );
            return Advice::new(problem).hint(hint);
        }
        let hint = match meant_option(long, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => self.help(),
        };
        Advice::new(problem).hint(hint)
    }

    /// Describes a value that is not one of the option's values.
    fn no_choice(&self) -> Advice {
        if self.value.is_empty() {
            let problem = format!("`{}` needs a value", self.name());
            return Advice::new(problem).hint(self.help());
        }
        let values = texts(self.error, ContextKind::ValidValue);
        let problem = format!("`{}` is not {}", self.given(), either(&values));
        if self.command.get_name() == "set" && KEY_NAMES.contains(&self.value.as_str()) {
            let hint = "`petstore auth login` stores the key";
            return Advice::new(problem).hint(hint);
        }
        let values = values.iter().map(String::as_str);
        let hint = did_you_mean(&self.value, values);
        Advice { problem, hint }
    }

    fn invalid_value(&self) -> Advice {
        let given = self.given();
        let invalid = match invalid(self.error) {
            Some(invalid) => invalid.clone(),
            None => Invalid::new("is not valid"),
        };
        let named = invalid.named(format!("`{given}`"));
        let (problem, hint) = named.into_parts();
        if self.name() == "--output" && looks_like_path(&self.value) {
            return Advice::new(problem).hint(self.how_to_write_file());
        }
        Advice { problem, hint }
    }

    /// Returns how to write the file that was given as the output format.
    fn how_to_write_file(&self) -> String {
        let file = escape::shell(&self.value);
        if self.command.get_name() == "export" {
            return format!("give the file as the argument: `{} {file}`", self.path);
        }
        let extension = Path::new(&self.value).extension();
        for format in FILE_FORMATS {
            if extension == Some(format.as_ref()) {
                return format!("`-o {format} > {file}` writes this file");
            }
        }
        format!("`> {file}` writes this file")
    }

    fn missing(&self) -> Advice {
        let missing = texts(self.error, ContextKind::InvalidArg).join(" and ");
        let missing = missing.replace(['<', '>'], "");
        let problem = format!("`{}` needs {missing}", self.short());
        Advice::new(problem).hint(self.help())
    }

    fn conflict(&self) -> Advice {
        let others = texts(self.error, ContextKind::PriorArg);
        let others: Vec<_> = others.iter().map(|arg| option_name(arg)).collect();
        let others = others.join("` or `");
        let name = self.name();
        Advice::new(format!("`{name}` cannot be used with `{others}`"))
    }
}

/// Describes an argument that is not Unicode. It is the only one with a replacement character.
fn not_unicode(args: &[String]) -> Advice {
    let is_garbled = |arg: &&String| arg.contains(char::REPLACEMENT_CHARACTER);
    let garbled = args.iter().find(is_garbled);
    let shown = garbled.map_or("an argument", |arg| arg);
    let problem = format!("`{shown}` is not UTF-8");
    let hint = "type it in a terminal that uses UTF-8";
    Advice::new(problem).hint(hint)
}

/// Returns what the program itself says about a value.
fn invalid(error: &clap::Error) -> Option<&Invalid> {
    let source = std::error::Error::source(error)?;
    source.downcast_ref()
}

/// Returns the option that a name probably means.
fn meant_option(name: &str, known: Vec<&str>) -> Option<String> {
    for (other, here) in OTHER_NAMES {
        if other == name {
            return Some(here.to_owned());
        }
    }
    let meant = similar(name, known)?;
    Some(format!("--{meant}"))
}

/// Returns the command before an argument, and its full name.
pub(crate) fn command_of<'t>(
    tree: &'t Command,
    args: &[String],
    until: &str,
) -> (&'t Command, String) {
    let mut command = tree;
    let mut path = "petstore".to_owned();
    for arg in args.iter().skip(1) {
        if let Some(inner) = command.find_subcommand(arg) {
            command = inner;
            path = format!("{path} {}", inner.get_name());
        } else if arg == until || option_name(arg) == option_name(until) {
            break;
        }
    }
    (command, path)
}

/// Returns whether a value that should be a format seems to be a file.
fn looks_like_path(value: &str) -> bool {
    value.contains(['.', '/', '\\'])
}

/// Returns an option as typed, without its value.
fn option_name(shown: &str) -> String {
    let shown = shown.trim_start_matches(['<', '[']);
    let name = shown.split([' ', '=', '[', ']']).next().unwrap_or_default();
    name.trim_matches(['>', '.']).to_owned()
}

/// Returns the full name of a command, such as `pets list`, if only its verb was typed.
pub(crate) fn full_name(tree: &Command, verb: &str) -> Option<String> {
    for family in tree.get_subcommands() {
        if let Some(inner) = family.find_subcommand(verb) {
            let family = family.get_name();
            return Some(format!("{family} {}", inner.get_name()));
        }
    }
    None
}

/// Returns the name of a command whose words were typed in quotes, as one.
fn command_in_quotes(command: &Command, word: &str) -> Option<String> {
    let mut command = command;
    let mut names = Vec::new();
    for part in word.split_whitespace() {
        command = command.find_subcommand(part)?;
        names.push(command.get_name());
    }
    Some(names.join(" ")).filter(|name| !name.is_empty())
}

/// Returns what an unexpected word may be: an option, a value of an option, or a part of a name.
fn meant_word(command: &Command, args: &[String], word: &str) -> Option<String> {
    // Some editors replace two hyphens with a dash.
    if let Some(name) = word.strip_prefix(['\u{2013}', '\u{2014}']) {
        let known = command.get_arguments().filter_map(Arg::get_long).collect();
        let name = name.split('=').next().unwrap_or_default();
        let meant = meant_option(name, known)?;
        return Some(format!("did you mean `{meant}`, with two hyphens?"));
    }
    for option in command.get_opts() {
        let values = option.get_possible_values();
        let takes_word = values.iter().any(|value| value.get_name() == word);
        if takes_word && let Some(name) = option.get_long() {
            return Some(format!("did you mean `--{name} {word}`?"));
        }
    }
    let before = args.iter().take_while(|arg| *arg != word).last()?;
    let method = before.to_uppercase();
    if command.get_name() == "api" && METHODS.contains(&method.as_str()) {
        let path = escape::shell(word);
        return Some(format!(
            "the method is an option: `petstore api -X {method} {path}`"
        ));
    }
    if !command.get_positionals().any(|arg| arg.get_id() == "name") {
        return None;
    }
    if command.find_subcommand(before).is_some() {
        return None;
    }
    Some(format!(
        "quote arguments that contain spaces: `\"{before} {word}\"`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_does_is_not_called_impossible() {
        let hint = |pets: &Command, verb| pet_verb(pets, verb).unwrap_or_default();
        let pets = Command::new("pets").subcommand(Command::new("remove"));
        assert_eq!(hint(&pets, "rm"), "did you mean `petstore pets remove`?");
        let none = "the service has no operation that changes pets";
        assert_eq!(hint(&pets, "edit"), none);
        assert_eq!(hint(&pets, "list"), "");
        let pets = pets.subcommand(Command::new("patch").alias("edit"));
        assert_eq!(hint(&pets, "sell"), "did you mean `petstore pets patch`?");
    }

    #[test]
    fn suggests_only_similar_names() {
        let known = ["output", "base_url"];
        for name in ["base_ulr", "base-url", "BASE_URL"] {
            assert_eq!(similar(name, known), Some("base_url"));
        }
        assert_eq!(similar("zzz", known), None);
    }
}
