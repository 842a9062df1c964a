//! A burst beyond what was allowed.

use std::time::Duration;

use super::{Rule, Sent, told_to_wait::told_until};
use crate::{
    exchange::Admission,
    report::{
        finding::{About, Evidence, Finding, Severity},
        per_key::PerKey,
    },
};

/// How many refused at once are put up with: any client that has several on their way may meet the
/// end of a quota with some of them.
const FORGIVEN: usize = 5;

static ABOUT: About = About {
    rule: "burst",
    title: "a burst beyond what is allowed",
    severity: Severity::Warning,
    paragraph: "Who sends more at once than the quota has left gets the rest of them refused: at a \
                start, or after a reset, when everyone who waits is let go at the same moment. What \
                is left is told with every answer (specification, section 8, rule 1), so send one \
                request first and then as many as its answer allows. More than 5 refused at once \
                are counted as one burst.",
};

/// The refusals of each key that were sent at once.
#[derive(Debug, Default)]
pub(super) struct Burst(PerKey<Refused>);

#[derive(Debug, Default)]
struct Refused {
    /// When the quota resets that they met.
    until: Duration,
    requests: Vec<u64>,
}

impl Rule for Burst {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn ended(&mut self, Sent { record, alone }: Sent<'_>, finding: &mut Finding) {
        // What is sent one at a time, and too early, is another rule's.
        if record.admission != Admission::Refused || alone {
            return;
        }
        let Some(until) = told_until(record) else { return };
        let refused = self.0.of(record);
        if refused.until != until {
            *refused = Refused { until, requests: Vec::new() };
        }
        if refused.requests.len() > FORGIVEN {
            return;
        }
        refused.requests.push(record.number);
        if refused.requests.len() > FORGIVEN {
            finding.add(|| Evidence {
                requests: refused.requests.clone(),
                at: record.arrived.at,
                by: None,
                text: "these and maybe more were refused at once".to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::Client;

    #[test]
    fn many_refused_at_once_are_one_finding_for_each_window() {
        let mut client = Client::of("burst");
        client.opens(100);
        for window in 1..=2 {
            for connection in 1..=100 {
                client.on(connection);
                if connection <= 60 { client.ok() } else { client.refused(50) }
            }
            assert_eq!(client.count(), window);
            client.wait(60.0);
        }
        assert_eq!(client.finding().evidence()[0].requests(), [61, 62, 63, 64, 65, 66]);
    }

    #[test]
    fn a_probe_and_then_as_many_as_its_answer_allows_are_not() {
        let mut client = Client::of("burst");
        client.opens(60);
        for _ in 0..3 {
            client.on(1).ok();
            for connection in 2..=60 {
                client.on(connection).ok();
            }
            client.wait(60.0);
        }
        assert_eq!(client.count(), 0);
    }

    #[test]
    fn some_that_meet_the_end_of_a_quota_are_put_up_with() {
        let mut client = Client::of("burst");
        client.opens(5);
        for connection in 1..=5 {
            client.on(connection).refused(50);
        }
        assert_eq!(client.count(), 0);
    }
}
