//! Messages for command lines that clap refuses: what is wrong, and one hint.

use std::error::Error as _;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::api::METHODS;
use crate::error::{CliError, Invalid, either};

/// Words that people type who know other programs, and what helps.
const FROM_ELSEWHERE: [(&[&str], &str); 13] = [
    (
        &["--json", "--csv", "--format"],
        "`-o FORMAT` sets the format, such as json or csv",
    ),
    (
        &["--filter", "--query"],
        "`--jq EXPRESSION` filters the result",
    ),
    (&["--columns"], "`--fields LIST` selects fields"),
    (&["--all"], "`pets export` writes all pets"),
    (
        &["--id", "--name"],
        "it is an argument: `pets get 7`, `pets create Rex`",
    ),
    (
        &["--no-color", "--no-colour"],
        "`--color never` switches colour off",
    ),
    (
        &["--insecure"],
        "`--ca-file FILE` trusts a certificate authority",
    ),
    (&["--url", "--host"], "`--base-url URL` names the service"),
    (
        &["--key", "--api-key", "--token", "key", "api_key", "token"],
        "set PETSTORE_API_KEY, or run `petstore auth login`",
    ),
    (
        &["--watch"],
        "`watch petstore limits` shows them again and again",
    ),
    (
        &["delete", "remove", "rm"],
        "the service has no operation that deletes pets",
    ),
    (
        &["update", "edit", "sell"],
        "the service has no operation that changes pets",
    ),
    (&["login", "logout"], "`petstore auth` logs in and out"),
];

/// Commands that people type without `pets`.
const OF_PETS: [&str; 7] = ["list", "ls", "create", "add", "show", "import", "export"];

/// Turns an error of the argument parser into a message.
pub(crate) fn usage_error(error: &Error, args: &[String]) -> CliError {
    let arg = text(error, ContextKind::InvalidArg);
    let value = text(error, ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::UnknownArgument => CliError::usage(format!("unexpected argument `{arg}`"))
            .hint(hint_for_argument(error, &arg, args)),
        ErrorKind::InvalidSubcommand => {
            let word = text(error, ContextKind::InvalidSubcommand);
            CliError::usage(format!("no command `{word}`")).hint(hint_for_command(
                error,
                &word,
                word_before(&word, args),
            ))
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            CliError::usage(format!("`{arg}` needs a value"))
        }
        ErrorKind::InvalidValue if arg == "<SETTING>" => {
            let list = || Some("`petstore config list` lists them".to_owned());
            CliError::usage(format!("no setting `{value}`"))
                .hint_if(known(&value).or_else(|| suggestion(error)).or_else(list))
        }
        ErrorKind::InvalidValue => {
            let values = either(&texts(error, ContextKind::ValidValue));
            let problem = format!("{} is not {values}", given(&arg, &value));
            match arg.starts_with("--output") && value.contains(['.', '/']) {
                true => CliError::usage(problem)
                    .hint("redirect the result into a file: `-o json > FILE`"),
                false => {
                    CliError::usage(problem).hint_if(known(&value).or_else(|| suggestion(error)))
                }
            }
        }
        ErrorKind::ValueValidation => {
            let source = error.source().and_then(|source| source.downcast_ref());
            let invalid: Invalid = match source {
                Some(invalid) => Invalid::clone(invalid),
                None => Invalid::new("is not valid"),
            };
            let (problem, hint) = invalid.named(given(&arg, &value)).into_parts();
            CliError::usage(problem).hint_if(hint)
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = texts(error, ContextKind::InvalidArg).join(" and ");
            CliError::usage(format!("missing {missing}")).hint("`--help` has examples")
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            CliError::usage("a command is missing").hint("`--help` lists the commands")
        }
        ErrorKind::ArgumentConflict => {
            let others = texts(error, ContextKind::PriorArg).join("` or `");
            CliError::usage(format!("`{arg}` cannot be used with `{others}`"))
        }
        ErrorKind::TooManyValues => CliError::usage(format!("`{arg}` takes no value `{value}`")),
        ErrorKind::InvalidUtf8 => CliError::usage("an argument is not UTF-8"),
        other => CliError::usage(other.to_string()).hint("`--help` has examples"),
    }
}

fn hint_for_command(error: &Error, word: &str, before: &str) -> String {
    let is_first = before.starts_with('-') || before.is_empty();
    if is_first && OF_PETS.contains(&word) {
        return format!("did you mean `petstore pets {word}`?");
    }
    let is_about_pets = is_first || ["pets", "pet"].contains(&before);
    let hint = known(word).filter(|_| is_about_pets);
    hint.or_else(|| suggestion(error))
        .unwrap_or_else(|| "`--help` lists the commands".to_owned())
}

fn hint_for_argument(error: &Error, arg: &str, args: &[String]) -> String {
    if let Some(hint) = known(arg).or_else(|| suggestion(error)) {
        return hint;
    }
    let before = word_before(arg, args).to_uppercase();
    if METHODS.contains(&before.as_str()) {
        return format!("the method is an option: `-X {before} {arg}`");
    }
    match arg.starts_with('-') {
        true => "`--help` lists the options".to_owned(),
        false => "`--help` shows what it takes; quote words that belong together".to_owned(),
    }
}

/// Returns the word before another one; none after the program's name.
fn word_before<'a>(word: &str, args: &'a [String]) -> &'a str {
    let before = args.iter().skip(1).take_while(|other| *other != word);
    before.last().map_or("", String::as_str)
}

fn known(word: &str) -> Option<String> {
    let row = FROM_ELSEWHERE
        .iter()
        .find(|(words, _)| words.contains(&word));
    row.map(|(_, hint)| (*hint).to_owned())
}

/// Returns the name that clap suggests.
fn suggestion(error: &Error) -> Option<String> {
    let kinds = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ];
    let name = kinds
        .into_iter()
        .find_map(|kind| texts(error, kind).pop())?;
    Some(format!("did you mean `{name}`?"))
}

/// Returns an option with its value, or the value of an argument without a name.
fn given(arg: &str, value: &str) -> String {
    match arg.split_once([' ', '=', '[']) {
        Some((option, _)) if option.starts_with('-') => format!("`{option} {value}`"),
        _ => format!("`{value}`"),
    }
}

fn texts(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

fn text(error: &Error, kind: ContextKind) -> String {
    texts(error, kind).into_iter().next().unwrap_or_default()
}
