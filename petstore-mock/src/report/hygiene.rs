//! `key-in-url`, `key-scheme`, `deprecated` and `keep-alive`: rules about single requests and
//! connections.

use std::{
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    time::Duration,
};

use super::{
    finding::{Evidence, Ruling},
    request::JudgedRequest,
    rule::Rule,
};
use crate::{
    exchange::{KeyFlaw, Moment, Record},
    operation::{Operation, REMOVAL},
};

/// The number of consecutive requests on new connections for a notice.
const NEW_CONNECTIONS: usize = 10;
/// A client that sends less often may close its connection.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The use of connections by one client.
#[derive(Debug, Default)]
pub(super) struct Hygiene {
    on_new_connections: Vec<JudgedRequest>,
    last_end: Option<Moment>,
}

impl Hygiene {
    pub(super) fn judge(&mut self, record: &Record, request: &JudgedRequest, found: &mut Ruling) {
        match &record.arrival.flaw {
            Some(KeyFlaw::InUrl(parameter)) => {
                found.add(Rule::KeyInUrl, key_in_url(parameter, request));
            }
            Some(KeyFlaw::OtherScheme) if request.status == Some(401) => {
                let text = "a valid key was not sent as a bearer token";
                found.note(Rule::KeyScheme, request, text);
            }
            _ => {}
        }
        if record.arrival.operation == Some(Operation::GetPet) {
            found.note(Rule::Deprecated, request, days_left(request.arrived.at));
        }
        self.judge_connection(record, request, found);
    }

    fn judge_connection(&mut self, record: &Record, request: &JudgedRequest, found: &mut Ruling) {
        let pause = self
            .last_end
            .map_or(Duration::ZERO, |end| request.arrived.gap_since(&end));
        self.last_end = Some(request.ended);
        let is_alone = request.width == 1;
        if record.caller.nth > 1 || !is_alone || pause > MAX_PAUSE || is_cut_off(record, request) {
            self.on_new_connections.clear();
            return;
        }
        self.on_new_connections.push(request.clone());
        if self.on_new_connections.len() == NEW_CONNECTIONS {
            let text =
                format!("{NEW_CONNECTIONS} requests in a row on {NEW_CONNECTIONS} connections");
            let evidence = Evidence::new(0, request, text).show(self.on_new_connections.drain(..));
            found.add(Rule::KeepAlive, evidence);
        }
    }
}

/// Whether the server closed the connection.
fn is_cut_off(record: &Record, request: &JudgedRequest) -> bool {
    let asks = record.fields.get("connection").unwrap_or_default();
    let closes = record.reply_fields.get("connection") == Some(b"close");
    request.status.is_none()
        || !record.faults.is_empty()
        || closes && !asks.trim_ascii().eq_ignore_ascii_case(b"close")
}

/// Returns the evidence of a key in the URL, which counts once per client and parameter.
fn key_in_url(parameter: &str, request: &JudgedRequest) -> Evidence {
    let text = match parameter {
        "" => "a segment of the path contains a key".to_owned(),
        name => format!("the query parameter `{name}` contains a key"),
    };
    let breach = BuildHasherDefault::<DefaultHasher>::default().hash_one(parameter);
    Evidence::new(breach, request, text)
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
