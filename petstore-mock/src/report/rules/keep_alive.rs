//! A connection for every request.

use std::time::Duration;

use super::{Rule, Sent};
use crate::report::{
    finding::{About, Evidence, Finding, Severity},
    per_key::PerKey,
};

/// So many connections in a row, each for one request, are too many.
const MANY: usize = 10;

/// Whoever sends less often than this may let a connection go. In real time.
const OFTEN: Duration = Duration::from_secs(5);

static ABOUT: About = About {
    rule: "keep-alive",
    title: "a new connection for every request",
    severity: Severity::Notice,
    paragraph: "Opening a connection costs more time than most requests, and with TLS much more. \
                HTTP keeps connections open unless told otherwise (RFC 9112, section 9.3): make one \
                client and use it for all requests. Counted are 10 requests in a row, one after \
                another and no more than 5 s apart, that each came on a connection of their own.",
};

/// The last requests of each key that had a connection of their own.
#[derive(Debug, Default)]
pub(super) struct KeepAlive(PerKey<Row>);

#[derive(Debug, Default)]
struct Row {
    requests: Vec<u64>,
    last: Option<std::time::Instant>,
}

impl Rule for KeepAlive {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn ended(&mut self, Sent { record, alone }: Sent<'_>, finding: &mut Finding) {
        let row = self.0.of(record);
        let pause = row.last.map(|last| record.arrived.real.saturating_duration_since(last));
        row.last = Some(record.ended.real);
        // Where the server ended the connection, the client had no choice.
        let had_no_choice = || {
            record.is_lost()
                || !record.faults.is_empty()
                || record.reply_fields.get("connection") == Some(b"close") && !asks_to_close(record)
        };
        if !alone || record.nth > 1 || had_no_choice() || pause.is_some_and(|pause| pause > OFTEN) {
            row.requests.clear();
            return;
        }
        row.requests.push(record.number);
        if row.requests.len() == MANY {
            let requests = std::mem::take(&mut row.requests);
            finding.add(|| Evidence {
                requests,
                at: record.arrived.at,
                by: None,
                text: format!("{MANY} requests on {MANY} connections"),
            });
        }
    }
}

fn asks_to_close(record: &crate::exchange::Record) -> bool {
    record.fields.get("connection").is_some_and(|value| value.eq_ignore_ascii_case(b"close"))
}

#[cfg(test)]
mod tests {
    use super::super::kit::Client;

    #[test]
    fn ten_connections_for_ten_requests_are_found() {
        let mut client = Client::of("keep-alive");
        for _ in 0..30 {
            client.reconnect().ok();
        }
        assert_eq!(client.count(), 3);
        assert_eq!(client.finding().evidence()[0].requests().len(), 10);
    }

    #[test]
    fn connections_that_are_used_again_are_not() {
        let mut client = Client::of("keep-alive");
        for _ in 0..30 {
            client.reconnect().ok();
            client.ok();
        }
        assert_eq!(client.count(), 0);
    }

    #[test]
    fn many_at_once_need_many_connections() {
        let mut client = Client::of("keep-alive");
        client.opens(50);
        for connection in 1..=50 {
            client.on(connection).ok();
        }
        assert_eq!(client.count(), 0);
    }

    #[test]
    fn who_sends_seldom_or_is_cut_off_may_connect_anew() {
        let mut client = Client::of("keep-alive");
        for _ in 0..30 {
            client.reconnect().ok();
            client.real(6.0);
        }
        for _ in 0..30 {
            client.reconnect().answer(413, &[("connection", "close")]);
        }
        client.faults = vec!["reset".into()];
        for _ in 0..30 {
            client.reconnect().ok();
        }
        assert_eq!(client.count(), 0);
    }
}
