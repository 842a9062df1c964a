//! The oracle of the rules: recordings of real clients, honest and guilty, and exchanges written by
//! hand. Each is judged as if it had just happened, and compared with the expected rules.
//!
//! A recording begins with `= NAME: RULES`; notices count where its name begins with `notice`. Each line is one exchange: when it arrived, how long it
//! took, its connection (and how long before that was opened, if it is the first one there), method,
//! target and status (`-`: no answer), and what else is of interest, a body last. `! TIME` is a
//! boundary, such as a reset, and `~ TIME` clears the report.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write,
    net::Ipv4Addr,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{HeaderName, Method, Version};

use super::{Audit, Evidence, JudgedRequest, Report, Role, Rule, Severity};
use crate::{
    clock::real_time,
    exchange::{
        Admission, Arrival, Caller, Captured, Fields, InFlight, KeyFlaw, KeyLabel, Moment, Record,
    },
    operation::Operation,
    quota::Plan,
};

const CORPUS: &str = include_str!("../../tests/corpus.txt");

/// 2026-01-01T00:00:00Z, at which every recording begins.
const START: Duration = Duration::from_secs(1_767_225_600);

/// What happens at one time happens in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Ends,
    Boundary,
    Clear,
    Opens,
    Arrives,
}

/// One exchange of a recording.
struct Recorded<'a> {
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

impl<'a> Recorded<'a> {
    fn parse(line: &'a str) -> Self {
        let (line, body) = line.split_once(" body=").unwrap_or((line, ""));
        let mut fields = line.split(' ');
        let mut next = || fields.next().expect(line);
        let (arrived, took) = next().split_once('+').expect(line);
        let connection = next();
        let (connection, opened) = connection.split_once('<').unwrap_or((connection, ""));
        let (method, target, status) = (next(), next(), next());
        Self {
            arrived: START + duration(arrived),
            took: duration(took),
            connection: connection.parse().expect(line),
            opened_before: (!opened.is_empty()).then(|| duration(opened)),
            method,
            target,
            status: (status != "-").then(|| status.parse().expect(line)),
            more: fields
                .map(|field| field.split_once('=').unwrap_or((field, "")))
                .collect(),
            body,
        }
    }

    /// Returns the record at the arrival: of these moments the first is when the connection was opened.
    fn record(
        &self,
        number: u64,
        nth: u64,
        [opened, arrived]: [Moment; 2],
        key: &Arc<KeyLabel>,
    ) -> Record {
        let more = |name: &str| self.more.get(name).copied();
        let text = |name: &str| more(name).map(str::to_owned);
        let method: Method = self.method.parse().unwrap();
        let path = self.target.split('?').next().unwrap_or_default();
        let digest = self.body.bytes().fold(7, |sum: u64, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let body = Bytes::copy_from_slice(self.body.as_bytes());
        let listed =
            more("lists").map_or_else(Bytes::new, |id| format!("[{{\"id\":{id}}}]").into());
        let reset = more("reset").map_or(START, |reset| START + duration(reset));
        let unknown_key = more("unknown-key").map(|number| number.parse().unwrap());
        let arrival = Arrival {
            now: arrived.at,
            target: self.target.into(),
            operation: Operation::of(&method, path),
            key: unknown_key.is_none().then(|| Arc::clone(key)),
            flaw: match (more("key-in"), more("other-scheme")) {
                (Some(parameter), _) => Some(KeyFlaw::InUrl(parameter.into())),
                (_, Some(_)) => Some(KeyFlaw::OtherScheme),
                _ => None,
            },
            credentials: unknown_key.unwrap_or_default(),
            admission: if more("banned").is_some() {
                Admission::Banned
            } else {
                Admission::Admitted
            },
            rate: None,
        };
        Record {
            number,
            caller: Caller {
                peer: Ipv4Addr::LOCALHOST.into(),
                connection: self.connection,
                opened,
                nth,
                is_over_limit: false,
            },
            arrival,
            in_flight: InFlight::default(),
            arrived,
            ended: arrived,
            method,
            version: if more("h2").is_some() {
                Version::HTTP_2
            } else {
                Version::HTTP_11
            },
            fields: fields(&[
                (
                    "content-type",
                    text("type").or(Some("application/json".to_owned())),
                ),
                ("user-agent", text("agent").or(Some("a/1".to_owned()))),
                ("authorization", Some("Bearer ***".to_owned())),
                ("x-mock-scope", text("scope")),
                (
                    "connection",
                    more("asks-close").map(|_| "Close ".to_owned()),
                ),
            ]),
            body: Captured {
                length: body.len() as u64,
                start: body,
                digest: Some(digest),
            },
            status: self.status,
            reply_fields: fields(&[
                (
                    "retry-after",
                    text("wait").or_else(|| more("until").map(date)),
                ),
                ("connection", more("closes").map(|_| "close".to_owned())),
                // A fault removes it.
                (
                    "x-ratelimit-remaining",
                    text("remaining").filter(|_| more("fault").is_none()),
                ),
                ("x-ratelimit-reset", Some(reset.as_secs().to_string())),
            ]),
            reply_body: Captured::whole(&listed),
            added: more("added").map(|id| id.parse().unwrap()),
            note: None,
            faults: if self.status.is_none() || more("fault").is_some() {
                vec!["reset".into()]
            } else {
                Vec::new()
            },
            lost: AtomicBool::new(self.status.is_none() || more("lost").is_some()),
        }
    }
}

fn date(text: &str) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + START + duration(text))
}

