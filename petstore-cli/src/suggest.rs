//! Suggestions for mistyped names, and messages for invalid command lines.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use crate::error::{CliError, Invalid, either};

/// Returns the candidate most similar to a name, if any is similar. Case does not count.
pub(crate) fn similar<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let plain = |name: &str| name.to_lowercase().replace('_', "-");
    let likeness = |other: &str| strsim::jaro_winkler(&plain(name), &plain(other));
    let alike = candidates.into_iter().map(|other| (likeness(other), other));
    let (likeness, meant) = alike.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness > 0.75).then_some(meant)
}

/// Returns the question whether the most similar candidate was meant.
pub(crate) fn did_you_mean<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<String> {
    similar(name, candidates).map(|meant| format!("did you mean `{meant}`?"))
}

/// Turns an error of the argument parser into a message.
pub(crate) fn usage_error(mistake: &clap::Error, tree: &Command, args: &[String]) -> CliError {
    let texts = |kind| match mistake.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    };
    let text = |kind| texts(kind).into_iter().next().unwrap_or_default();
    let shown = text(ContextKind::InvalidArg);
    let name = option_name(&shown);
    let value = text(ContextKind::InvalidValue);
    let word = text(ContextKind::InvalidSubcommand);
    let (command, path) = command_of(tree, args, if word.is_empty() { &shown } else { &word });
    let short = path.trim_start_matches("petstore ").to_owned();
    let help = || {
        let what = if command.has_subcommands() {
            "lists the commands"
        } else {
            "has examples"
        };
        Some(format!("`{path} --help` {what}"))
    };
    let given = if name.starts_with('-') {
        format!("{name} {value}")
    } else {
        value.clone()
    };
    let (problem, hint) = match mistake.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = format!("{path} {word}");
            let problem = format!("no command `{}`", typed.trim_start_matches("petstore "));
            (
                problem,
                meant_command(tree, command, &path, &word).or_else(help),
            )
        }
        ErrorKind::UnknownArgument => {
            let (problem, hint) = unknown_argument(command, &short, args, &shown);
            (problem, hint.or_else(help))
        }
        ErrorKind::InvalidValue if value.is_empty() => (format!("`{name}` needs a value"), help()),
        ErrorKind::InvalidValue => {
            let values = texts(ContextKind::ValidValue);
            let hint = did_you_mean(&value, values.iter().map(String::as_str));
            (format!("`{given}` is not {}", either(&values)), hint)
        }
        ErrorKind::ValueValidation => {
            let source = std::error::Error::source(mistake);
            let invalid = source.and_then(|source| source.downcast_ref::<Invalid>());
            let invalid = invalid
                .cloned()
                .unwrap_or_else(|| Invalid::new("is not valid"));
            let Invalid { problem, hint } = invalid.named(format!("`{given}`"));
            (problem, hint)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            (format!("`{path}` needs a command"), help())
        }
        ErrorKind::TooManyValues => (format!("`{name}` takes no value"), None),
        ErrorKind::MissingRequiredArgument => {
            let missing = texts(ContextKind::InvalidArg)
                .join(" and ")
                .replace(['<', '>'], "");
            (format!("`{short}` needs {missing}"), help())
        }
        ErrorKind::ArgumentConflict => {
            let others = texts(ContextKind::PriorArg);
            let others: Vec<_> = others.iter().map(|arg| option_name(arg)).collect();
            (
                format!("`{name}` cannot be used with `{}`", others.join("` or `")),
                None,
            )
        }
        other => (other.to_string(), help()),
    };
    CliError::usage(problem).hint_if(hint)
}

/// Returns what is wrong with an argument that a command does not have, and a hint.
fn unknown_argument(
    command: &Command,
    path: &str,
    args: &[String],
    shown: &str,
) -> (String, Option<String>) {
    let name = option_name(shown);
    if !name.starts_with('-') {
        let hint = meant_word(command, args, shown);
        return (format!("`{path}` does not take `{shown}`"), hint);
    }
    if name.contains("key") || name.contains("token") {
        let problem = "no option takes the key, because others could read it".to_owned();
        return (
            problem,
            Some("set PETSTORE_API_KEY, or run `petstore auth login`".to_owned()),
        );
    }
    let longs = || command.get_arguments().filter_map(Arg::get_long);
    let long = name.strip_prefix("--");
    if longs().any(|known| long == Some(known)) {
        return (format!("`{path}` does not take `{name}` after `--`"), None);
    }
    // A long name does not resemble a single letter.
    let meant = long.and_then(|long| similar(long, longs()));
    let hint = meant.map(|meant| format!("did you mean `--{meant}`?"));
    (format!("`{path}` has no option `{name}`"), hint)
}

/// Returns the command before an argument, and its full name.
pub(crate) fn command_of<'t>(
    tree: &'t Command,
    args: &[String],
    until: &str,
) -> (&'t Command, String) {
    let (mut command, mut path) = (tree, "petstore".to_owned());
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

/// Returns an option as typed, without its value.
fn option_name(shown: &str) -> String {
    let name = shown.split([' ', '=', '[']).next().unwrap_or_default();
    name.trim_matches(['<', '>', '.']).to_owned()
}

/// Returns the full name of a command of which only the verb was typed: `pets list`.
pub(crate) fn full_name(tree: &Command, verb: &str) -> Option<String> {
    tree.get_subcommands().find_map(|family| {
        let inner = family.find_subcommand(verb)?;
        Some(format!("{} {}", family.get_name(), inner.get_name()))
    })
}

fn meant_command(tree: &Command, command: &Command, path: &str, word: &str) -> Option<String> {
    let is_bare = command.get_name() == tree.get_name();
    let meant = full_name(tree, word).filter(|_| is_bare).or_else(|| {
        similar(word, command.get_subcommands().map(Command::get_name)).map(str::to_owned)
    })?;
    Some(format!("did you mean `{path} {meant}`?"))
}

/// Returns what a word too many may stand for: a value of an option, or a part of a name.
fn meant_word(command: &Command, args: &[String], word: &str) -> Option<String> {
    let takes = |arg: &&Arg| {
        arg.get_possible_values()
            .iter()
            .any(|value| value.get_name() == word)
    };
    if let Some(option) = command.get_opts().find(takes).and_then(Arg::get_long) {
        return Some(format!("did you mean `--{option} {word}`?"));
    }
    let takes_name = command.get_positionals().any(|arg| arg.get_id() == "name");
    let before = args.iter().take_while(|arg| *arg != word).last();
    let before = before.filter(|before| takes_name && command.find_subcommand(before).is_none())?;
    Some(format!(
        "quote arguments that contain spaces: `\"{before} {word}\"`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_similar_names() {
        let known = ["output", "base_url"];
        for name in ["base_ulr", "base-url", "BASE_URL"] {
            assert_eq!(similar(name, known), Some("base_url"));
        }
        assert_eq!(similar("zzz", known), None);
    }
}
