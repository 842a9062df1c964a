//! Writes the report, its findings and their evidence as text. Each finding is self-contained.

use std::fmt;

use super::{
    evidence::{Evidence, JudgedRequest, Role},
    finding::{Finding, Report},
    rule::{Rule, Severity},
    text::{count, date_time, seconds, time_of_day, times},
};

impl Report {
    /// Returns the report as one line, without a line break.
    #[must_use]
    pub fn summary_line(&self) -> String {
        let requests = count(self.requests, "request");
        if self.is_free_of(Severity::Notice) {
            return format!("compliance: nothing found in {requests}");
        }
        let severities = Severity::ALL.iter().rev();
        let counts = severities.map(|one| count(self.count(*one), &one.to_string()));
        let sum = |rule: &Rule| -> u64 {
            let of_rule = self.findings.iter().filter(|finding| finding.rule == *rule);
            of_rule.map(|finding| finding.count).sum()
        };
        let broken = Rule::ALL.iter().filter(|rule| sum(rule) > 0);
        let broken = broken.map(|rule| format!("{rule} {}", sum(rule)));
        let (counts, broken) = (counts.collect::<Vec<_>>(), broken.collect::<Vec<_>>());
        format!(
            "compliance: {} in {requests} ({})",
            counts.join(", "),
            broken.join(", ")
        )
    }

    /// Returns the report as text. The same as its `Display`.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.to_string()
    }

    /// Returns the part about the clients as text.
    pub(crate) fn client_text(&self) -> String {
        let mut text = format!("{}\n{}", self.summary_line(), self.remarks());
        for finding in &self.findings {
            text += &format!("\n{finding}");
        }
        let clean = self.clean_scopes();
        if !self.findings.is_empty() && !clean.is_empty() {
            text += &format!("\n{clean}");
        }
        text
    }

    /// Returns remarks for the reader of the findings, one per line.
    pub(super) fn remarks(&self) -> String {
        let set = self.severities.iter();
        let set = set.filter(|(rule, severity)| **severity != Some(rule.about().severity));
        let set = set.map(|(rule, severity)| {
            format!(
                "{rule} {}",
                severity.map_or("off".to_owned(), |one| one.to_string())
            )
        });
        let set = set.collect::<Vec<_>>().join(", ");
        let mut remarks = String::new();
        if !set.is_empty() {
            remarks += &format!("severities set: {set}\n");
        }
        if !self.findings.is_empty() {
            remarks += "! broke the rule; * came before and explains why\n";
        }
        for severity in Severity::ALL.iter().rev() {
            if let more @ 1.. = self.unlisted[*severity as usize] {
                remarks += &format!("{} more, not listed\n", count(more, &severity.to_string()));
            }
        }
        remarks
    }

    /// Returns a line for each scope without findings.
    pub(super) fn clean_scopes(&self) -> String {
        let is_clean = |scope: &str| self.findings.iter().all(|finding| &*finding.scope != scope);
        let clean = self.scopes().filter(|(scope, _)| is_clean(scope));
        let line = |(scope, requests)| {
            format!(
                "scope {scope}: nothing found in {}\n",
                count(requests, "request")
            )
        };
        clean.map(line).collect()
    }
}

impl fmt::Display for Report {
    /// Writes the findings, the most severe first, and a line for each scope without findings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.client_text())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rule,
            severity,
            scope,
            client,
            evidence,
            ..
        } = self;
        let (about, often) = (rule.about(), times(self.count));
        writeln!(
            f,
            "{severity} [{rule}] {}, {often}   scope: {scope}\n  {client}",
            about.title
        )?;
        evidence
            .iter()
            .try_for_each(|evidence| write!(f, "{evidence}"))?;
        if let more @ 1.. = self.count - evidence.len() as u64 {
            writeln!(f, "  and {more} more")?;
        }
        writeln!(
            f,
            "  why: {} ({})\n  do: {}",
            about.reason, about.source, about.advice
        )
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {}: {}", date_time(self.at), self.sentence())?;
        if let Some(told) = &self.told {
            writeln!(f, "  told: {told}")?;
        }
        if let Some(ban) = &self.ban {
            writeln!(f, "  ban: {ban}")?;
        }
        for request in &self.requests {
            if request.omitted_before > 0 {
                let omitted = count(request.omitted_before, "request");
                writeln!(f, "  ! {omitted} not shown")?;
            }
            writeln!(f, "  {request}")?;
        }
        Ok(())
    }
}

impl Evidence {
    /// Returns what happened, with the number of requests if several.
    pub(super) fn sentence(&self) -> String {
        match self.offences {
            1 => self.text.clone(),
            offences => format!("{} ({offences} requests broke the rule)", self.text),
        }
    }
}

impl fmt::Display for JudgedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.role {
            Role::Before | Role::After => ' ',
            Role::Cause => '*',
            Role::Offence => '!',
        };
        let Self {
            number,
            method,
            path,
            connection,
            ..
        } = self;
        let at = time_of_day(self.at);
        write!(
            f,
            "{mark} #{number} {at} {method} {path}  connection {connection}  -> "
        )?;
        self.write_response(f)?;
        if let Some(before) = self.after {
            let gap = seconds(before.gap);
            write!(f, "   <- {gap} after the end of #{}", before.number)?;
        }
        if let Some(real) = self.real_time {
            let real = seconds(real);
            write!(f, "  (in real time {real} after the first)")?;
        }
        Ok(())
    }
}

impl JudgedRequest {
    fn write_response(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status, &self.lost) {
            (Some(status), _) => write!(f, "{status}")?,
            (None, cause) => {
                let time = self.ended_at.duration_since(self.at).unwrap_or_default();
                let cause = cause.as_deref().unwrap_or("the client left");
                write!(f, "no response ({cause} after {})", seconds(time))?;
            }
        }
        if let Some(wait) = &self.retry_after {
            write!(f, ", Retry-After: {wait}")?;
        }
        if self.banned {
            f.write_str(", the key is banned")?;
        }
        if let Some(id) = self.added {
            write!(f, ", pet {id} was created")?;
        }
        match &self.message {
            Some(message) => write!(f, " {message:?}"),
            None => Ok(()),
        }
    }
}
