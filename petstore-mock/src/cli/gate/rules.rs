//! `--rule`: the severities of the compliance rules.

use clap::Args;

use crate::report::{Rule, Severity};

const ABOUT: &str = "Severity of a rule: off, notice, warning or violation (repeatable)";

/// The severities of rules that differ from the defaults.
#[derive(Args, Clone)]
#[command(next_help_heading = "Report")]
pub(in crate::cli) struct RuleArgs {
    #[arg(
        long = "rule",
        help = ABOUT,
        long_help = long_help(),
        env = "PETSTORE_MOCK_RULE",
        hide_env = true,
        value_delimiter = ' ',
        value_name = "NAME=SEVERITY",
        value_parser = rule
    )]
    rules: Vec<(Rule, Option<Severity>)>,
}

impl RuleArgs {
    pub(in crate::cli) fn severities(&self) -> &[(Rule, Option<Severity>)] {
        &self.rules
    }
}

/// Lists the rules by their default severities.
fn long_help() -> String {
    let groups = [
        (Severity::Violation, "violations"),
        (Severity::Warning, "warnings"),
        (Severity::Notice, "notices"),
    ];
    let mut lists = Vec::new();
    for (severity, title) in groups {
        let rules = Rule::ALL.iter();
        let names: Vec<_> = rules
            .filter(|rule| rule.about().severity == severity)
            .map(ToString::to_string)
            .collect();
        lists.push(format!("{} ({title})", names.join(", ")));
    }
    let lists = lists.join(", ");
    format!("{ABOUT}.\n\nRules: {lists}. A notice never fails a run.")
}

/// Parses a rule and its severity.
fn rule(text: &str) -> Result<(Rule, Option<Severity>), String> {
    let (name, severity) = text.split_once('=').ok_or("write NAME=SEVERITY")?;
    let rule = name.parse().map_err(|_| {
        let rules: Vec<_> = Rule::ALL.iter().map(ToString::to_string).collect();
        format!("unknown rule; rules: {}", rules.join(", "))
    })?;
    if severity == "off" {
        return Ok((rule, None));
    }
    let severity = severity.parse();
    let severity =
        severity.map_err(|_| "unknown severity; severities: notice, warning, violation, or off")?;
    Ok((rule, Some(severity)))
}