fn fields(fields: &[(&'static str, Option<String>)]) -> Fields {
    let given = fields
        .iter()
        .filter_map(|(name, value)| Some((*name, value.as_ref()?)));
    let headers =
        given.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
    Fields::of(&headers.collect())
}

/// Judges the exchanges of a recording in the order in which they happened.
pub(super) fn judge<'a>(lines: impl Iterator<Item = &'a str>) -> Report {
    audit(lines).report(str::to_owned)
}

pub(super) fn audit<'a>(lines: impl Iterator<Item = &'a str>) -> Audit {
    let mut events = Vec::new();
    let mut recorded = Vec::new();
    for line in lines {
        if let Some(time) = line.strip_prefix("! ") {
            events.push((START + duration(time), What::Boundary, usize::MAX));
            continue;
        }
        if let Some(time) = line.strip_prefix("~ ") {
            events.push((START + duration(time), What::Clear, usize::MAX));
            continue;
        }
        let exchange = Recorded::parse(line);
        let place = recorded.len();
        if let Some(before) = exchange.opened_before {
            events.push((exchange.arrived.saturating_sub(before), What::Opens, place));
        }
        events.push((exchange.arrived, What::Arrives, place));
        events.push((exchange.arrived + exchange.took, What::Ends, place));
        recorded.push(exchange);
    }
    events.sort();
    let real: Instant = real_time::now();
    let key = Arc::new(KeyLabel::new(1, Plan::Free, "free-key", true));
    let mut audit = Audit::default();
    let mut boundary = 0;
    let mut connections: HashMap<u64, (Moment, u64)> = HashMap::new();
    let mut arrivals = HashMap::new();
    for (order, (at, what, place)) in (1..).zip(events) {
        let mut moment = Moment {
            order,
            at,
            real: real + at.saturating_sub(START),
        };
        let Some(exchange) = recorded.get(place) else {
            match what {
                What::Clear => audit.forget(),
                _ => boundary += 1,
            }
            continue;
        };
        if let Some(since) = exchange.more.get("real").filter(|_| what == What::Arrives) {
            moment.real = real + duration(since);
        }
        match what {
            What::Boundary | What::Clear => {}
            What::Opens => drop(connections.insert(exchange.connection, (moment, 0))),
            What::Arrives => {
                let (opened, nth) = connections
                    .entry(exchange.connection)
                    .or_insert((moment, 0));
                *nth += 1;
                let moments = [*opened, moment];
                let mut record = exchange.record(place as u64 + 1, *nth, moments, &key);
                record.in_flight = audit.arrived(&record);
                arrivals.insert(place, record);
            }
            What::Ends => {
                let record = &arrivals[&place];
                let mut request = JudgedRequest::new(record, moment);
                if let (Some(until), Some(told)) =
                    (exchange.more.get("until"), &mut request.told_until)
                {
                    // Recordings begin within a second, which an HTTP date cannot say.
                    told.0 = START + duration(until);
                }
                audit.ended(record, request, boundary);
            }
        }
    }
    audit
}

/// Returns each recording with its name, the rules that it breaks, and its lines.
fn recordings(corpus: &str) -> impl Iterator<Item = (&str, BTreeSet<&str>, Vec<&str>)> {
    corpus.split("\n= ").skip(1).map(|recording| {
        let mut lines = recording.lines().filter(|line| !line.is_empty());
        let (name, rules) = lines.next().unwrap().split_once(':').unwrap();
        (name, rules.split_whitespace().collect(), lines.collect())
    })
}

