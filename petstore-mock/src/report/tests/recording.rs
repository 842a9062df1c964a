//! Recordings, and how they are judged.
//!
//! A recording begins with `= NAME: RULES`. Each line is one exchange: when it arrived, how long it
//! took, its connection (and how long before that was opened, if it is the first one there), method,
//! target and status (`-`: no answer), and what else is of interest, a body last:
//!
//! `1.2+0.003 1<0.001 GET /v1/pets 429 wait=50 remaining=0 reset=60`
//!
//! `! TIME` is a boundary, such as a reset, `~ TIME` clears the report, and `x TIME CONNECTION`
//! closes a connection. Others are closed after their last exchange. All times are in seconds.

use std::{
    collections::{BTreeSet, HashMap},
    net::Ipv4Addr,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{HeaderName, Method, Version};

use crate::{
    clock::real_time,
    exchange::{
        Admission, Arrival, Caller, Captured, Fields, KeyFlaw, KeyLabel, Moment, Record, Sender,
    },
    operation::Operation,
    plan::Plan,
    report::{Audit, Facts, Report, Severity},
};

/// 2026-01-01T00:00:00Z, within a second of which every recording begins.
const START: Duration = Duration::from_secs(1_767_225_600);

/// A recording with its name and the rules that it breaks.
pub(super) struct Recording<'a> {
    pub(super) name: &'a str,
    pub(super) rules: BTreeSet<&'a str>,
    pub(super) lines: Vec<&'a str>,
}

impl<'a> Recording<'a> {
    /// Returns the recordings in a text.
    pub(super) fn all(text: &'a str) -> impl Iterator<Item = Self> {
        text.split("\n= ").skip(1).map(|recording| {
            let mut lines = recording.lines().filter(|line| !line.is_empty());
            let (name, rules) = lines.next().unwrap().split_once(':').unwrap();
            Self {
                name,
                rules: rules.split_whitespace().collect(),
                lines: lines.collect(),
            }
        })
    }
}

/// Judges the exchanges of a recording.
pub(super) fn judge<'a>(lines: impl IntoIterator<Item = &'a str>) -> Report {
    audit(lines).report(str::to_owned)
}

/// Returns the names of the broken rules, with this or a higher severity.
pub(super) fn broken(report: &Report, least: Severity) -> BTreeSet<String> {
    let findings = report.findings().filter(|it| it.severity >= least);
    findings.map(|it| it.rule.to_string()).collect()
}

/// Returns the state of the report after a recording.
pub(super) fn audit<'a>(lines: impl IntoIterator<Item = &'a str>) -> Audit {
    let mut replay = Replay::new();
    replay.run(lines);
    replay.audit
}

/// The kinds of events. Events at the same time happen in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Ends,
    Closes,
    Boundary,
    Clear,
    Opens,
    Arrives,
}

/// An event, with the index of its exchange or the number of its connection.
type Event = (Duration, Kind, usize);

/// An open connection.
struct Connection {
    opened: Moment,
    requests: u64,
    in_flight: u32,
}

/// The state of the report while a recording is replayed.
pub(super) struct Replay {
    audit: Audit,
    /// When it begins, on the mock's clock and in real time.
    start: Duration,
    began: Instant,
    order: u64,
    boundary: u64,
    connections: HashMap<u64, Connection>,
    records: HashMap<usize, Record>,
}

impl Replay {
    pub(super) fn new() -> Self {
        Self {
            audit: Audit::default(),
            start: START,
            began: real_time::now(),
            order: 0,
            boundary: 0,
            connections: HashMap::new(),
            records: HashMap::new(),
        }
    }

    pub(super) const fn audit(&self) -> &Audit {
        &self.audit
    }

    pub(super) const fn boundary(&self) -> u64 {
        self.boundary
    }

    /// Returns the moment at `seconds`.
    pub(super) fn moment(&mut self, seconds: f64) -> Moment {
        self.moment_at(self.start + Duration::from_secs_f64(seconds))
    }

    fn moment_at(&mut self, at: Duration) -> Moment {
        self.order += 1;
        Moment::new(self.order, at, self.began + at.saturating_sub(self.start))
    }

