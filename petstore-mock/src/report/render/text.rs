//! The report for a terminal and for the log of a CI run: each finding can be read by itself.

use std::{
    fmt::{self, Write as _},
    time::Duration,
};

use super::units::{clock_time, count, instant, seconds, times};
use crate::report::{Evidence, EvidenceRequest, Finding, Report, Role, Severity};

/// A difference between the mock's clock and real time that is shown.
const CLOCK_MOVED: Duration = Duration::from_millis(50);

/// Writes the report in one line.
pub(in crate::report) fn summary(report: &Report) -> String {
    let requests = count(report.requests(), "request");
    if report.is_free_of(Severity::Notice) {
        return format!("compliance: nothing found in {requests}");
    }
    let counts = [Severity::Violation, Severity::Warning, Severity::Notice]
        .map(|severity| count(report.count(severity), &severity.to_string()));
    let sum = |rule| {
        let of_rule = report.findings().filter(|finding| finding.rule() == rule);
        Some((rule, of_rule.map(Finding::count).sum::<u64>())).filter(|(_, sum)| *sum > 0)
    };
    let named = report.rules().filter_map(sum).map(|(rule, sum)| format!("{rule} {sum}"));
    let named = named.collect::<Vec<_>>().join(", ");
    format!("compliance: {} in {requests} ({named})", counts.join(", "))
}

/// Writes the report: the findings, the most severe first, and a line for each scope without one.
pub(in crate::report) fn text(report: &Report) -> String {
    let mut out = summary(report) + "\n";
    for one in report.findings() {
        out.push('\n');
        out.push_str(&finding(one));
    }
    let unlisted = [Severity::Violation, Severity::Warning, Severity::Notice]
        .map(|severity| (report.unlisted(severity), severity));
    for (more, severity) in unlisted.into_iter().filter(|(more, _)| *more > 0) {
        // Writing to a string does not fail.
        let _ = writeln!(out, "\nand {} more, not listed", count(more, &severity.to_string()));
    }
    let is_clean = |scope: &str| report.findings().all(|finding| finding.scope() != scope);
    let clean: Vec<_> = report.scopes().filter(|(scope, _)| is_clean(scope)).collect();
    if !clean.is_empty() && report.findings().next().is_some() {
        out.push('\n');
        for (scope, requests) in clean {
            let _ = writeln!(out, "scope {scope}: nothing found in {}", count(requests, "request"));
        }
    }
    out
}

/// Writes a finding with all of its evidence.
pub(super) fn finding(finding: &Finding) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_finding(&mut out, finding);
    out
}

fn write_finding(out: &mut String, finding: &Finding) -> fmt::Result {
    let (severity, rule, scope) = (finding.severity(), finding.rule(), finding.scope());
    let often = times(finding.count());
    writeln!(out, "{severity} [{rule}] {}, {often}   scope: {scope}", rule.title())?;
    writeln!(out, "  {}", finding.client())?;
    for evidence in finding.evidence() {
        write_evidence(out, evidence)?;
    }
    match finding.count() - finding.evidence().len() as u64 {
        0 => {}
        more => writeln!(out, "  and {more} more")?,
    }
    writeln!(out, "  why: {} ({})", rule.reason(), rule.source())?;
    writeln!(out, "  do: {}", rule.advice())
}

fn write_evidence(out: &mut String, evidence: &Evidence) -> fmt::Result {
    writeln!(out, "  {}: {}", instant(evidence.at), sentence(evidence))?;
    if let Some(told) = evidence.told() {
        writeln!(out, "  told: {told}")?;
    }
    let mut before: Option<&EvidenceRequest> = None;
    let first = evidence.requests().first();
    let mut last_number = 0;
    for request in evidence.requests() {
        let gap = match before {
            Some(before) if request.role() == Role::Offence => {
                let wait = request.arrived.gap_since(&before.ended);
                format!("   <- {} after the end of #{}", seconds(wait), before.number())
            }
            _ => String::new(),
        };
        if matches!(request.role(), Role::Cause | Role::Offence) {
            if evidence.omitted > 0 && before.is_some() && last_number + 1 < request.number() {
                writeln!(out, "    ...")?;
            }
            before = Some(request);
        }
        last_number = request.number();
        let mark = match request.role() {
            Role::Before | Role::After => ' ',
            Role::Cause => '*',
            Role::Offence => '!',
        };
        writeln!(out, "  {mark} {}{}{gap}", line(request), real_time(request, first))?;
    }
    Ok(())
}

/// Writes what happened, with the number of requests where there were several.
pub(super) fn sentence(evidence: &Evidence) -> String {
    match evidence.offences() {
        1 => evidence.text().to_owned(),
        offences => format!("{} ({offences} requests)", evidence.text()),
    }
}

/// Writes a request and its answer in a line.
pub(super) fn line(request: &EvidenceRequest) -> String {
    let (number, at) = (request.number(), clock_time(request.arrived.at));
    let (method, target) = (request.method(), request.target());
    let connection = request.connection();
    format!("#{number} {at} {method} {target}  connection {connection}  -> {}", outcome(request))
}

/// Writes what became of a request.
pub(super) fn outcome(request: &EvidenceRequest) -> String {
    let mut out = match (request.status(), request.lost()) {
        (Some(status), _) => status.to_string(),
        (None, cause) => {
            let after = seconds(request.ended.gap_since(&request.arrived));
            format!("no answer ({} after {after})", cause.unwrap_or("the client left"))
        }
    };
    if let Some(wait) = request.retry_after.as_ref().filter(|_| request.status().is_some()) {
        let _ = write!(out, ", Retry-After: {wait}");
    }
    if request.is_banned {
        out.push_str(", the key is banned");
    }
    if let Some(id) = request.added() {
        let _ = write!(out, ", animal {id} was added");
    }
    out
}

/// Writes the real time since the first request, where the mock's clock was moved meanwhile.
fn real_time(request: &EvidenceRequest, first: Option<&EvidenceRequest>) -> String {
    let Some(real) = first.and_then(|first| real_offset(request, first)) else {
        return String::new();
    };
    format!("  (in real time {} after the first)", seconds(real))
}

/// Returns the real time since another request, if the mock's clock differs.
pub(super) fn real_offset(request: &EvidenceRequest, first: &EvidenceRequest) -> Option<Duration> {
    let clock = request.arrived.at.saturating_sub(first.arrived.at);
    let real = request.arrived.real.saturating_duration_since(first.arrived.real);
    (clock.abs_diff(real) > CLOCK_MOVED).then_some(real)
}
