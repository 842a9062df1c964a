//! Sent while told to wait.

use std::time::Duration;

use super::{Rule, Sent};
use crate::{
    exchange::{Admission, Record},
    report::{
        finding::{About, Finding, Severity},
        per_key::PerKey,
        told::Told,
    },
};

static ABOUT: About = About {
    rule: "told-to-wait",
    title: "sent while told to wait",
    severity: Severity::Violation,
    paragraph: "Who is answered 429 is to wait for the time given in Retry-After before sending \
                again, with every request of that key (specification, section 8, rule 3); the same \
                goes for a 503 with Retry-After (RFC 9110, section 10.2.3). Repeated requests after \
                a 429 may get the key banned. Requests that may have been on their way already are \
                not counted: those that came within 100 ms on another connection, unless the key \
                sends one at a time.",
};

/// What each key was told.
#[derive(Debug, Default)]
pub(super) struct ToldToWait(PerKey<Told>);

impl Rule for ToldToWait {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn ended(&mut self, Sent { record, alone }: Sent<'_>, finding: &mut Finding) {
        if record.admission == Admission::Banned {
            return;
        }
        let told = self.0.of(record);
        if let Some(telling) = told.known_to(record, alone) {
            finding.add(|| telling.evidence(record, "too early"));
        }
        if let Some(until) = told_until(record) {
            told.tell(record, until);
        }
    }
}

/// Returns until when an answer tells to wait.
pub(super) fn told_until(record: &Record) -> Option<Duration> {
    if !matches!(record.status, Some(429 | 503)) || record.is_lost() {
        return None;
    }
    let text = str::from_utf8(record.reply_fields.get("retry-after")?).ok()?.trim();
    // Counted from when the mock read its clock, and without the fraction: the mock has rounded up,
    // and who goes by `X-RateLimit-Reset` instead must not be earlier than told.
    let after = |seconds| Duration::from_secs(record.arrived.at.as_secs().saturating_add(seconds));
    let date = || httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok();
    text.parse().ok().map(after).or_else(date)
}

#[cfg(test)]
mod tests {
    use super::super::kit::Client;

    #[test]
    fn who_sends_while_retry_after_runs_is_found_with_how_much_too_early_it_was() {
        let mut client = Client::of("told-to-wait");
        client.refused(50);
        client.wait(20.0);
        client.refused(30);
        let finding = client.finding();
        assert_eq!(finding.count(), 1);
        let evidence = &finding.evidence()[0];
        assert_eq!(evidence.requests(), [1, 2]);
        assert_eq!(evidence.by().unwrap().as_secs(), 30);
        assert_eq!(evidence.text(), "sent 30 s too early");
    }

    #[test]
    fn who_waits_is_not() {
        let mut client = Client::of("told-to-wait");
        for _ in 0..3 {
            client.refused(50);
            client.wait(50.0);
            client.ok();
        }
        assert_eq!(client.count(), 0);
    }

    #[test]
    fn who_goes_by_the_reset_may_be_earlier_than_the_rounded_seconds() {
        let mut client = Client::of("told-to-wait");
        client.wait(0.25);
        client.refused(50);
        client.wait(49.75);
        client.ok();
        assert_eq!(client.count(), 0);
        client.refused(50);
        client.wait(49.5);
        client.ok();
        assert_eq!(client.finding().evidence()[0].text(), "sent 0.5 s too early");
    }

    #[test]
    fn what_may_have_been_on_its_way_is_not_counted() {
        let mut client = Client::of("told-to-wait");
        client.opens(40);
        for connection in 1..40 {
            client.on(connection).refused(50);
        }
        assert_eq!(client.count(), 0);
        client.on(7).refused(50);
        assert_eq!(client.count(), 1, "on this connection it was told before");
        client.real(0.2);
        client.on(40).refused(50);
        assert_eq!(client.count(), 2, "by now every connection is known to know");
    }

    #[test]
    fn one_at_a_time_on_new_connections_is_no_excuse() {
        let mut client = Client::of("told-to-wait");
        client.refused(50);
        client.reconnect().refused(50);
        assert_eq!(client.count(), 1);
    }

    #[test]
    fn keys_do_not_wait_for_one_another() {
        let mut client = Client::of("told-to-wait");
        client.key(1).refused(50);
        client.key(2).ok();
        assert_eq!(client.count(), 0);
        client.key(1).ok();
        assert_eq!(client.count(), 1);
    }

    #[test]
    fn every_form_of_retry_after_counts_and_what_is_none_does_not() {
        for (form, count) in [
            ("50", 1),
            ("Thu, 01 Jan 2026 00:01:00 GMT", 1),
            ("Thursday, 01-Jan-26 00:01:00 GMT", 1),
            ("Wed, 31 Dec 2025 00:00:00 GMT", 0),
            ("soon", 0),
            ("0", 0),
        ] {
            for status in [429, 503] {
                let mut client = Client::of("told-to-wait");
                client.answer(status, &[("retry-after", form)]);
                client.ok();
                assert_eq!(client.count(), count, "{status} {form}");
            }
        }
        let mut client = Client::of("told-to-wait");
        client.answer(500, &[("retry-after", "50")]);
        client.ok();
        assert_eq!(client.count(), 0);
    }
}
