//! Retries that do not back off.

use std::time::Duration;

use super::{Rule, Sent};
use crate::{
    exchange::{Moment, Record},
    report::{
        finding::{About, Evidence, Finding, Severity},
        per_key::PerKey,
        write::seconds,
    },
};

/// Three retries in a row within this time altogether were not held back at all.
const NO_WAIT: Duration = Duration::from_millis(20);
const QUICK: usize = 3;

/// Four waits of about the same length do not grow: none is 1.3 times as long as another.
const EVEN: usize = 4;
const GROWTH: f64 = 1.3;
/// What is repeated less often than this is no retry.
const SELDOM: Duration = Duration::from_secs(30);

static ABOUT: About = About {
    rule: "back-off",
    title: "retries that do not back off",
    severity: Severity::Violation,
    paragraph: "Clients are told to use exponential backoff (specification, section 8, rule 4): to \
                wait before a request is sent again that failed with a 5xx or got no answer, and \
                longer each time. Counted is a request that failed and was sent again 3 times \
                within 20 ms, or 4 times after even waits of less than 30 s; the longer one of the \
                mock's clock and of real time counts. It is judged only while a key sends one request at a time, since \
                a retry and another's first attempt look the same.",
};

/// What each key is retrying.
#[derive(Debug, Default)]
pub(super) struct BackOff(PerKey<Option<Chain>>);

/// A request that failed, and its retries.
#[derive(Debug)]
struct Chain {
    fingerprint: u64,
    /// The last ones, by their numbers: one more than there are waits.
    requests: Vec<u64>,
    waits: Vec<Duration>,
    ended: Moment,
}

impl Chain {
    fn new(record: &Record) -> Self {
        let (requests, waits) = (vec![record.number], Vec::new());
        Self { fingerprint: record.fingerprint(), requests, waits, ended: record.ended }
    }

    fn push(&mut self, record: &Record) {
        if self.waits.len() == EVEN {
            self.waits.remove(0);
            self.requests.remove(0);
        }
        self.waits.push(record.arrived.gap_since(&self.ended));
        self.requests.push(record.number);
        self.ended = record.ended;
    }

    /// Returns what is wrong with the waits, if anything is.
    fn fault(&self) -> Option<String> {
        let last = self.waits.last_chunk::<QUICK>()?;
        let sum = last.iter().sum();
        if sum < NO_WAIT {
            return Some(format!("sent again {QUICK} times within {}", seconds(sum)));
        }
        let waits = self.waits.last_chunk::<EVEN>()?;
        let (shortest, longest) = (waits.iter().min()?, waits.iter().max()?);
        let is_even = longest.as_secs_f64() < shortest.as_secs_f64() * GROWTH && *longest < SELDOM;
        is_even.then(|| format!("sent again {EVEN} times after {} each", seconds(*longest)))
    }
}

impl Rule for BackOff {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn ended(&mut self, Sent { record, alone }: Sent<'_>, finding: &mut Finding) {
        let chain = self.0.of(record);
        let failed = record.is_lost() || record.status.is_none_or(|status| status >= 500);
        if !alone || !failed {
            *chain = None;
            return;
        }
        match chain {
            Some(chain) if chain.fingerprint == record.fingerprint() => {
                chain.push(record);
                if let Some(text) = chain.fault() {
                    let by = chain.waits.last().copied();
                    let requests = std::mem::take(&mut chain.requests);
                    finding.add(|| Evidence { requests, at: record.arrived.at, by, text });
                    *chain = Chain::new(record);
                }
            }
            _ => *chain = Some(Chain::new(record)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::Client;

    /// Fails, and sends again after each of these waits.
    fn retries(waits: &[f64], fail: fn(&mut Client)) -> Client {
        let mut client = Client::of("back-off");
        fail(&mut client);
        for wait in waits {
            client.wait(*wait);
            fail(&mut client);
        }
        client
    }

    fn with_503(client: &mut Client) {
        client.answer(503, &[]);
    }

    #[test]
    fn three_retries_at_once_are_found_whatever_the_failure() {
        let ways: [fn(&mut Client); 2] = [with_503, |client| client.reconnect().unanswered()];
        for way in ways {
            let client = retries(&[0.0, 0.001, 0.002], way);
            assert_eq!(client.count(), 1);
            let evidence = &client.finding().evidence()[0];
            assert_eq!(evidence.requests(), [1, 2, 3, 4]);
            assert_eq!(evidence.text(), "sent again 3 times within 0.003 s");
        }
    }

    #[test]
    fn four_even_waits_are_found_also_after_longer_ones() {
        assert_eq!(retries(&[1.0, 1.1, 0.9, 1.0], with_503).count(), 1);
        assert_eq!(retries(&[9.0, 1.0, 1.0, 1.0, 1.0], with_503).count(), 1);
    }

    #[test]
    fn waits_that_grow_are_not_and_chance_may_shorten_some() {
        assert_eq!(retries(&[0.1, 0.2, 0.4, 0.8, 1.6], with_503).count(), 0);
        assert_eq!(retries(&[0.0, 0.03, 0.001, 0.5], with_503).count(), 0);
        assert_eq!(retries(&[0.0, 0.0], with_503).count(), 0);
        assert_eq!(retries(&[60.0; 9], with_503).count(), 0, "that is no retry any more");
    }

    #[test]
    fn a_wait_in_real_time_counts_where_the_clock_stands_still() {
        let mut client = Client::of("back-off");
        for wait in [0.1, 0.2, 0.4, 0.8] {
            client.answer(500, &[]);
            client.real(wait);
        }
        assert_eq!(client.count(), 0);
    }

    #[test]
    fn a_success_or_another_request_in_between_ends_the_chain() {
        let mut client = Client::of("back-off");
        for _ in 0..9 {
            client.answer(503, &[]);
            client.answer(503, &[]);
            client.ok();
        }
        assert_eq!(client.count(), 0);
    }

    #[test]
    fn many_at_once_are_not_taken_for_retries() {
        let mut client = Client::of("back-off");
        client.opens(50);
        for connection in 1..=50 {
            client.on(connection).answer(503, &[]);
        }
        assert_eq!(client.count(), 0);
    }
}
