//! Suggestions for mistyped names, and messages for invalid command lines.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::{CliError, Invalid, either};

/// Returns the candidate most similar to a name, if any is similar.
pub(crate) fn similar<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let alike = candidates.into_iter().map(|other| (strsim::jaro_winkler(name, other), other));
    let (likeness, meant) = alike.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness > 0.7).then_some(meant)
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
    let name = option_name(&text(ContextKind::InvalidArg));
    let value = text(ContextKind::InvalidValue);
    let (command, path) = command_of(tree, args, &name);
    let short = path.trim_start_matches("petstore ").to_owned();
    let help = || Some(format!("`{path} --help` has examples"));
    let (problem, hint) = match mistake.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand);
            let typed = format!("{path} {word}");
            let problem = format!("no command `{}`", typed.trim_start_matches("petstore "));
            (problem, meant_command(tree, command, &path, &word).or_else(help))
        }
        ErrorKind::UnknownArgument if name.contains("key") || name.contains("token") => {
            let problem = "no option takes the key, because others could read it".to_owned();
            (problem, Some("set PETSTORE_API_KEY, or run `petstore auth login`".to_owned()))
        }
        ErrorKind::UnknownArgument if name.starts_with('-') => {
            let problem = format!("`{short}` has no option `{name}`");
            (problem, meant_option(tree, command, &name).or_else(help))
        }
        ErrorKind::UnknownArgument => {
            let words = args.iter().take_while(|arg| **arg != name).last();
            let words = words.filter(|word| !word.starts_with('-') && !path.ends_with(*word));
            let quote = words
                .map(|word| format!("quote arguments that contain spaces: `\"{word} {name}\"`"));
            (format!("`{short}` does not take `{name}`"), quote.or_else(help))
        }
        ErrorKind::InvalidValue if value.is_empty() => (format!("`{name}` needs a value"), help()),
        ErrorKind::InvalidValue => {
            let values = texts(ContextKind::ValidValue);
            let hint = did_you_mean(&value, values.iter().map(String::as_str));
            (format!("`{name} {value}` is not {}", either(&values)), hint)
        }
        ErrorKind::ValueValidation => {
            let source = std::error::Error::source(mistake);
            let invalid = source.and_then(|source| source.downcast_ref::<Invalid>());
            let invalid = invalid.cloned().unwrap_or_else(|| Invalid::new("is not valid"));
            let Invalid { problem, hint } = invalid.named(format!("`{name} {value}`"));
            (problem, hint)
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = texts(ContextKind::InvalidArg).join(" and ").replace(['<', '>'], "");
            (format!("`{short}` needs {missing}"), help())
        }
        ErrorKind::ArgumentConflict => {
            let others = texts(ContextKind::PriorArg);
            let others: Vec<_> = others.iter().map(|arg| option_name(arg)).collect();
            (format!("`{name}` cannot be used with `{}`", others.join("` or `")), None)
        }
        other => (other.to_string(), help()),
    };
    CliError::usage(problem).hint_if(hint)
}

/// Returns the command before an argument, and its full name.
fn command_of<'t>(tree: &'t Command, args: &[String], until: &str) -> (&'t Command, String) {
    let (mut command, mut path) = (tree, "petstore".to_owned());
    for arg in args.iter().skip(1).take_while(|arg| option_name(arg) != until) {
        if let Some(inner) = command.find_subcommand(arg) {
            command = inner;
            path = format!("{path} {}", inner.get_name());
        }
    }
    (command, path)
}

/// Returns an option as typed, without its value.
fn option_name(shown: &str) -> String {
    let name = shown.split([' ', '=', '[']).next().unwrap_or_default();
    name.trim_matches(['<', '>', '.']).to_owned()
}

fn meant_command(tree: &Command, command: &Command, path: &str, word: &str) -> Option<String> {
    for family in tree.get_subcommands() {
        if let Some(inner) = family.find_subcommand(word) {
            let (family, inner) = (family.get_name(), inner.get_name());
            return Some(format!("did you mean `petstore {family} {inner}`?"));
        }
    }
    let meant = similar(word, command.get_subcommands().map(Command::get_name))?;
    Some(format!("did you mean `{path} {meant}`?"))
}

fn meant_option(tree: &Command, command: &Command, name: &str) -> Option<String> {
    let name = name.trim_start_matches('-');
    let known = [command, tree].into_iter().flat_map(Command::get_arguments);
    match similar(name, known.filter_map(|arg| arg.get_long())) {
        Some(meant) => Some(format!("did you mean `--{meant}`?")),
        None => Some(format!("it belongs to `{}`", owner(tree, "petstore", name)?)),
    }
}

/// Finds a command with an option.
fn owner(command: &Command, path: &str, option: &str) -> Option<String> {
    if command.get_arguments().any(|arg| arg.get_long() == Some(option)) {
        return Some(path.to_owned());
    }
    let mut inner = command.get_subcommands();
    inner.find_map(|inner| owner(inner, &format!("{path} {}", inner.get_name()), option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_similar_names() {
        let known = ["output", "base_url"];
        assert_eq!(similar("base_ulr", known), Some("base_url"));
        assert_eq!(similar("zzz", known), None);
    }
}
