//! The report as Markdown, for the summary of a CI run.

use std::fmt::{self, Write as _};

use super::text::{outcome, sentence, summary};
use crate::report::{
    Evidence, Finding, Report, Role,
    units::{clock_time, count, instant, times},
};

/// Writes the report as Markdown.
pub(in crate::report) fn markdown(report: &Report) -> String {
    let mut out = format!("# Compliance report\n\n{}\n", escaped(&summary(report)));
    for (scope, requests) in report.scopes() {
        // Writing to a string does not fail.
        let _ = write_scope(&mut out, report, scope, requests);
    }
    out
}

fn write_scope(out: &mut String, report: &Report, scope: &str, requests: u64) -> fmt::Result {
    let findings: Vec<_> = report.findings().filter(|it| *it.scope == *scope).collect();
    let requests = count(requests, "request");
    writeln!(out, "\n## {}\n", escaped(scope))?;
    if findings.is_empty() {
        return writeln!(out, "Nothing found in {requests}.");
    }
    findings.into_iter().try_for_each(|finding| write_finding(out, finding))
}

fn write_finding(out: &mut String, finding: &Finding) -> fmt::Result {
    let (rule, about, often) = (finding.rule, finding.rule.about(), times(finding.count));
    writeln!(out, "### {} `{rule}`: {}, {often}\n", finding.severity, about.title)?;
    writeln!(out, "{}\n", escaped(&finding.client.to_string()))?;
    finding.evidence.iter().try_for_each(|evidence| write_evidence(out, evidence))?;
    writeln!(out, "**Why:** {} ({})  ", escaped(about.reason), about.source)?;
    writeln!(out, "**Do:** {}\n", escaped(about.advice))
}

fn write_evidence(out: &mut String, evidence: &Evidence) -> fmt::Result {
    writeln!(out, "{}: {}", instant(evidence.at), escaped(&sentence(evidence)))?;
    if let Some(told) = &evidence.told {
        writeln!(out, "Told: {}", escaped(told))?;
    }
    writeln!(out, "\n| | request | at | connection | answer |\n|---|---|---|---|---|")?;
    for request in &evidence.requests {
        let role = match request.role {
            Role::Before | Role::After => "",
            Role::Cause => "cause",
            Role::Offence => "**offence**",
        };
        let (number, at) = (request.number, clock_time(request.arrived.at));
        let what = escaped(&format!("{} {}", request.method, request.path));
        let (connection, outcome) = (request.connection, escaped(&outcome(request)));
        writeln!(out, "| {role} | #{number} {what} | {at} | {connection} | {outcome} |")?;
    }
    writeln!(out)
}

/// Writes a text so that Markdown shows it as it is.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' => {
                out.extend(['\\', character]);
            }
            '\n' | '\r' => out.push(' '),
            other => out.push(other),
        }
    }
    out
}
