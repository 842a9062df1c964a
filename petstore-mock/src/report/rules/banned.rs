//! Sent while banned.

use super::{Rule, Sent, told_to_wait::told_until};
use crate::{
    exchange::Admission,
    report::{
        finding::{About, Finding, Severity},
        per_key::PerKey,
        told::Told,
    },
};

static ABOUT: About = About {
    rule: "banned",
    title: "sent while banned",
    severity: Severity::Violation,
    paragraph: "A key that keeps sending after a 429 may be banned for a while (specification, \
                section 8, rule 4). Who is told so has to wait for the end of the ban, which \
                Retry-After gives. Requests that may have been on their way already are not \
                counted.",
};

/// Until when each key knows it is banned.
#[derive(Debug, Default)]
pub(super) struct Banned(PerKey<Told>);

impl Rule for Banned {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn ended(&mut self, Sent { record, alone }: Sent<'_>, finding: &mut Finding) {
        if record.admission != Admission::Banned {
            return;
        }
        let told = self.0.of(record);
        if let Some(telling) = told.known_to(record, alone) {
            finding.add(|| telling.evidence(record, "before the end of the ban"));
        }
        if let Some(until) = told_until(record) {
            told.tell(record, until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::Client;

    #[test]
    fn who_was_told_of_the_ban_is_found_and_the_one_that_brought_it_on_is_not() {
        let mut client = Client::of("banned");
        client.refused(50);
        client.banned(300);
        assert_eq!(client.count(), 0);
        client.wait(100.0);
        client.banned(200);
        assert_eq!(client.count(), 1);
        assert_eq!(client.finding().evidence()[0].text(), "sent 200 s before the end of the ban");
        client.wait(200.0);
        client.ok();
        assert_eq!(client.count(), 1);
    }

    #[test]
    fn what_may_have_been_on_its_way_is_not_counted() {
        let mut client = Client::of("banned");
        client.opens(30);
        for connection in 1..30 {
            client.on(connection).banned(300);
        }
        assert_eq!(client.count(), 0);
    }
}
