//! Observes a real service: how it broke its contract, and a recording of its content and failures.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    sync::{Mutex, MutexGuard, PoisonError},
};

use http::Response;
use serde::Serialize;
use strum::VariantArray as _;

use super::{
    contract::{self, Sent, Term},
    recorder::Recorder,
};

/// The maximum number of examples of a breach.
const MAX_EXAMPLES: usize = 5;

/// Observes the responses of a service.
#[derive(Debug, Default)]
pub(crate) struct ServiceObserver(Mutex<ServiceRecord>);

#[derive(Debug, Default)]
struct ServiceRecord {
    responses: u64,
    breaches: BTreeMap<Term, ServiceBreach>,
    recorder: Recorder,
}

impl ServiceObserver {
    /// Checks a response. `body` is `None` if it was too long or too slow.
    pub(crate) fn observe(&self, sent: &Sent<'_>, response: &Response<()>, body: Option<&[u8]>) {
        let found = contract::check(sent, response, body);
        let mut observed = self.lock();
        observed.responses += 1;
        if let Some(body) = body {
            observed.recorder.record(sent, response, body);
        }
        for (term, text) in found {
            let breach = observed
                .breaches
                .entry(term)
                .or_insert_with(|| ServiceBreach {
                    term: term.to_string(),
                    count: 0,
                    examples: Vec::new(),
                });
            breach.count += 1;
            if breach.examples.len() < MAX_EXAMPLES {
                breach.examples.push(format!("{sent}: {text}"));
            }
        }
    }

    /// Returns how the service kept its contract.
    pub(crate) fn report(&self) -> ServiceReport {
        let observed = self.lock();
        ServiceReport {
            responses: observed.responses,
            breaches: observed.breaches.values().cloned().collect(),
        }
    }

    /// Forgets how the service kept its contract. The recording goes on.
    pub(crate) fn forget(&self) {
        let mut observed = self.lock();
        observed.responses = 0;
        observed.breaches.clear();
    }

    /// Returns the recording, as JSON for `--seed` and `--faults`.
    #[cfg(feature = "cli")]
    pub(crate) fn recording(&self) -> String {
        self.lock().recorder.to_json()
    }

    /// Every step leaves the counts consistent, so a panic does no harm.
    fn lock(&self) -> MutexGuard<'_, ServiceRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a real service kept its contract. Its text form names each broken term with examples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServiceReport {
    /// The number of responses.
    pub responses: u64,
    /// The broken terms of the contract.
    pub breaches: Vec<ServiceBreach>,
}

/// A broken term of the contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServiceBreach {
    /// The term, such as `schema` or `rate-headers`.
    pub term: String,
    /// The number of times that it was broken.
    pub count: u64,
    /// The first requests concerned, with what was wrong.
    pub examples: Vec<String>,
}

impl ServiceReport {
    /// Returns the names of all terms.
    pub(crate) fn terms() -> impl Iterator<Item = String> {
        Term::VARIANTS.iter().map(ToString::to_string)
    }

    /// Returns whether the service broke nothing.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.breaches.is_empty()
    }
}

impl fmt::Display for ServiceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.responses == 1 { "" } else { "s" };
        let checked = format!("{} response{plural} checked", self.responses);
        if self.is_kept() {
            return writeln!(f, "service: contract kept, {checked}");
        }
        let mut broken = String::new();
        for breach in &self.breaches {
            let comma = if broken.is_empty() { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(broken, "{comma}{} {}", breach.term, breach.count);
        }
        writeln!(f, "service: contract broken, {checked} ({broken})")?;
        for ServiceBreach {
            term,
            count,
            examples,
        } in &self.breaches
        {
            writeln!(f, "\n[{term}] {count}×")?;
            for example in examples {
                writeln!(f, "  {example}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_checked_responses_apart_from_the_broken_terms() {
        let breach = |term: &str, count| ServiceBreach {
            term: term.to_owned(),
            count,
            examples: vec!["GET /v1/pets: `x`".to_owned()],
        };
        let report = ServiceReport {
            responses: 11,
            breaches: vec![breach("schema", 2), breach("status", 1)],
        };
        assert_eq!(
            report.to_string(),
            "service: contract broken, 11 responses checked (schema 2, status 1)\n\n\
             [schema] 2×\n  GET /v1/pets: `x`\n\n[status] 1×\n  GET /v1/pets: `x`\n"
        );
    }
}
