//! The variables of the environment: each flag has one, and a misspelt one is told.

use std::ffi::{OsStr, OsString};

use clap::{ArgAction, Command, builder::FalseyValueParser};

use super::outcome::{say, variable};

const PREFIX: &str = "PETSTORE_MOCK_";

/// Gives each flag its variable: the prefix and the flag's name.
pub(super) fn with_variables(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let Some(flag) = arg.get_long() else {
            return arg;
        };
        let name = format!("{PREFIX}{}", flag.replace('-', "_").to_uppercase());
        // Kubernetes sets the variable of the port to `tcp://…` for a service named `petstore-mock`.
        if variable(&name).is_some_and(|value| value.to_string_lossy().starts_with("tcp://")) {
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

/// Warns of each variable of the environment that has the prefix, but sets nothing.
pub(super) fn warn_of_unknown(command: &Command) {
    let names = std::env::vars_os().map(|(name, _)| name);
    for warning in warnings(command, names) {
        say(format_args!("petstore-mock: {warning}"));
    }
}

fn warnings(command: &Command, names: impl Iterator<Item = OsString>) -> Vec<String> {
    let mut known = vec!["PETSTORE_MOCK_ADMIN_TOKEN".to_owned()];
    collect(command, &mut known);
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

/// Collects the variables of a command's flags.
fn collect(command: &Command, names: &mut Vec<String>) {
    let variables = command.get_arguments().filter_map(|flag| flag.get_env());
    names.extend(variables.filter_map(OsStr::to_str).map(str::to_owned));
    for subcommand in command.get_subcommands() {
        collect(subcommand, names);
    }
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
            warnings(
                &with_variables(command),
                all.map(OsString::from).into_iter()
            ),
            [
                "the variable PETSTORE_MOCK_PROT sets nothing: no flag in `petstore-mock --help` has \
                 this name"
            ]
        );
    }
}
