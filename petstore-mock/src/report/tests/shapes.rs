//! Clients that follow the rules or break one: how many workers they have, when those start, how
//! they retry, and what the service answers.

use super::simulation::{
    Answer, Program, Random, Request, Seconds, Service, Simulation, Step, Transport, Worker,
};
use crate::report::Rule::{self, BackOff, RepeatedPost, RetryAfter, ToldToWait};

use Transport::{Http2, Kept, New, Pooled};

/// A kind of client.
pub(super) struct Shape {
    pub(super) name: &'static str,
    /// The rule that it breaks, or `None` if it is honest.
    pub(super) breaks: Option<Rule>,
    pub(super) transports: &'static [Transport],
    program: Program,
    service: Service,
    start: fn(&mut Simulation),
}

impl Shape {
    /// Records the client once. Returns the number of its senders, and the lines.
    pub(super) fn record(&self, transport: Transport, seed: u64) -> (u32, Vec<String>) {
        let name = format!("{} {transport:?}", self.name);
        let program = Program {
            transport,
            ..self.program
        };
        let mut simulation = Simulation::new(seed, &name, program, self.service);
        (self.start)(&mut simulation);
        simulation.run()
    }

    const fn retry_after(mut self, seconds: u32) -> Self {
        self.service.retry_after = Some(seconds);
        self
    }

    const fn quota(mut self, per_minute: u32) -> Self {
        self.service.quota = Some(per_minute);
        self
    }

    const fn answers_within(mut self, least: Seconds, most: Seconds) -> Self {
        self.service.time = (least, most);
        self
    }

    const fn cpu(mut self, least: Seconds, most: Seconds) -> Self {
        self.program.cpu = (least, most);
        self
    }

    const fn connections(mut self, most: usize) -> Self {
        self.program.max_connections = most;
        self
    }

    const fn idle(mut self, most: usize) -> Self {
        self.program.max_idle = most;
        self
    }
}

const ALL: &[Transport] = &[Kept, New, Pooled, Http2];
const OWN: &[Transport] = &[Kept, New];
const ALONE: &[Transport] = &[Kept, New, Http2];
const REUSED: &[Transport] = &[Kept, Pooled, Http2];

fn shape(
    name: &'static str,
    breaks: Option<Rule>,
    transports: &'static [Transport],
    status: fn(Seconds, u32) -> Option<u16>,
    start: fn(&mut Simulation),
) -> Shape {
    Shape {
        name,
        breaks,
        transports,
        program: Program {
            transport: Kept,
            max_connections: 0,
            max_idle: 0,
            cpu: (0.000_2, 0.000_8),
        },
        service: Service {
            status,
            retry_after: None,
            quota: None,
            time: (0.000_1, 0.000_6),
        },
        start,
    }
}

fn honest(
    name: &'static str,
    transports: &'static [Transport],
    status: fn(Seconds, u32) -> Option<u16>,
    start: fn(&mut Simulation),
) -> Shape {
    shape(name, None, transports, status, start)
}

fn guilty(
    name: &'static str,
    rule: Rule,
    transports: &'static [Transport],
    status: fn(Seconds, u32) -> Option<u16>,
    start: fn(&mut Simulation),
) -> Shape {
    shape(name, Some(rule), transports, status, start)
}

/// The service fails all the time.
const fn down(_: Seconds, _: u32) -> Option<u16> {
    Some(503)
}

const fn up(_: Seconds, _: u32) -> Option<u16> {
    Some(200)
}

/// The service fails for the first `REQUESTS` requests.
const fn fails<const REQUESTS: u32>(_: Seconds, number: u32) -> Option<u16> {
    Some(if number <= REQUESTS { 503 } else { 200 })
}

/// The service fails until this second.
fn fails_until<const SECOND: u32>(now: Seconds, _: u32) -> Option<u16> {
    Some(if now < f64::from(SECOND) { 503 } else { 200 })
}

/// The service answers the first `REQUESTS` requests with 500.
const fn loses<const REQUESTS: u32>(_: Seconds, number: u32) -> Option<u16> {
    Some(if number <= REQUESTS { 500 } else { 200 })
}

