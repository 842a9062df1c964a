//! A request that was the client's mistake, sent again unchanged.

use std::{collections::VecDeque, time::Duration};

use http::Method;

use super::{Rule, Sent};
use crate::report::finding::{About, Evidence, Finding, Severity};

/// How long such a request is remembered, and how many of them.
const MEMORY: Duration = Duration::from_secs(30);
const MOST: usize = 64;

/// How often it may be sent: someone else may ask the same, and a key may be asked for again.
const ALLOWED: usize = 2;

static ABOUT: About = About {
    rule: "repeated-error",
    title: "a request that failed sent again unchanged",
    severity: Severity::Warning,
    paragraph: "A status 4xx says that the request itself is wrong (RFC 9110, section 15.5): sent \
                again unchanged it fails again, and uses up quota. Counted is every time from the \
                third on that the same request is answered 4xx within 30 s. 408, 425 and 429 are \
                meant to be sent again, and a 404 may be asked for again once something was added.",
};

/// The requests that failed lately.
#[derive(Debug, Default)]
pub(super) struct RepeatedError(VecDeque<Failed>);

#[derive(Debug)]
struct Failed {
    fingerprint: u64,
    status: u16,
    /// The first ones, by their numbers.
    requests: Vec<u64>,
    at: Duration,
}

impl Rule for RepeatedError {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn ended(&mut self, Sent { record, .. }: Sent<'_>, finding: &mut Finding) {
        let Some(status) = record.status else { return };
        if status == 201 && record.method == Method::POST {
            self.0.retain(|failed| failed.status != 404);
        }
        if !(400..500).contains(&status) || matches!(status, 408 | 425 | 429) {
            return;
        }
        let now = record.arrived.at;
        self.0.retain(|failed| now.saturating_sub(failed.at) <= MEMORY);
        let fingerprint = record.fingerprint();
        let mut failed = match self.0.iter().position(|one| one.fingerprint == fingerprint) {
            Some(place) => self.0.remove(place),
            None => None,
        }
        .unwrap_or(Failed { fingerprint, status, requests: Vec::new(), at: now });
        if failed.requests.len() >= ALLOWED {
            finding.add(|| Evidence {
                requests: [&failed.requests[..], &[record.number]].concat(),
                at: now,
                by: None,
                text: format!("{} was answered {status} again", record.name()),
            });
        } else {
            failed.requests.push(record.number);
        }
        (failed.at, failed.status) = (now, status);
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(failed);
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::super::kit::Client;

    #[test]
    fn the_third_time_is_found() {
        let mut client = Client::of("repeated-error");
        client.asks(Method::POST, "/v1/pets", "no json");
        for _ in 0..2 {
            client.answer(400, &[]);
        }
        assert_eq!(client.count(), 0);
        client.answer(400, &[]);
        let evidence = &client.finding().evidence()[0];
        assert_eq!(evidence.requests(), [1, 2, 3]);
        assert_eq!(evidence.text(), "createPet was answered 400 again");
        client.answer(400, &[]);
        assert_eq!(client.finding().evidence()[1].requests(), [1, 2, 4]);
    }

    #[test]
    fn what_changed_or_comes_much_later_or_is_meant_to_be_repeated_is_not() {
        let mut client = Client::of("repeated-error");
        for (target, status) in [("/v1/pets?limit=0", 400), ("/v1/pets?limit=-1", 400)] {
            client.asks(Method::GET, target, "");
            client.answer(status, &[]);
            client.answer(status, &[]);
            client.wait(31.0);
        }
        client.answer(400, &[]);
        for credentials in 0..9 {
            client.credentials = credentials;
            client.answer(401, &[]);
        }
        for status in [408, 425, 429, 500, 200] {
            for _ in 0..5 {
                client.answer(status, &[]);
            }
        }
        assert_eq!(client.count(), 0);
    }

    #[test]
    fn what_was_not_there_may_be_asked_for_again_once_something_was_added() {
        let mut client = Client::of("repeated-error");
        for _ in 0..5 {
            client.asks(Method::GET, "/v1/pets/26", "").answer(404, &[]);
            client.asks(Method::POST, "/v1/pets", "rex").answer(201, &[]);
        }
        assert_eq!(client.count(), 0);
    }
}