#[test]
fn every_recording_is_judged_as_expected() {
    let mut wrong = Vec::new();
    let mut judged = 0;
    for (name, expected, lines) in recordings(CORPUS) {
        let report = judge(lines.into_iter());
        let counts_notices = name.starts_with("notice ");
        let is_meant = |severity| severity > Severity::Notice || counts_notices;
        let failing = report
            .findings()
            .filter(|finding| is_meant(finding.severity));
        let found: BTreeSet<_> = failing.map(|finding| finding.rule.to_string()).collect();
        if !found
            .iter()
            .map(String::as_str)
            .eq(expected.iter().copied())
        {
            wrong.push(format!("{name}: found {found:?}, expected {expected:?}"));
        }
        judged += 1;
    }
    assert!(
        wrong.is_empty(),
        "{} of {judged} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(judged >= 64, "{judged}");
}

/// Writes the evidence of a report in short: the requests by number, `*` a cause, `!` an offence.
fn digest(report: &Report) -> String {
    let mut out = String::new();
    for finding in report.findings() {
        writeln!(out, "{} {}", finding.rule, finding.count).unwrap();
        for evidence in &finding.evidence {
            let Evidence {
                text,
                told,
                by,
                added,
                offences,
                omitted,
                requests,
                ..
            } = evidence;
            let told = told
                .as_ref()
                .map(|told| format!("; {told}"))
                .unwrap_or_default();
            let by = by.map(|by| format!("; by {by:?}")).unwrap_or_default();
            writeln!(out, "  {text}{told}{by}").unwrap();
            let mark = |role| match role {
                Role::Before | Role::After => "",
                Role::Cause => "*",
                Role::Offence => "!",
            };
            let shown = requests
                .iter()
                .map(|it| format!(" {}{}", mark(it.role), it.number));
            let shown = shown.collect::<String>();
            writeln!(
                out,
                "   {shown} ({offences} offences, {omitted} omitted) {added:?}"
            )
            .unwrap();
        }
    }
    out
}

#[test]
fn the_evidence_of_each_recording_stays() {
    let mut digests = String::new();
    for (name, _, lines) in recordings(CORPUS) {
        let digest = digest(&judge(lines.into_iter()));
        if !digest.is_empty() {
            write!(digests, "\n= {name}\n{digest}").unwrap();
        }
    }
    insta::assert_snapshot!(digests);
}

#[test]
fn the_first_of_many_requests_is_forgotten() {
    let line = |n: u32, id, rest: &str| {
        let (method, rest) = rest.split_once(' ').unwrap();
        format!(
            "{}+0.0001 1 {method} /v1/pets?n={id} {rest}",
            f64::from(n) * 0.000_2
        )
    };
    for (rule, first, again) in [
        (Rule::RepeatedPost, "POST 500", &["POST 201"][..]),
        (Rule::RetryAfter, "GET 503 wait=1000", &["GET 200"]),
        (Rule::BackOff, "GET 500", &["GET 500", "GET 500", "GET 200"]),
    ] {
        for (others, is_found) in [(63, true), (64, false)] {
            let mut lines: Vec<_> = (0..=others).map(|n| line(n, n, first)).collect();
            lines.extend((others + 1..).zip(again).map(|(n, rest)| line(n, 0, rest)));
            let report = judge(lines.iter().map(String::as_str));
            assert_eq!(
                report.findings().any(|it| it.rule == rule),
                is_found,
                "{rule} {others}"
            );
        }
    }
}

#[test]
fn the_text_of_a_finding_agrees_with_itself_when_the_client_becomes_slower() {
    const RECORDING: &str = "0+0.0001 1<0.001 GET /v1/pets 500
0.001+0.0001 1 GET /v1/pets 500
0.002+0.0001 1 GET /v1/pets 500
0.003+0.0001 1 GET /v1/pets 500
2+0.5 1 GET /v1/pets?limit=5 200
2.1+0.0001 2<0.001 GET /v1/pets 500";
    let report = judge(RECORDING.lines());
    let evidence = &report.of(Severity::Violation).next().unwrap().evidence[0];
    assert_eq!(evidence.offences, 2);
    let text = "GET /v1/pets was sent again 3 times, within 0.003 s; with any back-off it takes more \
                than 0.02 s";
    assert_eq!(evidence.text, text);
}