/// The wait before a retry.
#[derive(Clone, Copy, Debug)]
enum Wait {
    None,
    /// Doubled each time, up to a limit.
    Doubled(Seconds, Seconds),
    /// Half of it is random.
    EqualJitter(Seconds, Seconds),
    /// All of it is random.
    FullJitter(Seconds, Seconds),
    /// As in urllib3: the first retry is immediate; later waits double, plus a random part.
    Urllib3(Seconds, Seconds),
    /// The same each time.
    Constant(Seconds),
    Between(Seconds, Seconds),
}

impl Wait {
    fn after(self, failures: u32, random: &mut Random) -> Seconds {
        let doubled = |first: Seconds, most: Seconds| {
            let power = i32::try_from(failures.min(30)).unwrap() - 1;
            (first * 2_f64.powi(power)).min(most)
        };
        match self {
            Self::None => 0.0,
            Self::Doubled(first, most) => doubled(first, most),
            Self::EqualJitter(first, most) => random.between(0.5, 1.0) * doubled(first, most),
            Self::FullJitter(first, most) => random.between(0.0, doubled(first, most)),
            Self::Urllib3(..) if failures == 1 => 0.0,
            Self::Urllib3(first, jitter) => doubled(first, 120.0) + random.between(0.0, jitter),
            Self::Constant(wait) => wait * random.between(0.98, 1.02),
            Self::Between(least, most) => random.between(least, most),
        }
    }
}

/// How a worker retries.
#[derive(Clone, Copy, Debug)]
struct Retry {
    wait: Wait,
    tries: u32,
    /// Whether it waits as long as `Retry-After` says.
    obeys: bool,
}

const fn retry(wait: Wait, tries: u32) -> Retry {
    Retry {
        wait,
        tries,
        obeys: true,
    }
}

/// Each request is sent once.
const ONCE: Retry = retry(Wait::None, 1);

/// Waits for `Retry-After`, or with a back-off from one second.
const OBEYS: Retry = retry(Wait::Doubled(1.0, 30.0), 6);

impl Retry {
    const fn whatever_it_is_told(mut self) -> Self {
        self.obeys = false;
        self
    }
}

fn list() -> Request {
    get("/v1/pets".to_owned())
}

fn page(number: usize) -> Request {
    get(format!("/v1/pets?limit={}", number + 1))
}

const fn get(target: String) -> Request {
    Request {
        method: "GET",
        target,
        body: String::new(),
    }
}

fn pet(name: &str) -> Request {
    Request {
        method: "POST",
        target: "/v1/pets".to_owned(),
        body: format!("{{\"name\":\"{name}\"}}"),
    }
}

/// A worker that makes one call after the other, and retries each after an error.
struct Calls {
    calls: std::vec::IntoIter<Request>,
    retry: Retry,
    current: Option<Request>,
    failures: u32,
}

impl Calls {
    fn new(calls: Vec<Request>, retry: Retry) -> Box<Self> {
        Box::new(Self {
            calls: calls.into_iter(),
            retry,
            current: None,
            failures: 0,
        })
    }
}

impl Worker for Calls {
    fn next(&mut self, answer: Option<Answer>, _: Seconds, random: &mut Random) -> Step {
        if let Some(answer) = answer {
            if answer.is_success() || self.failures + 1 == self.retry.tries {
                self.current = None;
            } else {
                self.failures += 1;
                let told = answer.retry_after.filter(|_| self.retry.obeys);
                return Step::Sleep(match told {
                    Some(seconds) => f64::from(seconds) + random.between(0.0, 0.3),
                    None => self.retry.wait.after(self.failures, random),
                });
            }
        }
        if self.current.is_none() {
            self.failures = 0;
            self.current = self.calls.next();
        }
        self.current.clone().map_or(Step::End, Step::Send)
    }
}

/// A worker that sends requests at fixed times, regardless of the responses.
struct Poller {
    every: Seconds,
    left: u32,
    due: Option<Seconds>,
}

impl Worker for Poller {
    fn next(&mut self, answer: Option<Answer>, now: Seconds, _: &mut Random) -> Step {
        let due = *self.due.get_or_insert(now);
        if answer.is_some() {
            self.due = Some(due + self.every);
            return Step::Sleep(due + self.every - now);
        }
        if self.left == 0 {
            return Step::End;
        }
        self.left -= 1;
        Step::Send(list())
    }
}

