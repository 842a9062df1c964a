//! The report as JSON.

use serde_json::{Value, json};

use super::{text::real_offset, units::instant};
use crate::report::{Evidence, EvidenceRequest, Finding, Report, Severity};

/// Writes the report as a JSON object.
pub(in crate::report) fn json(report: &Report) -> String {
    let scope = |(name, requests): (&str, u64)| json!({"name": name, "requests": requests});
    let value = json!({
        "compliant": report.is_compliant(),
        "requests": report.requests(),
        "violations": report.count(Severity::Violation),
        "warnings": report.count(Severity::Warning),
        "notices": report.count(Severity::Notice),
        "scopes": report.scopes().map(scope).collect::<Vec<_>>(),
        "findings": report.findings().map(finding).collect::<Vec<_>>(),
    });
    value.to_string()
}

fn finding(finding: &Finding) -> Value {
    let (rule, client) = (finding.rule(), finding.client());
    json!({
        "rule": rule,
        "severity": finding.severity(),
        "scope": finding.scope(),
        "count": finding.count(),
        "client": {
            "key": client.key(),
            "plan": client.plan().map(|plan| plan.to_string()),
            "userAgent": client.user_agent(),
        },
        "title": rule.title(),
        "source": rule.source(),
        "reason": rule.reason(),
        "advice": rule.advice(),
        "evidence": finding.evidence().iter().map(evidence).collect::<Vec<_>>(),
    })
}

fn evidence(evidence: &Evidence) -> Value {
    let first = evidence.requests().first();
    json!({
        "at": instant(evidence.at),
        "told": evidence.told(),
        "came": instant(evidence.at),
        "bySeconds": evidence.by().map(|by| by.as_secs_f64()),
        "text": evidence.text(),
        "offences": evidence.offences(),
        "added": evidence.added(),
        "omitted": evidence.omitted,
        "requests": evidence.requests().iter().map(|it| request(it, first)).collect::<Vec<_>>(),
    })
}

fn request(request: &EvidenceRequest, first: Option<&EvidenceRequest>) -> Value {
    let real = first.and_then(|first| real_offset(request, first));
    json!({
        "number": request.number(),
        "role": request.role(),
        "at": instant(request.arrived.at),
        "endedAt": instant(request.ended.at),
        "realSeconds": real.map(|real| real.as_secs_f64()),
        "method": request.method().as_str(),
        "path": request.target(),
        "connection": request.connection(),
        "status": request.status(),
        "retryAfter": request.retry_after,
        "lost": request.lost(),
        "added": request.added(),
    })
}
