//! `key-in-url`, `key-scheme`, `deprecated`, `keep-alive` and `user-agent`: rules about single
//! requests and connections.

use std::{
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    sync::Arc,
    time::Duration,
};

use crate::{
    exchange::{KeyFlaw, Moment, Record},
    operation::{Operation, REMOVAL},
    report::{
        breach::{Breach, Ruling, Series},
        facts::{Facts, is_close},
        rule::Rule,
    },
};

/// This many consecutive requests on new connections cause a notice.
const NEW_CONNECTIONS: u64 = 10;
/// A client that pauses for longer may close its connection.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The use of connections by one client.
#[derive(Debug, Default)]
pub(in crate::report) struct Hygiene {
    on_new_connections: Series,
    last_end: Option<Moment>,
}

impl Hygiene {
    pub(in crate::report) fn judge(
        &mut self,
        record: &Record,
        request: &Arc<Facts>,
        found: &mut Ruling,
    ) {
        judge_key(record, request, found);
        if record.arrival.operation == Some(Operation::GetPet) {
            found.note(Rule::Deprecated, request, |request| {
                days_left(request.arrived().at())
            });
        }
        self.judge_connection(record, request, found);
    }

    fn judge_connection(&mut self, record: &Record, request: &Arc<Facts>, found: &mut Ruling) {
        let last_end = self.last_end.replace(*request.ended());
        let is_soon = last_end.is_none_or(|end| request.arrived().gap_since(&end) <= MAX_PAUSE);
        let is_first = record.caller.nth == 1;
        if !is_first || request.may_be_several() || !is_soon || is_cut_off(record, request) {
            if self.on_new_connections.count() > 0 {
                self.on_new_connections = Series::default();
            }
            return;
        }
        self.on_new_connections.push(request);
        if self.on_new_connections.count() == NEW_CONNECTIONS {
            let text =
                format!("{NEW_CONNECTIONS} requests in a row on {NEW_CONNECTIONS} connections");
            let series = std::mem::take(&mut self.on_new_connections);
            found.add(Rule::KeepAlive, Breach::new(0, text, series));
        }
    }
}

/// Judges how the key was sent. A key in the URL counts once per client and parameter.
fn judge_key(record: &Record, request: &Arc<Facts>, found: &mut Ruling) {
    match &record.arrival.flaw {
        Some(KeyFlaw::InUrl(parameter)) => {
            let text = if parameter.is_empty() {
                "a segment of the path contains a key".to_owned()
            } else {
                format!("the query parameter `{parameter}` contains a key")
            };
            let id = BuildHasherDefault::<DefaultHasher>::default().hash_one(parameter);
            found.add(Rule::KeyInUrl, Breach::brief(id, text, request));
        }
        Some(KeyFlaw::OtherScheme) if request.status() == Some(401) => {
            found.note(Rule::KeyScheme, request, |_| {
                "a valid key was not sent as a bearer token".to_owned()
            });
        }
        Some(KeyFlaw::OtherScheme) | None => {}
    }
}

/// Whether the server closed the connection.
fn is_cut_off(record: &Record, request: &Facts) -> bool {
    request.status().is_none()
        || !record.faults.is_empty()
        || request.closes_connection() && !is_close(record.fields.get("connection"))
}

fn days_left(now: Duration) -> String {
    match REMOVAL.saturating_sub(now).as_secs().div_ceil(86_400) {
        0 => "the operation was removed".to_owned(),
        1 => "1 day left".to_owned(),
        days => format!("{days} days left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_rounded_up_until_the_removal() {
        for (before, text) in [
            (0, "the operation was removed"),
            (1, "1 day left"),
            (86_400, "1 day left"),
            (86_401, "2 days left"),
        ] {
            assert_eq!(days_left(REMOVAL - Duration::from_secs(before)), text);
        }
        assert_eq!(
            days_left(REMOVAL + Duration::from_secs(1)),
            "the operation was removed"
        );
    }
}