/// A worker that adds a pet, and lists the pets before it tries again.
struct Checks {
    name: String,
    failures: u32,
    is_checking: bool,
}

impl Worker for Checks {
    fn next(&mut self, answer: Option<Answer>, _: Seconds, _: &mut Random) -> Step {
        if let Some(answer) = answer {
            let is_done = answer.is_success() && !self.is_checking;
            if is_done || self.failures == 8 {
                return Step::End;
            }
            if !answer.is_success() {
                self.failures += 1;
            }
            // It lists the pets after a failed POST, and again after a failed list.
            self.is_checking = !(answer.is_success() && self.is_checking);
            return Step::Sleep(
                Wait::Doubled(0.2, 5.0).after(self.failures, &mut Random::new(0, "")),
            );
        }
        Step::Send(if self.is_checking {
            list()
        } else {
            pet(&self.name)
        })
    }
}

/// When the workers start.
#[derive(Clone, Copy, Debug)]
enum Begin {
    /// Immediately after each other, as in a loop.
    AtOnce,
    /// Within this time, at random.
    Within(Seconds),
    /// At intervals of about this length.
    Apart(Seconds),
}

impl Begin {
    fn of(self, worker: u32, random: &mut Random) -> Seconds {
        1.0 + match self {
            Self::AtOnce => f64::from(worker) * random.between(0.000_05, 0.000_6),
            Self::Within(time) => random.between(0.0, time),
            Self::Apart(time) => f64::from(worker) * time * random.between(0.8, 1.2),
        }
    }
}

/// Starts workers that each make the same single call.
fn same(simulation: &mut Simulation, workers: u32, begin: Begin, retry: Retry) {
    for worker in 0..workers {
        let at = begin.of(worker, simulation.random());
        simulation.start(at, Calls::new(vec![list()], retry));
    }
}

/// Starts workers that each make the same call this many times.
fn many(simulation: &mut Simulation, workers: u32, calls: usize, begin: Begin, retry: Retry) {
    for worker in 0..workers {
        let at = begin.of(worker, simulation.random());
        simulation.start(at, Calls::new(vec![list(); calls], retry));
    }
}

/// Starts workers that each make a call of their own this many times.
fn pages(simulation: &mut Simulation, workers: u32, calls: usize, begin: Begin, retry: Retry) {
    for worker in 0..workers {
        let at = begin.of(worker, simulation.random());
        let page = page(worker as usize);
        simulation.start(at, Calls::new(vec![page; calls], retry));
    }
}

/// Starts one worker that makes one call.
fn one(simulation: &mut Simulation, retry: Retry) {
    same(simulation, 1, Begin::Within(1.0), retry);
}

/// Starts a gateway with this many new users per second.
fn gateway(simulation: &mut Simulation, per_second: f64, users: u32, retry: Retry) {
    growing_gateway(simulation, per_second, 1.0, users, retry);
}

fn growing_gateway(
    simulation: &mut Simulation,
    per_second: f64,
    growth: f64,
    users: u32,
    retry: Retry,
) {
    let (mut at, mut rate) = (1.0, per_second);
    for _ in 0..users {
        at += simulation.random().exponential(rate);
        rate *= growth;
        simulation.start(at, Calls::new(vec![list()], retry));
    }
}

fn pollers(simulation: &mut Simulation, workers: u32, every: Seconds, requests: u32) {
    for worker in 0..workers {
        let at = Begin::Within(every).of(worker, simulation.random());
        let poller = Poller {
            every,
            left: requests,
            due: None,
        };
        simulation.start(at, Box::new(poller));
    }
}

fn adders(simulation: &mut Simulation, workers: u32, retry: Retry) {
    for worker in 0..workers {
        let at = Begin::AtOnce.of(worker, simulation.random());
        let call = pet(&format!("p{worker}"));
        simulation.start(at, Calls::new(vec![call], retry));
    }
}

/// Returns all shapes.
pub(super) fn all() -> Vec<Shape> {
    let mut shapes = honest_in_an_outage();
    shapes.extend(honest_when_told_to_wait());
    shapes.extend(honest_alone());
    shapes.extend(guilty_of_hammering());
    shapes.extend(guilty_when_told_to_wait());
    shapes.extend(guilty_of_repeated_posts());
    shapes
}

