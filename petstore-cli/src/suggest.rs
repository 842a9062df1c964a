//! What was meant by a name that does not exist, and what is wrong with a line that was typed.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::{CliError, Invalid, either};

/// Returns the candidate that is most like a name, if any is like it.
pub(crate) fn similar<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let likeness = |candidate: &&str| strsim::jaro_winkler(name, candidate);
    let best = candidates.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) > 0.7).then_some(best)
}

/// Puts into words why arguments could not be understood.
pub(crate) fn usage_error(mistake: &clap::Error, tree: &Command, args: &[String]) -> CliError {
    let texts = |kind| match mistake.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    };
    let text = |kind| texts(kind).into_iter().next().unwrap_or_default();
    let name = option_name(&text(ContextKind::InvalidArg));
    let is_unknown = mistake.kind() == ErrorKind::UnknownArgument;
    let before = args.iter().position(|arg| is_unknown && option_name(arg) == name);
    let (command, path) =
        command_of(tree, args.get(..before.unwrap_or(args.len())).unwrap_or(args));
    match mistake.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand);
            let error = CliError::usage(format!("no command `{}`", below(&path, &word)));
            match meant_command(tree, command, &path, &word) {
                Some(meant) => error.hint(format!("did you mean `{meant}`?")),
                None => error.hint(format!("`{path} --help` lists the commands")),
            }
        }
        ErrorKind::UnknownArgument if name.starts_with('-') => {
            unknown_option(tree, command, &path, &name)
        }
        ErrorKind::UnknownArgument => {
            let problem = format!("`{}` does not take `{name}`", below(&path, ""));
            let error = CliError::usage(problem);
            match args.iter().position(|arg| *arg == name).and_then(|at| args.get(at - 1)) {
                Some(before) if !before.starts_with('-') && !path.ends_with(before.as_str()) => {
                    error
                        .hint(format!("put what belongs together in quotes: `\"{before} {name}\"`"))
                }
                _ => error.hint(format!("`{path} --help` shows what it takes")),
            }
        }
        ErrorKind::InvalidValue if text(ContextKind::InvalidValue).is_empty() => {
            CliError::usage(format!("`{name}` needs a value"))
                .hint(format!("`{path} --help` shows which"))
        }
        ErrorKind::InvalidValue => {
            let values = texts(ContextKind::ValidValue);
            let value = text(ContextKind::InvalidValue);
            let problem = format!("`{name} {value}` is not {}", either(&values));
            match similar(&value, values.iter().map(String::as_str)) {
                Some(meant) => CliError::usage(problem).hint(format!("did you mean `{meant}`?")),
                None => CliError::usage(problem),
            }
        }
        ErrorKind::ValueValidation => {
            let value = text(ContextKind::InvalidValue);
            let source = std::error::Error::source(mistake);
            let invalid = source.map(|source| match source.downcast_ref::<Invalid>() {
                Some(invalid) => invalid.clone(),
                None => Invalid::new(format!(": {source}")),
            });
            let invalid = invalid.unwrap_or_else(|| Invalid::new("is not valid"));
            let error = CliError::usage(match invalid.problem.strip_prefix(':') {
                Some(problem) => format!("`{name} {value}`:{problem}"),
                None => format!("`{name} {value}` {}", invalid.problem),
            });
            match invalid.hint {
                Some(hint) => error.hint(hint),
                None => error,
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = texts(ContextKind::InvalidArg);
            let missing: Vec<_> = missing.iter().map(|arg| arg.replace(['<', '>'], "")).collect();
            let problem = format!("`{}` needs {}", below(&path, ""), missing.join(" and "));
            CliError::usage(problem).hint(format!("`{path} --help` has examples"))
        }
        ErrorKind::ArgumentConflict => {
            let others: Vec<_> =
                texts(ContextKind::PriorArg).iter().map(|arg| option_name(arg)).collect();
            CliError::usage(format!("`{name}` cannot be used with `{}`", others.join("` or `")))
        }
        _ => {
            let text = mistake.render().to_string();
            let problem = text.split("\n\n").next().unwrap_or(&text).replace('\n', " ");
            CliError::usage(problem.trim_start_matches("error: "))
                .hint(format!("`{path} --help` shows how it is used"))
        }
    }
}

/// Returns the command that arguments name, and its whole name.
fn command_of<'t>(tree: &'t Command, args: &[String]) -> (&'t Command, String) {
    let (mut command, mut path) = (tree, "petstore".to_owned());
    for arg in args.iter().skip(1) {
        if let Some(inner) = command.find_subcommand(arg) {
            command = inner;
            path = format!("{path} {}", inner.get_name());
        }
    }
    (command, path)
}

/// Returns the name of a command without that of the program.
fn below(path: &str, word: &str) -> String {
    format!("{path} {word}").trim_start_matches("petstore ").trim_end().to_owned()
}

/// Returns an option as it is typed, without its value.
fn option_name(shown: &str) -> String {
    let name = shown.split([' ', '=', '[']).next().unwrap_or_default();
    name.trim_matches(['<', '>', '.']).to_owned()
}

fn meant_command(tree: &Command, command: &Command, path: &str, word: &str) -> Option<String> {
    let family = tree.get_subcommands().find(|family| family.find_subcommand(word).is_some());
    if let Some((family, inner)) = family.and_then(|f| Some((f, f.find_subcommand(word)?))) {
        return Some(format!("petstore {} {}", family.get_name(), inner.get_name()));
    }
    let names = command.get_subcommands().map(Command::get_name);
    similar(word, names).map(|meant| format!("{path} {meant}"))
}

fn unknown_option(tree: &Command, command: &Command, path: &str, name: &str) -> CliError {
    let flag = name.trim_start_matches('-');
    if flag.contains("key") || flag.contains("token") {
        return CliError::usage("there is no option for the key; others could read it")
            .hint("set PETSTORE_API_KEY, or run `petstore auth login`");
    }
    let error = CliError::usage(format!("`{}` has no option `{name}`", below(path, "")));
    let longs = |command: &Command| -> Vec<String> {
        command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect()
    };
    let known = [longs(command), longs(tree)].concat();
    if let Some(meant) = similar(flag, known.iter().map(String::as_str)) {
        return error.hint(format!("did you mean `--{meant}`?"));
    }
    match owner(tree, "petstore", flag) {
        Some(owner) => error.hint(format!("it belongs to `{owner}`")),
        None => error.hint(format!("`{path} --help` lists the options")),
    }
}

/// Finds a command with a flag.
fn owner(command: &Command, path: &str, flag: &str) -> Option<String> {
    if command.get_arguments().any(|arg| arg.get_long() == Some(flag)) {
        return Some(path.to_owned());
    }
    let mut inner = command.get_subcommands();
    inner.find_map(|inner| owner(inner, &format!("{path} {}", inner.get_name()), flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_is_alike_and_nothing_else() {
        assert_eq!(similar("base_ulr", ["output", "base_url"]), Some("base_url"));
        assert_eq!(similar("zzz", ["output", "base_url"]), None);
    }
}
