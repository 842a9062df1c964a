//! A client for the tests of the rules: it makes exchanges up, one after another, and feeds them to
//! one rule. Nothing passes by itself: neither the mock's time nor the real one.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};

use super::{Rule, Sent, all};
use crate::{
    exchange::{Admission, Captured, Fields, KeyFlaw, KeyLabel, Moment, Record},
    operation::Operation,
    plan::Plan,
    quota::Rate,
    real_time,
    report::{finding::Finding, pace::Pace},
};

/// 2026-01-01T00:00:10Z: 50 seconds before the minute ends.
const NOW: u64 = 1_767_225_610;

/// A client and the rule that watches it.
pub(in crate::report) struct Client {
    rule: Box<dyn Rule>,
    finding: Finding,
    pace: Pace,
    order: u64,
    number: u64,
    at: Duration,
    real: Instant,
    connection: u64,
    /// When each connection was opened, and its requests so far.
    connections: HashMap<u64, (u64, u64)>,
    key: u32,
    remaining: u32,
    method: Method,
    target: String,
    body: &'static str,
    fields: HeaderMap,
    pub(super) flaw: Option<KeyFlaw>,
    pub(super) credentials: u64,
    pub(super) faults: Vec<Cow<'static, str>>,
}

impl Client {
    /// Returns a client that asks for `GET /v1/pets` with the key 1 on one connection.
    pub(in crate::report) fn of(rule: &str) -> Self {
        let rule = all().into_iter().find(|one| one.about().rule == rule).expect(rule);
        let mut fields = HeaderMap::new();
        fields.insert("user-agent", HeaderValue::from_static("test/1"));
        let mut client = Self {
            finding: Finding::none(rule.about()),
            rule,
            pace: Pace::default(),
            order: 0,
            number: 0,
            at: Duration::from_secs(NOW),
            real: real_time::now(),
            connection: 0,
            connections: HashMap::new(),
            key: 1,
            remaining: 9,
            method: Method::GET,
            target: "/v1/pets".to_owned(),
            body: "",
            fields,
            flaw: None,
            credentials: 0,
            faults: Vec::new(),
        };
        client.reconnect();
        client
    }

    pub(super) fn finding(&self) -> &Finding {
        &self.finding
    }

    pub(super) fn count(&self) -> u64 {
        self.finding.count()
    }

    /// Lets the mock's time pass.
    pub(super) fn wait(&mut self, seconds: f64) {
        self.at += Duration::from_secs_f64(seconds);
    }

    /// Lets the real time pass.
    pub(super) fn real(&mut self, seconds: f64) {
        self.real += Duration::from_secs_f64(seconds);
    }

    /// Opens the connections 1 to `last`, unless they are open.
    pub(super) fn opens(&mut self, last: u64) {
        for connection in 1..=last {
            self.order += 1;
            self.connections.entry(connection).or_insert((self.order, 0));
        }
    }

    /// Sends on this connection from now on.
    pub(super) fn on(&mut self, connection: u64) -> &mut Self {
        self.connection = connection;
        self
    }

    /// Sends on a new connection from now on.
    pub(super) fn reconnect(&mut self) -> &mut Self {
        let next = self.connections.len() as u64 + 1;
        self.opens(next);
        self.on(next)
    }

    /// Sends with this key from now on.
    pub(super) fn key(&mut self, number: u32) -> &mut Self {
        self.key = number;
        self
    }

    /// Is told from now on that so many requests are left.
    pub(super) fn left(&mut self, remaining: u32) -> &mut Self {
        self.remaining = remaining;
        self
    }

    /// Sends this from now on.
    pub(super) fn asks(&mut self, method: Method, target: &str, body: &'static str) -> &mut Self {
        (self.method, self.target, self.body) = (method, target.to_owned(), body);
        self
    }

    /// Sends no such header from now on.
    pub(in crate::report) fn without(&mut self, header: &str) -> &mut Self {
        self.fields.remove(header);
        self
    }

    pub(super) fn ok(&mut self) {
        self.sends_ok();
    }

    /// Is answered 200, and returns the exchange.
    pub(in crate::report) fn sends_ok(&mut self) -> Record {
        self.exchange(Admission::Admitted, Some(200), &[])
    }

    pub(super) fn refused(&mut self, seconds: u32) {
        self.is_refused(seconds);
    }

    /// Is answered 429, and returns the exchange.
    pub(in crate::report) fn is_refused(&mut self, seconds: u32) -> Record {
        let retry_after = seconds.to_string();
        self.exchange(Admission::Refused, Some(429), &[("retry-after", &retry_after)])
    }

    pub(super) fn banned(&mut self, seconds: u32) {
        let retry_after = seconds.to_string();
        self.exchange(Admission::Banned, Some(429), &[("retry-after", &retry_after)]);
    }

    pub(super) fn answer(&mut self, status: u16, fields: &[(&'static str, &str)]) {
        self.exchange(Admission::Admitted, Some(status), fields);
    }

    /// Sends and gets no answer.
    pub(super) fn unanswered(&mut self) {
        self.exchange(Admission::Admitted, None, &[]);
    }

    /// Sends, and the answer gets lost once it is on its way.
    pub(super) fn loses(&mut self) {
        let record = self.exchange(Admission::Admitted, Some(200), &[]);
        self.rule.lost(&record);
    }

    fn moment(&mut self) -> Moment {
        self.order += 1;
        Moment { order: self.order, at: self.at, real: self.real }
    }

    fn exchange(
        &mut self,
        admission: Admission,
        status: Option<u16>,
        reply: &[(&'static str, &str)],
    ) -> Record {
        self.number += 1;
        let (arrived, ended) = (self.moment(), self.moment());
        let line = self.connections.get_mut(&self.connection).expect("it was opened");
        line.1 += 1;
        let reset = self.at.as_secs() / 60 * 60 + 60;
        let value = |text: &str| HeaderValue::from_str(text).unwrap();
        let reply: HeaderMap =
            reply.iter().map(|(name, text)| (HeaderName::from_static(name), value(text))).collect();
        let record = Record {
            number: self.number,
            connection: self.connection,
            opened: Moment { order: line.0, ..arrived },
            nth: line.1,
            arrived,
            ended,
            method: self.method.clone(),
            version: Version::HTTP_11,
            target: self.target.as_str().into(),
            fields: Fields::of(&self.fields),
            body: Captured {
                digest: Some(crc(self.body)),
                ..Captured::whole(&Bytes::from_static(self.body.as_bytes()))
            },
            key: (self.key > 0)
                .then(|| Arc::new(KeyLabel::new(self.key, Plan::Free, "key", false))),
            flaw: self.flaw,
            credentials: self.credentials,
            operation: Operation::of(&self.method, &self.target),
            admission,
            rate: Some(Rate { limit: 60, remaining: self.remaining, reset }),
            status,
            reply_fields: Fields::of(&reply),
            reply_body: Captured::default(),
            added: None,
            faults: self.faults.clone(),
            lost: AtomicBool::new(status.is_none()),
        };
        let alone = self.pace.is_alone(&record);
        self.rule.ended(Sent { record: &record, alone }, &mut self.finding);
        record
    }
}

fn crc(text: &str) -> u64 {
    text.bytes().fold(7, |sum, byte| sum * 31 + u64::from(byte))
}