#[rustfmt::skip]
fn honest_in_an_outage() -> Vec<Shape> {
    use Wait::{Constant, Doubled, EqualJitter, FullJitter, None as NoWait, Urllib3};
    vec![
        honest("8 workers of a pool, urllib3 with jitter", ALL, fails::<24>,
            |s| many(s, 8, 3, Begin::AtOnce, retry(Urllib3(0.6, 0.3), 9))),
        honest("6 processes, urllib3 with jitter", OWN, fails::<24>,
            |s| same(s, 6, Begin::Within(1.0), retry(Urllib3(1.0, 0.5), 9))),
        honest("10 processes, urllib3 with jitter", OWN, fails::<40>,
            |s| same(s, 10, Begin::Within(1.0), retry(Urllib3(1.0, 0.5), 9))),
        honest("10 processes in lockstep, urllib3", OWN, fails_until::<7>,
            |s| same(s, 10, Begin::Apart(0.004), retry(Urllib3(1.0, 0.0), 9))),
        honest("8 threads 10 ms apart", ALL, fails_until::<6>,
            |s| same(s, 8, Begin::Apart(0.01), retry(EqualJitter(0.5, 30.0), 9))),
        honest("8 threads 3 ms apart, doubled", ALL, fails_until::<6>,
            |s| same(s, 8, Begin::Apart(0.003), retry(Doubled(0.5, 30.0), 9))),
        honest("16 workers 50 ms apart, doubled", ALL, fails_until::<6>,
            |s| same(s, 16, Begin::Apart(0.05), retry(Doubled(0.5, 30.0), 9))),
        honest("16 workers 5 ms apart", ALL, fails_until::<6>,
            |s| same(s, 16, Begin::Apart(0.005), retry(EqualJitter(0.2, 30.0), 9))),
        honest("8 curl processes", OWN, fails::<24>,
            |s| same(s, 8, Begin::Apart(0.006), retry(Doubled(1.0, 30.0), 5))),
        honest("24 curl processes, 8 at a time", OWN, fails::<40>,
            |s| many(s, 8, 3, Begin::Apart(0.006), retry(Doubled(1.0, 30.0), 5))),
        honest("50 tasks, full jitter", ALL, fails::<100>,
            |s| same(s, 50, Begin::AtOnce, retry(FullJitter(0.5, 10.0), 9))),
        honest("100 tasks over 8 connections", &[Pooled], fails::<60>,
            |s| same(s, 100, Begin::AtOnce, retry(EqualJitter(0.5, 30.0), 9))).connections(8),
        honest("100 tasks over 8 connections, all fail once", &[Pooled], fails_until::<1>,
            |s| same(s, 100, Begin::AtOnce, retry(EqualJitter(1.0, 30.0), 9))).connections(8),
        honest("20 goroutines, 2 idle connections", &[Pooled], fails_until::<3>,
            |s| same(s, 20, Begin::AtOnce, retry(EqualJitter(0.2, 30.0), 9))).idle(2),
        honest("30 pods, full jitter", OWN, fails_until::<5>,
            |s| same(s, 30, Begin::Within(1.0), retry(FullJitter(0.5, 10.0), 12))),
        honest("7 pods, doubled from 1 s", OWN, fails_until::<6>,
            |s| same(s, 7, Begin::Within(1.0), retry(Doubled(1.0, 30.0), 6))),
        honest("12 asyncio tasks, full jitter", &[Pooled, Http2], fails_until::<5>,
            |s| same(s, 12, Begin::Within(0.3), retry(FullJitter(0.1, 2.0), 15))),
        honest("40 requests in one write", &[Http2], fails_until::<2>,
            |s| same(s, 40, Begin::Within(0.000_3), retry(EqualJitter(0.3, 30.0), 9)))
            .cpu(0.0, 0.000_02),
        honest("gateway, 5 a second", ALL, down, |s| gateway(s, 5.0, 60, ONCE)),
        honest("gateway, 20 a second", ALL, down, |s| gateway(s, 20.0, 60, ONCE)),
        honest("gateway, 20 a second, fails later", ALL,
            |_, number| Some(if number > 120 { 503 } else { 200 }),
            |s| gateway(s, 20.0, 240, ONCE)),
        honest("gateway, from 3 to 40 a second", ALL,
            |_, number| Some(if number > 60 { 503 } else { 200 }),
            |s| growing_gateway(s, 3.0, 1.013, 200, ONCE)),
        honest("gateway, 50 a second", ALL, down, |s| gateway(s, 50.0, 120, ONCE)),
        honest("gateway, 20 a second, now and then down", ALL,
            |now, _| Some(if (now * 2.0) % 2.0 < 1.0 { 200 } else { 503 }),
            |s| gateway(s, 20.0, 150, ONCE)),
        honest("gateway, paced every 60 ms", ALL, down,
            |s| same(s, 60, Begin::Apart(0.06), ONCE)),
        honest("6 pollers, every 2 s", OWN,
            |now, _| Some(if (8.0..33.0).contains(&now) { 503 } else { 200 }),
            |s| pollers(s, 6, 2.0, 20)),
        honest("a poller whose time-out is its interval", &[New], |_, _| None,
            |s| pollers(s, 1, 1.0, 12)).answers_within(0.95, 0.95),
        honest("3 readiness loops", OWN, fails_until::<8>,
            |s| same(s, 3, Begin::Within(1.0), retry(Constant(0.5), 30))),
        honest("a readiness loop", &[New], fails_until::<6>,
            |s| one(s, retry(Constant(0.5), 30))),
        honest("8 adders of one pet, no retry", ALL, loses::<3>, |s| {
            for worker in 0..8 {
                let at = Begin::AtOnce.of(worker, s.random());
                s.start(at, Calls::new(vec![pet("Rex")], retry(NoWait, 1)));
            }
        }),
        honest("8 adders that check first", &[Kept, Pooled], loses::<5>, |s| {
            for worker in 0..8 {
                let at = Begin::AtOnce.of(worker, s.random());
                let name = format!("p{worker}");
                s.start(at, Box::new(Checks { name, failures: 0, is_checking: false }));
            }
        }),
    ]
}

