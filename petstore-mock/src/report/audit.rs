//! All rules at work: every exchange goes to each of them as it ends.

use super::{
    finding::Finding,
    pace::Pace,
    rules::{self, Rule, Sent},
    value::Report,
};
use crate::exchange::Record;

/// The rules and what they have found so far.
#[derive(Debug)]
pub(crate) struct Audit {
    rules: Vec<(Box<dyn Rule>, Finding)>,
    pace: Pace,
    requests: u64,
}

impl Audit {
    /// Takes an exchange in. They must come in the order in which they end.
    pub(crate) fn ended(&mut self, record: &Record) {
        self.requests += 1;
        let sent = Sent { record, alone: self.pace.is_alone(record) };
        for (rule, finding) in &mut self.rules {
            rule.ended(sent, finding);
        }
    }

    /// Takes in that the client did not get the answer of an exchange that ended.
    pub(crate) fn lost(&mut self, record: &Record) {
        for (rule, _) in &mut self.rules {
            rule.lost(record);
        }
    }

    /// Returns what was found so far.
    pub(crate) fn report(&self) -> Report {
        let findings = self.rules.iter().map(|(_, finding)| finding.clone());
        Report::new(self.requests, findings.collect())
    }
}

impl Default for Audit {
    fn default() -> Self {
        let with_finding = |rule: Box<dyn Rule>| {
            let finding = Finding::none(rule.about());
            (rule, finding)
        };
        let rules = rules::all().into_iter().map(with_finding).collect();
        Self { rules, pace: Pace::default(), requests: 0 }
    }
}
