//! A POST repeated although the first one may have been carried out.

use std::{collections::VecDeque, time::Duration};

use http::Method;

use super::{Rule, Sent};
use crate::{
    exchange::Record,
    report::{
        finding::{About, Evidence, Finding, Severity},
        write::seconds,
    },
};

/// How long such a POST is remembered, and how many of them.
const MEMORY: Duration = Duration::from_secs(300);
const MOST: usize = 256;

static ABOUT: About = About {
    rule: "repeated-post",
    title: "a POST repeated after an unknown outcome",
    severity: Severity::Violation,
    paragraph: "Where the answer to a POST was lost, or was a 5xx, the animal may have been added all \
                the same, and the service knows no idempotency key: sending the same body again may \
                add it twice (RFC 9110, section 9.2.2). Look whether it is there first. Counted is \
                the same body with the same key within 5 minutes; a client that means to add two \
                animals that are alike gets the benefit of no doubt.",
};

/// The POSTs of unknown outcome.
#[derive(Debug, Default)]
pub(super) struct RepeatedPost(VecDeque<Unknown>);

#[derive(Debug)]
struct Unknown {
    fingerprint: u64,
    number: u64,
    order: u64,
    at: Duration,
}

impl RepeatedPost {
    fn remember(&mut self, record: &Record) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(Unknown {
            fingerprint: record.fingerprint(),
            number: record.number,
            order: record.ended.order,
            at: record.ended.at,
        });
    }
}

impl Rule for RepeatedPost {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn ended(&mut self, Sent { record, .. }: Sent<'_>, finding: &mut Finding) {
        if record.method != Method::POST {
            return;
        }
        if !self.0.is_empty() {
            let now = record.arrived;
            self.0.retain(|unknown| now.at.saturating_sub(unknown.at) <= MEMORY);
            let fingerprint = record.fingerprint();
            let same = |one: &Unknown| one.fingerprint == fingerprint && one.order < now.order;
            if let Some(unknown) = self.0.iter().position(same).and_then(|at| self.0.remove(at)) {
                let later = now.at.saturating_sub(unknown.at);
                finding.add(|| Evidence {
                    requests: vec![unknown.number, record.number],
                    at: now.at,
                    by: Some(later),
                    text: format!("the same body was sent again after {}", seconds(later)),
                });
            }
        }
        let may_have_been_done = match record.status {
            _ if record.is_lost() => true,
            // 501 and 505 say that it was not.
            Some(status) => status >= 500 && !matches!(status, 501 | 505),
            None => true,
        };
        if may_have_been_done {
            self.remember(record);
        }
    }

    fn lost(&mut self, record: &Record) {
        if record.method == Method::POST {
            self.remember(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::super::kit::Client;

    fn client() -> Client {
        let mut client = Client::of("repeated-post");
        client.asks(Method::POST, "/v1/pets", "rex");
        client
    }

    #[test]
    fn the_same_post_after_an_answer_that_was_lost_or_a_5xx_is_found() {
        let ways: [fn(&mut Client); 4] = [
            Client::unanswered,
            Client::loses,
            |client| client.answer(500, &[]),
            |client| client.answer(503, &[]),
        ];
        for way in ways {
            let mut client = client();
            way(&mut client);
            client.wait(2.0);
            client.ok();
            let evidence = &client.finding().evidence()[0];
            assert_eq!(evidence.requests(), [1, 2]);
            assert_eq!(evidence.text(), "the same body was sent again after 2 s");
            client.ok();
            assert_eq!(client.count(), 1, "each unknown outcome counts once");
        }
    }

    #[test]
    fn a_post_that_certainly_was_not_carried_out_may_be_sent_again() {
        let mut client = client();
        client.refused(50);
        client.answer(400, &[]);
        client.answer(401, &[]);
        client.answer(501, &[]);
        client.ok();
        assert_eq!(client.count(), 0);
    }

    #[test]
    fn others_and_later_ones_and_other_methods_are_not_the_same() {
        let mut client = client();
        client.unanswered();
        client.asks(Method::POST, "/v1/pets", "tom").ok();
        client.asks(Method::POST, "/v1/pets", "rex").key(2).ok();
        client.key(1).wait(301.0);
        client.ok();
        client.asks(Method::GET, "/v1/pets", "").unanswered();
        client.ok();
        assert_eq!(client.count(), 0);
    }
}