#[rustfmt::skip]
fn honest_when_told_to_wait() -> Vec<Shape> {
    use Wait::Doubled;
    vec![
        honest("503: 8 workers", OWN, fails::<16>,
            |s| same(s, 8, Begin::Within(0.9), retry(Doubled(0.5, 30.0), 9))).retry_after(3),
        honest("503: 8 workers of a pool", &[Pooled], fails::<12>,
            |s| same(s, 8, Begin::AtOnce, retry(Doubled(0.5, 30.0), 9))).retry_after(3),
        honest("503: 30 tasks", &[Pooled, Http2], fails::<30>,
            |s| same(s, 30, Begin::AtOnce, retry(Doubled(0.5, 30.0), 9))).retry_after(2),
        honest("503: 7 pods", &[Kept], fails::<9>,
            |s| same(s, 7, Begin::Within(1.0), retry(Doubled(0.5, 30.0), 9))).retry_after(5),
        honest("429: 10 threads", &[Kept, Http2], up,
            |s| pages(s, 10, 1, Begin::AtOnce, OBEYS)).quota(5),
        honest("429: 10 threads, the same request", &[Kept, Http2], up,
            |s| same(s, 10, Begin::AtOnce, OBEYS)).quota(5),
        honest("429: 7 pods 150 ms apart", &[Kept], up,
            |s| pages(s, 7, 1, Begin::Apart(0.15), OBEYS)).quota(2),
        honest("429: 7 pods, the same request", OWN, up,
            |s| same(s, 7, Begin::Within(0.9), OBEYS)).quota(2),
        honest("429: 8 workers of a pool", &[Pooled], up,
            |s| pages(s, 8, 3, Begin::AtOnce, OBEYS)).quota(12),
        honest("429: 8 workers of a pool, slow answers", &[Pooled], up,
            |s| many(s, 8, 3, Begin::AtOnce, OBEYS)).quota(12).answers_within(0.02, 0.2),
        honest("429: 20 at once", REUSED, up,
            |s| pages(s, 20, 1, Begin::AtOnce, OBEYS)).quota(5),
        honest("429: 100 at once", &[Kept, Http2], up,
            |s| pages(s, 100, 1, Begin::Within(0.02), OBEYS)).quota(60).cpu(0.0, 0.000_1),
        honest("429: 8 curl processes", OWN, up,
            |s| same(s, 8, Begin::Apart(0.006), OBEYS)).quota(5),
        honest("429: one sender, three minutes", ALONE, up,
            |s| pages(s, 1, 40, Begin::Within(1.0), OBEYS)).quota(15),
    ]
}

