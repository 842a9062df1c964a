//! The variables of the environment: each flag has one, and an error names it. A misspelt one is told.

use std::{collections::BTreeSet, ffi::OsString};

use clap::{Arg, ArgAction, Command, builder::FalseyValueParser};

use super::outcome::{say, variable};

const PREFIX: &str = "PETSTORE_MOCK_";

/// Gives each flag its variable: the prefix and the flag's name. An empty variable sets nothing.
pub(super) fn with_variables(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let Some(name) = name(&arg) else {
            return arg;
        };
        // Kubernetes sets the variable of the port to `tcp://…` for a service named `petstore-mock`.
        if variable(&name).is_none_or(|value| value.to_string_lossy().starts_with("tcp://")) {
            return arg;
        }
        let arg = arg.env(name).hide_env(true);
        match arg.get_action() {
            // `0` and `false` do not set a flag.
            ArgAction::SetTrue => arg.value_parser(FalseyValueParser::new()),
            _ => arg,
        }
    });
    command.mut_subcommands(with_variables)
}

/// Returns the variable of a flag, or of the URL of a mock.
fn name(arg: &Arg) -> Option<String> {
    let flag = match arg.get_long() {
        None if arg.get_id() == "url" => "url",
        flag => flag?,
    };
    Some(format!("{PREFIX}{}", flag.replace('-', "_").to_uppercase()))
}

/// Tells which variables set the flags that an error names.
pub(super) fn blame(command: &Command, error: &str) {
    let mut names = BTreeSet::new();
    for arg in arguments(command) {
        let flag = match arg.get_long() {
            Some(flag) => format!("--{flag}"),
            None => arg.to_string(),
        };
        if arg.get_env().is_some() && error.contains(&flag) {
            names.extend(name(arg));
        }
    }
    for name in names {
        say(format_args!(
            "petstore-mock: note that the variable {name} is set"
        ));
    }
}

/// Warns of each variable of the environment that has the prefix, but sets nothing.
pub(super) fn warn_of_unknown(command: &Command) {
    let set = std::env::vars_os().filter(|(_, value)| !value.is_empty());
    let names = set.map(|(name, _)| name);
    for warning in warnings(command, names) {
        say(format_args!("petstore-mock: {warning}"));
    }
}

fn warnings(command: &Command, names: impl Iterator<Item = OsString>) -> Vec<String> {
    let mut known = vec!["PETSTORE_MOCK_ADMIN_TOKEN".to_owned()];
    known.extend(arguments(command).into_iter().filter_map(name));
    let mut warnings = Vec::new();
    for name in names.filter_map(|name| name.into_string().ok()) {
        if !name.starts_with(PREFIX) || is_of_kubernetes(&name) || known.contains(&name) {
            continue;
        }
        warnings.push(format!(
            "the variable {name} sets nothing: no flag in `petstore-mock --help` has this name"
        ));
    }
    warnings
}

/// Whether Kubernetes sets a variable of this name for a service named `petstore-mock`.
fn is_of_kubernetes(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or_default();
    let is_port = |rest: &str| {
        let rest = rest.trim_start_matches('_');
        rest.is_empty() || rest.starts_with(|first: char| first.is_ascii_digit())
    };
    rest.starts_with("SERVICE_") || rest.strip_prefix("PORT").is_some_and(is_port)
}

/// Returns the arguments of a command and its subcommands.
fn arguments(command: &Command) -> Vec<&Arg> {
    let mut all: Vec<_> = command.get_arguments().collect();
    all.extend(command.get_subcommands().flat_map(arguments));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_a_warning_unless_kubernetes_sets_it() {
        let all = [
            "PATH",
            "PETSTORE_BASE_URL",
            "PETSTORE_MOCK_PORT",
            "PETSTORE_MOCK_PORT_FILE",
            "PETSTORE_MOCK_ADMIN_TOKEN",
            "PETSTORE_MOCK_PORT_4010_TCP",
            "PETSTORE_MOCK_PORT_4010_TCP_ADDR",
            "PETSTORE_MOCK_SERVICE_HOST",
            "PETSTORE_MOCK_PROT",
        ];
        let flag = |name| clap::Arg::new(name).long(name);
        let command = Command::new("x").arg(flag("port"));
        let command = command.subcommand(Command::new("y").arg(flag("port-file")));
        assert_eq!(
            warnings(&command, all.map(OsString::from).into_iter()),
            [
                "the variable PETSTORE_MOCK_PROT sets nothing: no flag in `petstore-mock --help` has \
                 this name"
            ]
        );
    }
}
