//! Recordings, and how they are judged.
//!
//! A recording begins with `= NAME: RULES`, with `senders=N` among the rules if several are declared.
//! Each line is one exchange: when it arrived, how long it took, its connection, method, target and status
//! (`-`: no answer), and what else is of interest, a body last:
//!
//! `1.2+0.003 1 GET /v1/pets 429 wait=50 remaining=0 reset=60`
//!
//! `! TIME` is a boundary, such as a reset, and `~ TIME` clears the report. All times are in seconds.

use std::{
    collections::{BTreeSet, HashMap},
    net::Ipv4Addr,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{HeaderName, Method};

use crate::{
    clock::real_time,
    exchange::{Admission, Arrival, Caller, Captured, Fields, KeyFlaw, KeyLabel, Moment, Record},
    operation::Operation,
    plan::Plan,
    report::{Audit, Report, Severity},
};

/// 2026-01-01T00:00:00Z, within a second of which every recording begins.
const START: Duration = Duration::from_secs(1_767_225_600);

/// A recording with its name, the rules that it breaks, and the declared senders.
pub(super) struct Recording<'a> {
    pub(super) name: &'a str,
    pub(super) rules: BTreeSet<&'a str>,
    pub(super) senders: u32,
    pub(super) lines: Vec<&'a str>,
}

impl<'a> Recording<'a> {
    /// Returns the recordings in a text.
    pub(super) fn all(text: &'a str) -> impl Iterator<Item = Self> {
        text.split("\n= ").skip(1).map(|recording| {
            let mut lines = recording.lines().filter(|line| !line.is_empty());
            let (name, rules) = lines.next().unwrap().split_once(':').unwrap();
            let mut senders = 1;
            let mut broken = BTreeSet::new();
            for word in rules.split_whitespace() {
                match word.strip_prefix("senders=") {
                    Some(number) => senders = number.parse().unwrap(),
                    None => drop(broken.insert(word)),
                }
            }
            Self {
                name,
                rules: broken,
                senders,
                lines: lines.collect(),
            }
        })
    }

    /// Judges the exchanges.
    pub(super) fn judge(&self) -> Report {
        judge(self.senders, self.lines.iter().copied())
    }
}

/// Judges the exchanges of a recording with so many declared senders.
pub(super) fn judge<'a>(senders: u32, lines: impl IntoIterator<Item = &'a str>) -> Report {
    let mut replay = Replay::new(senders);
    replay.run(lines);
    replay.audit.report(str::to_owned)
}

/// Returns the names of the rules that were broken, without notices.
pub(super) fn broken(report: &Report) -> BTreeSet<String> {
    let findings = report
        .findings()
        .filter(|it| it.severity > Severity::Notice);
    findings.map(|it| it.rule.to_string()).collect()
}

/// The kinds of events. Events at the same time happen in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Ends,
    Boundary,
    Clear,
    Arrives,
}

/// An event, with the index of its exchange.
type Event = (Duration, Kind, usize);

/// The state of the report while a recording is replayed.
pub(super) struct Replay {
    audit: Audit,
    senders: u32,
    /// When it begins, on the mock's clock and in real time.
    start: Duration,
    began: Instant,
    order: u64,
    boundary: u64,
    records: HashMap<usize, Arc<Record>>,
}

