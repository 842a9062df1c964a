//! The report for a terminal and for the log of a CI run: each finding can be read by itself.

use std::{
    fmt::{self, Write as _},
    time::Duration,
};

use crate::report::{
    Evidence, EvidenceRequest, Finding, Report, Role, Severity,
    units::{clock_time, count, instant, seconds, times},
};

/// A difference between the mock's clock and real time that is shown.
const CLOCK_MOVED: Duration = Duration::from_millis(50);

/// The severities, in the order in which they are counted.
const SEVERITIES: [Severity; 3] = [Severity::Violation, Severity::Warning, Severity::Notice];

/// Writes the report in one line.
pub(in crate::report) fn summary(report: &Report) -> String {
    let requests = count(report.requests(), "request");
    if report.is_free_of(Severity::Notice) {
        return format!("compliance: nothing found in {requests}");
    }
    let counts = SEVERITIES.map(|severity| count(report.count(severity), &severity.to_string()));
    let sum = |rule| {
        let of_rule = report.findings().filter(|finding| finding.rule == rule);
        Some((rule, of_rule.map(|finding| finding.count).sum::<u64>())).filter(|it| it.1 > 0)
    };
    let named = report.rules().filter_map(sum).map(|(rule, sum)| format!("{rule} {sum}"));
    let named = named.collect::<Vec<_>>().join(", ");
    format!("compliance: {} in {requests} ({named})", counts.join(", "))
}

/// Writes the report: the findings, the most severe first, and a line for each scope without one.
pub(in crate::report) fn text(report: &Report) -> String {
    let mut out = summary(report) + "\n";
    for finding in report.findings() {
        out += "\n";
        // Writing to a string does not fail.
        let _ = write_finding(&mut out, finding);
    }
    for severity in SEVERITIES {
        if let more @ 1.. = report.unlisted(severity) {
            let _ = writeln!(out, "\nand {} more, not listed", count(more, &severity.to_string()));
        }
    }
    let is_clean = |scope: &str| report.findings().all(|finding| &*finding.scope != scope);
    let mut clean = report.scopes().filter(|(scope, _)| is_clean(scope)).peekable();
    if clean.peek().is_some() && report.findings().next().is_some() {
        out += "\n";
        for (scope, requests) in clean {
            let _ = writeln!(out, "scope {scope}: nothing found in {}", count(requests, "request"));
        }
    }
    out
}

/// Writes a finding with all of its evidence.
pub(super) fn write_finding(out: &mut String, finding: &Finding) -> fmt::Result {
    let Finding { rule, severity, scope, client, evidence, .. } = finding;
    let (about, often) = (rule.about(), times(finding.count));
    writeln!(out, "{severity} [{rule}] {}, {often}   scope: {scope}\n  {client}", about.title)?;
    evidence.iter().try_for_each(|evidence| write_evidence(out, evidence))?;
    if let more @ 1.. = finding.count - evidence.len() as u64 {
        writeln!(out, "  and {more} more")?;
    }
    writeln!(out, "  why: {} ({})\n  do: {}", about.reason, about.source, about.advice)
}

fn write_evidence(out: &mut String, evidence: &Evidence) -> fmt::Result {
    writeln!(out, "  {}: {}", instant(evidence.at), sentence(evidence))?;
    if let Some(told) = &evidence.told {
        writeln!(out, "  told: {told}")?;
    }
    let mut before: Option<&EvidenceRequest> = None;
    for request in &evidence.requests {
        let mark = match request.role {
            Role::Before | Role::After => ' ',
            Role::Cause => '*',
            Role::Offence => '!',
        };
        write!(out, "  {mark} {}", line(request))?;
        if let Some(before) = before.filter(|_| request.role == Role::Offence) {
            let wait = seconds(request.arrived.gap_since(&before.ended));
            write!(out, "   <- {wait} after the end of #{}", before.number)?;
        }
        if request.role.is_concerned() {
            before = Some(request);
        }
        writeln!(out, "{}", real_time(request, &evidence.requests[0]))?;
    }
    if evidence.omitted > 0 {
        writeln!(out, "    {} not shown", count(evidence.omitted, "request"))?;
    }
    Ok(())
}

/// Writes what happened, with the number of requests where there were several.
pub(super) fn sentence(evidence: &Evidence) -> String {
    match evidence.offences {
        1 => evidence.text.clone(),
        offences => format!("{} ({offences} requests)", evidence.text),
    }
}

/// Writes a request and its answer in a line.
fn line(request: &EvidenceRequest) -> String {
    let EvidenceRequest { number, method, path, connection, .. } = request;
    let at = clock_time(request.arrived.at);
    format!("#{number} {at} {method} {path}  connection {connection}  -> {}", outcome(request))
}

/// Writes what became of a request.
pub(super) fn outcome(request: &EvidenceRequest) -> String {
    let mut out = request.status.map_or_else(
        || {
            let after = seconds(request.ended.gap_since(&request.arrived));
            let cause = request.lost.as_deref().unwrap_or("the client left");
            format!("no answer ({cause} after {after})")
        },
        |status| status.to_string(),
    );
    if let Some(wait) = request.retry_after.as_ref().filter(|_| request.status.is_some()) {
        let _ = write!(out, ", Retry-After: {wait}");
    }
    if request.banned {
        out += ", the key is banned";
    }
    if let Some(id) = request.added {
        let _ = write!(out, ", animal {id} was added");
    }
    out
}

/// Writes the real time since the first request, where the mock's clock was moved meanwhile.
fn real_time(request: &EvidenceRequest, first: &EvidenceRequest) -> String {
    let clock = request.arrived.at.saturating_sub(first.arrived.at);
    let real = request.arrived.real.saturating_duration_since(first.arrived.real);
    if clock.abs_diff(real) <= CLOCK_MOVED {
        return String::new();
    }
    format!("  (in real time {} after the first)", seconds(real))
}
