//! Sent at `Remaining: 0`.

use std::time::Duration;

use super::{Rule, Sent, told_to_wait::told_until};
use crate::{
    exchange::{Admission, Record},
    report::{
        finding::{About, Finding, Severity},
        per_key::PerKey,
        told::Told,
    },
};

static ABOUT: About = About {
    rule: "remaining-zero",
    title: "sent at Remaining: 0",
    severity: Severity::Warning,
    paragraph: "An answer with X-RateLimit-Remaining: 0 says that the next request will be refused \
                until X-RateLimit-Reset has come (specification, section 8, rules 1 and 2). Sending \
                it all the same brings a 429 and nothing else. Only refused requests are counted, \
                and none that may have been on its way already.",
};

/// Until when each key knows that nothing is left.
#[derive(Debug, Default)]
pub(super) struct RemainingZero(PerKey<Told>);

impl Rule for RemainingZero {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn ended(&mut self, Sent { record, alone }: Sent<'_>, finding: &mut Finding) {
        let told = self.0.of(record);
        let known = told.known_to(record, alone);
        if let (Admission::Refused, Some(telling)) = (record.admission, known) {
            finding.add(|| telling.evidence(record, "before the reset that was told"));
        }
        if told_until(record).is_some() {
            // From here on it is another rule's: the client has been told to wait.
            told.forget();
        } else if let Some(reset) = nothing_left(record) {
            told.tell(record, reset);
        }
    }
}

/// Returns when the quota resets, if an answer says that nothing is left of it.
fn nothing_left(record: &Record) -> Option<Duration> {
    let rate = record.rate?;
    if record.status.is_none() || record.is_lost() {
        return None;
    }
    if record.faults.is_empty() {
        return (rate.remaining == 0).then(|| Duration::from_secs(rate.reset));
    }
    // A fault may have changed what the client was told.
    let field = |name| str::from_utf8(record.reply_fields.get(name)?).ok()?.parse().ok();
    let is_empty = field("x-ratelimit-remaining") == Some(0_u64);
    is_empty.then(|| field("x-ratelimit-reset").map(Duration::from_secs)).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::kit::Client;

    #[test]
    fn who_was_told_that_nothing_is_left_and_sends_is_found_once() {
        let mut client = Client::of("remaining-zero");
        client.left(1).ok();
        client.left(0).ok();
        client.wait(10.0);
        client.refused(40);
        client.refused(40);
        assert_eq!(client.count(), 1, "after the 429 it is another rule's");
        let finding = client.finding();
        assert_eq!(finding.evidence()[0].requests(), [2, 3]);
        assert_eq!(finding.evidence()[0].text(), "sent 40 s before the reset that was told");
    }

    #[test]
    fn who_waits_for_the_reset_or_is_let_in_is_not() {
        let mut client = Client::of("remaining-zero");
        client.left(0).ok();
        client.wait(50.0);
        client.left(0).ok();
        client.wait(1.0);
        client.ok();
        assert_eq!(client.count(), 0);
    }

    #[test]
    fn what_may_have_been_on_its_way_is_not_counted() {
        let mut client = Client::of("remaining-zero");
        client.opens(30);
        client.left(0).on(1).ok();
        client.on(2).refused(40);
        assert_eq!(client.count(), 0);
    }
}