/// Single clients that fail at least twelve times. Shorter recordings cannot show hammering.
#[rustfmt::skip]
fn honest_alone() -> Vec<Shape> {
    use Wait::{Doubled, EqualJitter, FullJitter, Urllib3};
    vec![
        honest("alone: full jitter from 50 ms", ALONE, down,
            |s| one(s, retry(FullJitter(0.05, 30.0), 13))),
        honest("alone: full jitter from 100 ms to 1 s", ALONE, down,
            |s| one(s, retry(FullJitter(0.1, 1.0), 13))),
        honest("alone: equal jitter from 50 ms", ALONE, down,
            |s| one(s, retry(EqualJitter(0.05, 2.0), 13))),
        honest("alone: doubled from 10 ms", ALONE, down,
            |s| one(s, retry(Doubled(0.01, 1.0), 13))),
        honest("alone: urllib3 from 100 ms", ALONE, down,
            |s| one(s, retry(Urllib3(0.1, 0.0), 13))),
        honest("alone: 6 calls with 2 retries each", ALONE, down,
            |s| many(s, 1, 6, Begin::Within(1.0), retry(Doubled(0.2, 5.0), 3))),
    ]
}

#[rustfmt::skip]
fn guilty_of_hammering() -> Vec<Shape> {
    use Wait::{Between, Constant, None as NoWait};
    const FAST: (Seconds, Seconds) = (0.000_2, 0.000_8);
    const PYTHON: (Seconds, Seconds) = (0.000_8, 0.002);
    let mut shapes = vec![
        guilty("8 threads hammer, 10 times", BackOff, ALL, down,
            |s| same(s, 8, Begin::AtOnce, retry(NoWait, 10))),
        guilty("8 threads hammer, 100 times", BackOff, ALL, down,
            |s| same(s, 8, Begin::AtOnce, retry(NoWait, 100))),
        guilty("8 slow threads hammer, 10 times", BackOff, &[Kept, New, Pooled], down,
            |s| same(s, 8, Begin::AtOnce, retry(NoWait, 10))).cpu(0.001, 0.003),
        guilty("8 slow threads hammer, 100 times", BackOff, &[Kept, New, Pooled], down,
            |s| same(s, 8, Begin::AtOnce, retry(NoWait, 100))).cpu(0.001, 0.003),
        guilty("one hammers a slow service", BackOff, OWN, down,
            |s| one(s, retry(NoWait, 13))).answers_within(0.02, 0.05),
        guilty("10 hammer 200 times", BackOff, &[Http2], down,
            |s| same(s, 10, Begin::AtOnce, retry(NoWait, 200))),
        guilty("one hammers 1,000 times", BackOff, &[Http2], down,
            |s| one(s, retry(NoWait, 1_000))),
        guilty("20 tasks of a pool hammer 60 times", BackOff, &[Pooled], down,
            |s| same(s, 20, Begin::AtOnce, retry(NoWait, 60))),
        guilty("10 workers, every 50 ms", BackOff, ALL, down,
            |s| same(s, 10, Begin::Within(0.3), retry(Constant(0.05), 40))),
        guilty("10 workers, every 200 ms", BackOff, ALL, down,
            |s| same(s, 10, Begin::Within(0.3), retry(Constant(0.2), 20))),
        guilty("one, after 50 to 250 ms", BackOff, OWN, down,
            |s| one(s, retry(Between(0.05, 0.25), 40))),
        guilty("gateway, 5 a second, 6 retries at once", BackOff, ALL, down,
            |s| gateway(s, 5.0, 40, retry(NoWait, 7))),
        guilty("gateway, 20 a second, 6 retries at once", BackOff, ALL, down,
            |s| gateway(s, 20.0, 80, retry(NoWait, 7))),
    ];
    for (least, most) in [FAST, PYTHON] {
        shapes.extend([
            guilty("one, 3 retries at once", BackOff, &[Kept], down,
                |s| one(s, retry(NoWait, 4))).cpu(least, most),
            guilty("one, 4 retries at once", BackOff, ALONE, down,
                |s| one(s, retry(NoWait, 5))).cpu(least, most),
            guilty("one, 6 retries at once", BackOff, ALONE, down,
                |s| one(s, retry(NoWait, 7))).cpu(least, most),
            guilty("one, 12 retries at once", BackOff, ALONE, down,
                |s| one(s, retry(NoWait, 13))).cpu(least, most),
            guilty("one, 30 retries at once", BackOff, ALONE, down,
                |s| one(s, retry(NoWait, 31))).cpu(least, most),
        ]);
    }
    shapes
}

