//! All findings of a server, in bounded memory.

use std::collections::BTreeMap;

use super::{
    finding::Finding,
    found::Found,
    rule::{Severities, Severity},
};

/// The maximum number of findings. The rest is only counted.
const MAX_FOUND: usize = 1_000;

/// All findings of a server.
#[derive(Debug, Default)]
pub(super) struct Findings {
    severities: Severities,
    /// By their numbers, which are not reused.
    all: BTreeMap<u64, Found>,
    last: u64,
    /// The number of findings that were dropped, by severity.
    dropped: [u64; 3],
}

impl Findings {
    pub(super) fn new(severities: Severities) -> Self {
        Self {
            severities,
            ..Self::default()
        }
    }

    pub(super) const fn severities(&self) -> &Severities {
        &self.severities
    }

    pub(super) const fn dropped(&self) -> [u64; 3] {
        self.dropped
    }

    /// Removes all findings.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.dropped = [0; 3];
    }

    /// Adds a finding, and returns its number.
    pub(super) fn open(&mut self, found: Found) -> u64 {
        self.last += 1;
        if found.rule().severity(&self.severities).is_none() {
            return self.last;
        }
        if self.all.len() >= MAX_FOUND {
            self.drop_one();
        }
        self.all.insert(self.last, found);
        self.last
    }

    /// Drops the oldest notice, or else the oldest finding. Its severity is judged now.
    fn drop_one(&mut self) {
        let severity = |found: &Found| found.severity(&self.severities);
        let is_notice = |found: &Found| severity(found) == Some(Severity::Notice);
        let notice = self.all.iter().find(|(_, found)| is_notice(found));
        let Some((number, found)) = notice.or(self.all.first_key_value()) else {
            return;
        };
        if let Some(severity) = severity(found) {
            self.dropped[severity as usize] += 1;
        }
        let number = *number;
        self.all.remove(&number);
    }

    /// Returns a finding, unless it was dropped or its rule is off.
    pub(super) fn get(&mut self, number: u64) -> Option<&mut Found> {
        self.all.get_mut(&number)
    }

    /// Returns the findings, the oldest first. `mask` masks the keys in a text.
    pub(super) fn list(&self, mask: &impl Fn(&str) -> String) -> Vec<Finding> {
        let all = self.all.values();
        all.filter_map(|found| found.finding(&self.severities, mask))
            .collect()
    }
}