    /// Replays the events of a recording in their order.
    pub(super) fn run<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        let lines: Vec<_> = lines.into_iter().collect();
        self.start = START + offset(&lines);
        let (mut events, exchanges) = parse(&lines, self.start);
        events.sort();
        for (at, kind, place) in events {
            let moment = self.moment_at(at);
            match kind {
                Kind::Boundary => self.boundary += 1,
                Kind::Clear => self.audit.forget(),
                Kind::Closes => {
                    self.connections.remove(&(place as u64));
                    self.audit.disconnected(place as u64);
                }
                Kind::Opens => self.open(exchanges[place].connection, moment),
                Kind::Arrives => self.arrive(&exchanges[place], place, moment),
                Kind::Ends => self.end(&exchanges[place], place, moment),
            }
        }
    }

    fn open(&mut self, number: u64, opened: Moment) {
        if self.connections.contains_key(&number) {
            return;
        }
        self.audit.connected(number);
        let connection = Connection {
            opened,
            requests: 0,
            in_flight: 0,
        };
        self.connections.insert(number, connection);
    }

    fn arrive(&mut self, exchange: &Exchange<'_>, place: usize, mut moment: Moment) {
        if let Some(since) = exchange.more("real") {
            moment = Moment::new(moment.order(), moment.at(), self.began + duration(since));
        }
        self.open(exchange.connection, moment);
        let connection = self.connections.get_mut(&exchange.connection).unwrap();
        connection.requests += 1;
        connection.in_flight += 1;
        let caller = Caller {
            peer: Ipv4Addr::LOCALHOST.into(),
            connection: exchange.connection,
            opened: connection.opened,
            nth: connection.requests,
            is_overlapping: exchange.more("h2").is_some() && connection.in_flight > 1,
            is_over_limit: false,
        };
        let mut record = exchange.record(place as u64 + 1, caller, moment);
        record.sender = self.audit.arrived(&record);
        // A recording says exactly when connections end.
        if record.sender.other_connection.is_some() {
            self.audit.had_two_connections(&record);
            record.sender.may_be_several = true;
        }
        self.records.insert(place, record);
    }

    fn end(&mut self, exchange: &Exchange<'_>, place: usize, moment: Moment) {
        if let Some(connection) = self.connections.get_mut(&exchange.connection) {
            connection.in_flight = connection.in_flight.saturating_sub(1);
        }
        let record = self.records.remove(&place).unwrap();
        let facts = Facts::new(&record, moment);
        self.audit.ended(&record, facts, self.boundary);
    }
}

/// Returns how long after [`START`] a recording begins, so that its dates have whole seconds.
fn offset(lines: &[&str]) -> Duration {
    let date = lines.iter().find_map(|line| line.split_once(" until="));
    let Some((_, date)) = date else {
        return Duration::ZERO;
    };
    let date = duration(date.split(' ').next().unwrap());
    Duration::from_secs(date.as_secs() + 1) - date
}

/// Returns the events of a recording in any order, and its exchanges.
fn parse<'a>(lines: &[&'a str], start: Duration) -> (Vec<Event>, Vec<Exchange<'a>>) {
    let (mut events, mut exchanges) = (Vec::new(), Vec::new());
    let (mut last_ends, mut closed) = (HashMap::<u64, Duration>::new(), HashMap::new());
    for &line in lines {
        match line.split_once(' ') {
            Some(("!", time)) => events.push((start + duration(time), Kind::Boundary, 0)),
            Some(("~", time)) => events.push((start + duration(time), Kind::Clear, 0)),
            Some(("x", rest)) => {
                let (time, connection) = rest.split_once(' ').expect(line);
                closed.insert(connection.parse().expect(line), start + duration(time));
            }
            _ => {
                let exchange = Exchange::parse(line, start);
                let place = exchanges.len();
                let end = exchange.arrived + exchange.took;
                if let Some(before) = exchange.opened_before {
                    let opened = exchange.arrived.saturating_sub(before);
                    events.push((opened, Kind::Opens, place));
                }
                events.push((exchange.arrived, Kind::Arrives, place));
                events.push((end, Kind::Ends, place));
                let last = last_ends.entry(exchange.connection).or_insert(end);
                *last = end.max(*last);
                exchanges.push(exchange);
            }
        }
    }
    last_ends.extend(closed);
    for (connection, at) in last_ends {
        events.push((at, Kind::Closes, usize::try_from(connection).unwrap()));
    }
    (events, exchanges)
}

/// One exchange of a recording.
struct Exchange<'a> {
    start: Duration,
    arrived: Duration,
    took: Duration,
    connection: u64,
    opened_before: Option<Duration>,
    method: &'a str,
    target: &'a str,
    status: Option<u16>,
    more: HashMap<&'a str, &'a str>,
    body: &'a str,
}

fn duration(text: &str) -> Duration {
    Duration::from_secs_f64(text.parse().expect(text))
}

impl<'a> Exchange<'a> {
    fn parse(line: &'a str, start: Duration) -> Self {
        let (line, body) = line.split_once(" body=").unwrap_or((line, ""));
        let mut fields = line.split(' ');
        let mut next = || fields.next().expect(line);
        let (arrived, took) = next().split_once('+').expect(line);
        let connection = next();
        let (connection, opened) = connection.split_once('<').unwrap_or((connection, ""));
        let (method, target, status) = (next(), next(), next());
        let mut more = HashMap::new();
        for field in fields {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            more.insert(name, value);
        }
        Self {
            start,
            arrived: start + duration(arrived),
            took: duration(took),
            connection: connection.parse().expect(line),
            opened_before: (!opened.is_empty()).then(|| duration(opened)),
            method,
            target,
            status: (status != "-").then(|| status.parse().expect(line)),
            more,
            body,
        }
    }

