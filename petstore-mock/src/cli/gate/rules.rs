//! `--rule`: the severities of the compliance rules.

use clap::Args;

use crate::report::{Rule, Severity};

/// The severities of rules that differ from the defaults.
#[derive(Args, Clone)]
#[command(next_help_heading = "Report")]
pub(in crate::cli) struct RuleArgs {
    /// Severity of a rule: off, notice, warning or violation (repeatable).
    ///
    /// Rules: told-to-wait, back-off, repeated-post, key-in-url (violations), retry-after, repeated-error,
    /// key-scheme (warnings), steady-retry, quota-ignored, deprecated, keep-alive, user-agent (notices).
    /// A notice never fails a run.
    #[arg(
        long = "rule",
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

/// Parses a rule and its severity.
fn rule(text: &str) -> Result<(Rule, Option<Severity>), String> {
    let (name, severity) = text.split_once('=').ok_or("write NAME=SEVERITY")?;
    let rule = name.parse().map_err(|_| {
        let rules: Vec<_> = Rule::all().iter().map(ToString::to_string).collect();
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