impl Replay {
    pub(super) fn new(senders: u32) -> Self {
        Self {
            audit: Audit::default(),
            senders,
            start: START,
            began: real_time::now(),
            order: 0,
            boundary: 0,
            records: HashMap::new(),
        }
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
                Kind::Arrives => self.arrive(&exchanges[place], place, moment),
                Kind::Ends => {
                    let record = self.records.remove(&place).unwrap();
                    self.audit.ended(&record, moment);
                }
            }
        }
    }

    fn arrive(&mut self, exchange: &Exchange<'_>, place: usize, mut moment: Moment) {
        if let Some(since) = exchange.more("real") {
            moment = Moment::new(self.order, moment.at(), self.began + duration(since));
        }
        let record = exchange.record(place as u64 + 1, self, moment);
        self.records.insert(place, Arc::new(record));
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
    let mut connections = HashMap::<_, u64>::new();
    for &line in lines {
        match line.split_once(' ') {
            Some(("!", time)) => events.push((start + duration(time), Kind::Boundary, 0)),
            Some(("~", time)) => events.push((start + duration(time), Kind::Clear, 0)),
            _ => {
                let mut exchange = Exchange::parse(line, start);
                let place = exchanges.len();
                let nth = connections.entry(exchange.connection).or_default();
                *nth += 1;
                exchange.nth = *nth;
                events.push((exchange.arrived, Kind::Arrives, place));
                events.push((exchange.arrived + exchange.took, Kind::Ends, place));
                exchanges.push(exchange);
            }
        }
    }
    (events, exchanges)
}

/// One exchange of a recording.
struct Exchange<'a> {
    start: Duration,
    arrived: Duration,
    took: Duration,
    connection: u64,
    /// The number of the request on its connection.
    nth: u64,
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
        let connection = next().split('<').next().expect(line);
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
            nth: 1,
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

    fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(&self, name: &str) -> Option<T> {
        Some(self.more(name)?.parse().unwrap())
    }

    /// Returns the record of an arriving request, with the response that it will get.
    fn record(&self, number: u64, replay: &Replay, arrived: Moment) -> Record {
        let is_lost = self.status.is_none();
        Record {
            number,
            caller: Caller {
                peer: Ipv4Addr::LOCALHOST.into(),
                connection: self.connection,
                nth: self.nth,
            },
            arrival: self.arrival(arrived, replay.senders),
            boundary: replay.boundary,
            arrived,
            ended: arrived.after(self.took),
            method: self.method.parse().unwrap(),
            fields: fields(&[
                ("content-type", Some("application/json")),
                ("authorization", Some("Bearer ***")),
                ("x-mock-fault", self.more("fault")),
            ]),
            body: self.body(),
            status: self.status,
            reply_fields: self.reply_fields(),
            reply_body: Captured::default(),
            added: self.number("added"),
            note: None,
            faults: Vec::from_iter(is_lost.then(|| "reset".into())),
            lost: AtomicBool::new(is_lost),
        }
    }

    fn arrival(&self, arrived: Moment, senders: u32) -> Arrival {
        let method: Method = self.method.parse().unwrap();
        let path = self.target.split('?').next().unwrap_or_default();
        let number = self.number("key").unwrap_or(1);
        let key = KeyLabel::new(number, Plan::Free, "ci", Some("ci")).with_senders(senders);
        let mut arrival = Arrival::new(arrived.at(), self.target.into());
        arrival.operation = Operation::of(&method, path);
        arrival.is_known = arrival.operation.is_some();
        arrival.key = self.more("unknown-key").is_none().then(|| Arc::new(key));
        arrival.strikes = self.number("strikes").unwrap_or_default();
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

    fn body(&self) -> Captured {
        let digest = self.body.bytes().fold(7, |sum: u64, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let body = Bytes::copy_from_slice(self.body.as_bytes());
        Captured {
            length: body.len() as u64,
            start: body,
            digest: self.more("partial").is_none().then_some(digest),
        }
    }

    fn reply_fields(&self) -> Fields {
        let reset = START + self.more("reset").map(duration).unwrap_or_default();
        let date = self.more("until").map(|until| {
            // Because of rounding, the sum may be just below a whole second.
            let until = self.start + duration(until) + Duration::from_millis(1);
            httpdate::fmt_http_date(UNIX_EPOCH + until)
        });
        // `_` is a space.
        let shown = self.more("date").map(|date| date.replace('_', " "));
        fields(&[
            ("retry-after", self.more("wait").or(date.as_deref())),
            ("date", shown.as_deref()),
            ("x-ratelimit-remaining", self.more("remaining")),
            ("x-ratelimit-reset", Some(&reset.as_secs().to_string())),
        ])
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