    fn more(&self, name: &str) -> Option<&'a str> {
        self.more.get(name).copied()
    }

    fn number(&self, name: &str) -> Option<u64> {
        Some(self.more(name)?.parse().unwrap())
    }

    /// Returns the record of an arriving request, with the response that it will get.
    fn record(&self, number: u64, caller: Caller, arrived: Moment) -> Record {
        let is_lost = self.status.is_none();
        let has_fault = is_lost || self.more("fault").is_some();
        Record {
            number,
            caller,
            arrival: self.arrival(arrived),
            sender: Sender::default(),
            arrived,
            ended: arrived,
            method: self.method.parse().unwrap(),
            version: match self.more("h2") {
                Some(_) => Version::HTTP_2,
                None => Version::HTTP_11,
            },
            fields: self.fields(),
            body: self.body(),
            status: self.status,
            reply_fields: self.reply_fields(),
            reply_body: Captured::whole(&self.reply_body()),
            added: self.more("added").map(|id| id.parse().unwrap()),
            note: None,
            faults: if has_fault {
                vec!["reset".into()]
            } else {
                Vec::new()
            },
            lost: AtomicBool::new(is_lost || self.more("lost").is_some()),
        }
    }

    fn arrival(&self, arrived: Moment) -> Arrival {
        let method: Method = self.method.parse().unwrap();
        let path = self.target.split('?').next().unwrap_or_default();
        let unknown_key = self.number("unknown-key");
        let key = KeyLabel::new(1, Plan::Free, "free-key", true);
        let mut arrival = Arrival::new(arrived.at(), self.target.into());
        arrival.operation = Operation::of(&method, path);
        arrival.key = unknown_key.is_none().then(|| Arc::new(key));
        arrival.credentials = unknown_key.unwrap_or_default();
        arrival.strikes = self
            .number("strikes")
            .unwrap_or_default()
            .try_into()
            .unwrap();
        arrival.flaw = match (self.more("key-in"), self.more("other-scheme")) {
            (Some(parameter), _) => Some(KeyFlaw::InUrl(parameter.into())),
            (None, Some(_)) => Some(KeyFlaw::OtherScheme),
            (None, None) => None,
        };
        arrival.admission = match self.status {
            _ if self.more("banned").is_some() => Admission::Banned,
            Some(429) => Admission::Refused,
            _ => Admission::Admitted,
        };
        arrival
    }

    fn fields(&self) -> Fields {
        fields(&[
            (
                "content-type",
                self.more("type").or(Some("application/json")),
            ),
            ("user-agent", self.more("agent").or(Some("a/1"))),
            ("authorization", Some("Bearer ***")),
            ("x-mock-scope", self.more("scope")),
            ("connection", self.more("asks-close").map(|_| "Close ")),
        ])
    }

    fn body(&self) -> Captured {
        let digest = self.body.bytes().fold(7, |sum: u64, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let body = Bytes::copy_from_slice(self.body.as_bytes());
        Captured {
            length: body.len() as u64,
            start: body,
            digest: Some(digest),
        }
    }

    fn reply_fields(&self) -> Fields {
        let reset = START + self.more("reset").map(duration).unwrap_or_default();
        let date = self.more("until").map(|until| {
            // Because of rounding, the sum may be just below a whole second.
            let until = self.start + duration(until) + Duration::from_millis(1);
            httpdate::fmt_http_date(UNIX_EPOCH + until)
        });
        // The fault removes the header.
        let has_fault = self.more("fault").is_some();
        let remaining = self.more("remaining").filter(|_| !has_fault);
        fields(&[
            ("retry-after", self.more("wait").or(date.as_deref())),
            ("connection", self.more("closes").map(|_| "close")),
            ("x-ratelimit-remaining", remaining),
            ("x-ratelimit-reset", Some(&reset.as_secs().to_string())),
        ])
    }

    /// Returns the list of pets, or the error's message, in which `_` is a space.
    fn reply_body(&self) -> Bytes {
        match (self.more("lists"), self.more("says")) {
            (Some(id), _) => format!("[{{\"id\":{id}}}]").into(),
            (None, Some(message)) => {
                let message = message.replace('_', " ");
                format!("{{\"message\":\"{message}\"}}").into()
            }
            (None, None) => Bytes::new(),
        }
    }
}

fn fields(fields: &[(&'static str, Option<&str>)]) -> Fields {
    let given = fields
        .iter()
        .filter_map(|(name, value)| Some((*name, (*value)?)));
    let headers =
        given.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
    Fields::of(&headers.collect())
}
