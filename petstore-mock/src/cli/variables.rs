//! The variables of the environment: which ones set flags, and which ones look misspelt.

use std::ffi::{OsStr, OsString};

use clap::{Command, CommandFactory as _};

use super::run::Program;
use crate::text::nearest;

const PREFIX: &str = "PETSTORE_MOCK_";

/// If a name has more typing errors than this, no other name is suggested.
const MAX_TYPOS: usize = 3;

/// Returns a warning for each variable that begins with `PETSTORE_MOCK_`, but sets nothing. Those
/// that Kubernetes sets for a service named `petstore-mock` are left out.
pub fn warnings(names: impl IntoIterator<Item = OsString>) -> Vec<String> {
    let names = names.into_iter().filter_map(|name| name.into_string().ok());
    let ours: Vec<String> = names
        .filter(|name| name.starts_with(PREFIX) && !is_of_kubernetes(name))
        .collect();
    let mut warnings = Vec::new();
    if ours.is_empty() {
        return warnings;
    }
    let mut known = vec!["PETSTORE_MOCK_ADMIN_TOKEN".to_owned()];
    collect(&Program::command(), &mut known);
    for name in ours.iter().filter(|name| !known.contains(name)) {
        let nearest = nearest(name, MAX_TYPOS, known.iter(), |one| (*one).clone());
        let hint = nearest.map_or_else(String::new, |name| format!("; did you mean {name}?"));
        warnings.push(format!("the variable {name} sets nothing{hint}"));
    }
    warnings
}

/// Whether Kubernetes sets a variable of this name for a service named `petstore-mock`.
fn is_of_kubernetes(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or_default();
    let is_port = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    rest.starts_with("SERVICE_") || rest.strip_prefix("PORT_").is_some_and(is_port)
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
            "PETSTORE_MOCK_URL",
            "PETSTORE_MOCK_PORT_4010_TCP",
            "PETSTORE_MOCK_PORT_4010_TCP_ADDR",
            "PETSTORE_MOCK_SERVICE_HOST",
            "PETSTORE_MOCK_PROT",
            "PETSTORE_MOCK_NOTHING_LIKE_THIS",
        ];
        assert_eq!(
            warnings(all.map(OsString::from)),
            [
                "the variable PETSTORE_MOCK_PROT sets nothing; did you mean PETSTORE_MOCK_PORT?",
                "the variable PETSTORE_MOCK_NOTHING_LIKE_THIS sets nothing",
            ]
        );
    }
}
