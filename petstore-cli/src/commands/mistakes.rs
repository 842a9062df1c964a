//! Messages for command lines that clap refuses: its sentence, and one hint.

use std::error::Error as _;
use std::ffi::OsString;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::api::METHODS;
use super::args::tree;
use crate::error::CliError;
use crate::settings::accepted;

/// Turns an error of the argument parser into a message: the first paragraph of what it says.
pub(crate) fn usage_error(error: &Error, args: &[OsString]) -> CliError {
    let rendered = error.render().to_string();
    let paragraph = rendered.split("\n\n").next().unwrap_or_default();
    let lines: Vec<_> = paragraph.lines().map(str::trim).collect();
    let problem = lines.join(" ");
    let mut problem = problem
        .strip_prefix("error: ")
        .unwrap_or(&problem)
        .to_owned();
    if let Some(source) = error.source() {
        problem = problem.replace(&source.to_string(), &accepted(source));
    }
    CliError::usage(problem).hint_if(hint(error, args))
}

fn hint(error: &Error, args: &[OsString]) -> Option<String> {
    if let Some(hint) = known(error, args) {
        return Some(hint.to_owned());
    }
    if let Some(name) = suggestion(error) {
        return Some(format!("did you mean `{name}`?"));
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(method) = method(args)
    {
        return Some(format!("the method is an option: `-X {method}`"));
    }
    match error.kind() {
        ErrorKind::UnknownArgument
        | ErrorKind::InvalidSubcommand
        | ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand => Some("`--help` shows the usage and examples".to_owned()),
        // The message says what is accepted.
        _ => None,
    }
}

/// Returns the hint for a word that people type who know other programs.
fn known(error: &Error, args: &[OsString]) -> Option<&'static str> {
    let word = match error.kind() {
        ErrorKind::UnknownArgument => text(error, ContextKind::InvalidArg)?,
        ErrorKind::InvalidSubcommand => text(error, ContextKind::InvalidSubcommand)?,
        ErrorKind::InvalidValue => text(error, ContextKind::InvalidValue)?,
        _ => return None,
    };
    Some(match word {
        "--json" | "--csv" | "--format" => "`-o FORMAT` sets the format, such as json or csv",
        "--filter" | "--query" => "`--jq EXPRESSION` filters the result",
        "--columns" => "`--fields LIST` selects fields",
        "--all" => "`pets export` writes all pets",
        "--id" | "--name" => "it is an argument: `pets get 7`, `pets create Rex`",
        "--no-color" | "--no-colour" => "`--color never` switches colour off",
        "--insecure" => "`--ca-file FILE` trusts a certificate authority",
        "--url" | "--host" => "`--base-url URL` names the service",
        "--key" | "--api-key" | "--token" | "key" | "api_key" | "token" => {
            "set PETSTORE_API_KEY, or run `petstore auth login`"
        }
        "--watch" => "`watch petstore limits` shows them again and again",
        "delete" | "remove" | "rm" => {
            "the service cannot delete pets; `petstore config delete` removes a profile"
        }
        "update" | "edit" | "sell" => {
            "the service cannot change pets; `petstore config set` changes a setting"
        }
        "login" | "logout" => "`petstore auth` logs in and out",
        "list" | "ls" | "create" | "add" | "import" | "export" if is_first(word, args) => {
            "it is a command of `petstore pets`"
        }
        "key_command" => {
            "write it into config.toml: key_command = [\"pass\", \"show\", \"petstore\"]"
        }
        _ => return None,
    })
}

/// Returns whether no command stands before a word.
fn is_first(word: &str, args: &[OsString]) -> bool {
    let tree = tree(None);
    let mut before = args.iter().take_while(|arg| *arg != word);
    !before.any(|arg| {
        tree.get_subcommands()
            .any(|command| *arg == *command.get_name())
    })
}

/// Returns the name that clap suggests. For the hidden alias of a command, its name.
fn suggestion(error: &Error) -> Option<String> {
    if let Some(name) = text(error, ContextKind::SuggestedSubcommand) {
        let tree = tree(None);
        let mut places = std::iter::once(&tree).chain(tree.get_subcommands());
        let command = places.find_map(|place| place.find_subcommand(name))?;
        return Some(command.get_name().to_owned());
    }
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let mut names = kinds.into_iter().filter_map(|kind| text(error, kind));
    names.next().map(str::to_owned)
}

/// Returns the HTTP method after `api` in a command line, if there is one.
fn method(args: &[OsString]) -> Option<&'static str> {
    let mut after = args.iter().skip_while(|arg| *arg != "api");
    after.find_map(|arg| {
        let mut methods = METHODS.into_iter();
        methods.find(|method| arg.eq_ignore_ascii_case(method))
    })
}

/// Returns a detail of an error. Of several names, the last one is the most similar.
fn text(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        ContextValue::Strings(texts) => texts.last().map(String::as_str),
        _ => None,
    }
}