#[rustfmt::skip]
fn guilty_when_told_to_wait() -> Vec<Shape> {
    use Wait::{Constant, Doubled, None as NoWait};
    vec![
        guilty("429: 10 workers, again after 5 s", ToldToWait, REUSED, up, |s| {
            let again = retry(Constant(5.0), 3).whatever_it_is_told();
            pages(s, 10, 1, Begin::Within(3.0), again);
        }).quota(2),
        guilty("429: 4 workers, every second", ToldToWait, ALL, up, |s| {
            let again = retry(Constant(1.0), 11).whatever_it_is_told();
            pages(s, 4, 1, Begin::Within(1.0), again);
        }).quota(2),
        guilty("429: 3 workers, twice again", ToldToWait, REUSED, up, |s| {
            let again = retry(Constant(2.0), 3).whatever_it_is_told();
            pages(s, 3, 1, Begin::Apart(0.3), again);
        }).quota(1),
        guilty("429: one, again after 1 s", ToldToWait, ALONE, up, |s| {
            let again = retry(Doubled(1.0, 30.0), 3).whatever_it_is_told();
            let at = s.random().between(50.0, 52.0);
            s.start(at, Calls::new(vec![list()], again));
        }).quota(0),
        guilty("429: one, at once again", ToldToWait, ALONE, up,
            |s| one(s, retry(NoWait, 3).whatever_it_is_told())).quota(0),
        guilty("429: one sends 1,000", ToldToWait, &[Http2, Kept], up,
            |s| many(s, 1, 1_000, Begin::Within(1.0), ONCE)).quota(5),
        guilty("429: a loop of 400", ToldToWait, OWN, up,
            |s| many(s, 1, 400, Begin::Within(1.0), ONCE)).quota(60),
        guilty("429: a gateway goes on", ToldToWait, ALL, up,
            |s| gateway(s, 5.0, 80, ONCE)).quota(20),
        guilty("429: an import goes on", ToldToWait, ALONE, up, |s| {
            let pets = (0..20).map(|number| pet(&format!("p{number}"))).collect();
            s.start(1.0, Calls::new(pets, ONCE));
        }).quota(5),
        guilty("429: 5 pods hammer", ToldToWait, OWN, up, |s| {
            let again = retry(Constant(0.1), 20).whatever_it_is_told();
            same(s, 5, Begin::Within(1.0), again);
        }).quota(3),
        guilty("503: 8 workers ignore it", RetryAfter, ALL, down, |s| {
            let again = retry(Constant(0.5), 8).whatever_it_is_told();
            same(s, 8, Begin::Within(0.5), again);
        }).retry_after(10),
        guilty("503: one ignores it", RetryAfter, ALONE, down, |s| {
            one(s, retry(Doubled(0.5, 30.0), 4).whatever_it_is_told());
        }).retry_after(10),
        guilty("503: a gateway goes on", RetryAfter, ALL, down,
            |s| gateway(s, 5.0, 40, ONCE)).retry_after(10),
    ]
}

#[rustfmt::skip]
fn guilty_of_repeated_posts() -> Vec<Shape> {
    use Wait::{EqualJitter, None as NoWait};
    vec![
        guilty("8 adders, blindly again", RepeatedPost, ALL, loses::<5>,
            |s| adders(s, 8, retry(EqualJitter(0.5, 30.0), 4))),
        guilty("one adder, blindly at once again", RepeatedPost, ALONE, loses::<2>,
            |s| adders(s, 1, retry(NoWait, 3))),
    ]
}
