//! Simulates programs that send requests to a model of the mock, and records their exchanges as
//! lines of a recording. The same seed always makes the same recording.
//!
//! A program has workers, which share its CPU and, depending on the transport, its connections.
//! Some tenths of a millisecond pass between the client's decision to send and the arrival, as
//! between real programs on one machine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A time or a duration, in seconds.
pub(super) type Seconds = f64;

/// Seeded random numbers: `SplitMix64` by Steele, Lea and Flood.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Creates numbers that depend on the seed and the name.
    pub(super) fn new(seed: u64, name: &str) -> Self {
        let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        Self(name.bytes().fold(seed ^ 0xCBF2_9CE4_8422_2325, mix))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 (inclusive) to 1 (exclusive).
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn between(&mut self, least: f64, most: f64) -> f64 {
        least + self.unit() * (most - least)
    }

    /// Returns the time to the next event of a Poisson process.
    pub(super) fn exponential(&mut self, per_second: f64) -> Seconds {
        -(1.0 - self.unit()).ln() / per_second
    }

    /// Returns 1, or with a probability of 1 in `one_in` the factor `rare`.
    fn rarely(&mut self, rare: f64, one_in: f64) -> f64 {
        if self.unit() < 1.0 / one_in {
            rare
        } else {
            1.0
        }
    }
}

/// How a program uses connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// Each worker keeps one connection.
    Kept,
    /// Each request opens a connection.
    New,
    /// All workers share a pool. The connection that was used last is used first.
    Pooled,
    /// All workers share one HTTP/2 connection.
    Http2,
}

/// A request of a worker.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) body: String,
}

/// What a worker learns from a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// The status; `None` if no response came.
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<u32>,
}

impl Answer {
    pub(super) fn is_success(self) -> bool {
        self.status.is_some_and(|status| status < 400)
    }
}

/// What a worker does next.
#[derive(Debug)]
pub(super) enum Step {
    Send(Request),
    Sleep(Seconds),
    End,
}

/// A worker of a program. The simulation calls `next` for its first step, and after each response
/// and sleep.
pub(super) trait Worker {
    fn next(&mut self, answer: Option<Answer>, now: Seconds, random: &mut Random) -> Step;
}

/// The status of a request that is within the quota, by its time and number. `None` is no answer.
pub(super) type Status = fn(Seconds, u32) -> Option<u16>;

/// How the mock answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    pub(super) status: Status,
    /// The `Retry-After` of each 503.
    pub(super) retry_after: Option<u32>,
    /// The quota per minute.
    pub(super) quota: Option<u32>,
    /// The shortest and longest time to a response.
    pub(super) time: (Seconds, Seconds),
}

/// The properties of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) transport: Transport,
    /// The maximum number of pooled connections, and of idle ones; 0 is no limit.
    pub(super) max_connections: usize,
    pub(super) max_idle: usize,
    /// The shortest and longest CPU time of a request.
    pub(super) cpu: (Seconds, Seconds),
}

/// Something that happens at a time.
enum Event {
    /// A worker does its next step.
    Next(usize, Option<Answer>),
    /// A request arrives on a connection, which may be new.
    Arrives(usize, Request, u64, bool),
    /// A worker reads the response on a connection.
    Read(usize, Answer, u64),
}

/// A time in nanoseconds, which can be compared, and a number that keeps the order of events.
type Place = (u64, u64);

/// A running simulation.
pub(super) struct Simulation {
    random: Random,
    program: Program,
    service: ServiceState,
    now: Seconds,
    events: BTreeMap<Place, Event>,
    scheduled: u64,
    workers: Vec<Box<dyn Worker>>,
    /// The workers that have begun and are not done, and their highest number.
    working: BTreeSet<usize>,
    most_working: u32,
    pool: Pool,
    cpu_free_at: Seconds,
    lines: Vec<(Seconds, String)>,
}

/// The connections of a program.
#[derive(Default)]
struct Pool {
    opened: u64,
    /// When the last opened connection can carry requests.
    last_ready_at: Seconds,
    of_worker: BTreeMap<usize, u64>,
    idle: Vec<u64>,
    in_use: usize,
    waiting: VecDeque<(usize, Request)>,
}

impl Simulation {
    pub(super) fn new(seed: u64, name: &str, program: Program, service: Service) -> Self {
        Self {
            random: Random::new(seed, name),
            program,
            service: ServiceState::new(service),
            now: 0.0,
            events: BTreeMap::new(),
            scheduled: 0,
            workers: Vec::new(),
            working: BTreeSet::new(),
            most_working: 0,
            pool: Pool::default(),
            cpu_free_at: 0.0,
            lines: Vec::new(),
        }
    }

    pub(super) const fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Starts a worker at a time.
    pub(super) fn start(&mut self, at: Seconds, worker: Box<dyn Worker>) {
        self.workers.push(worker);
        self.schedule(at, Event::Next(self.workers.len() - 1, None));
    }

    /// Runs to the end, or until 15 minutes have passed. Returns the most workers that were not done at
    /// once, each of which may have had a request under way, and the lines of the recording.
    pub(super) fn run(mut self) -> (u32, Vec<String>) {
        while let Some((place, event)) = self.events.pop_first() {
            #[expect(clippy::cast_precision_loss, reason = "it is less than 2^53")]
            let now = place.0 as f64 / 1e9;
            if now > 900.0 {
                break;
            }
            self.now = now;
            match event {
                Event::Next(worker, answer) => self.next(worker, answer),
                Event::Arrives(worker, request, connection, is_new) => {
                    self.arrive(worker, &request, connection, is_new);
                }
                Event::Read(worker, answer, connection) => self.read(worker, answer, connection),
            }
        }
        // Kept connections are open until the end.
        let end = self.now + 2.0;
        let open = self.pool.idle.iter().chain(self.pool.of_worker.values());
        let mut open: Vec<u64> = open.copied().collect();
        if self.program.transport == Transport::Http2 {
            open.push(1);
        }
        for connection in open {
            self.lines.push((end, format!("x {end:.5} {connection}")));
        }
        self.lines.sort_by(|one, other| one.0.total_cmp(&other.0));
        let lines = self.lines.into_iter().map(|(_, line)| line);
        (self.most_working, lines.collect())
    }

    fn schedule(&mut self, at: Seconds, event: Event) {
        self.scheduled += 1;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "times are positive"
        )]
        let place = ((at.max(self.now) * 1e9) as u64, self.scheduled);
        self.events.insert(place, event);
    }

    fn next(&mut self, worker: usize, answer: Option<Answer>) {
        self.working.insert(worker);
        let working = u32::try_from(self.working.len()).unwrap();
        self.most_working = self.most_working.max(working);
        match self.workers[worker].next(answer, self.now, &mut self.random) {
            Step::Send(request) => self.send(worker, request),
            Step::Sleep(time) => {
                let late = self.random.between(0.000_1, 0.001);
                let at = self.now + time.max(0.0) + late;
                self.schedule(at, Event::Next(worker, None));
            }
            Step::End => {
                self.working.remove(&worker);
                if let Some(connection) = self.pool.of_worker.remove(&worker) {
                    self.close(connection, self.now + 0.000_5);
                }
            }
        }
    }

    fn close(&mut self, connection: u64, at: Seconds) {
        self.lines.push((at, format!("x {at:.5} {connection}")));
    }

    /// Sends a request as soon as the program's CPU is free.
    fn send(&mut self, worker: usize, request: Request) {
        let (least, most) = self.program.cpu;
        let cpu = self.random.between(least, most) * self.random.rarely(3.0, 5.0);
        let begin = self.now.max(self.cpu_free_at) + cpu;
        self.cpu_free_at = begin;
        let Some((connection, is_new)) = self.connection_for(worker) else {
            self.pool.waiting.push_back((worker, request));
            return;
        };
        let connecting = if is_new {
            self.random.between(0.000_15, 0.000_6)
        } else {
            0.0
        };
        let at = begin + connecting;
        if is_new {
            self.pool.last_ready_at = at;
        }
        let event = Event::Arrives(worker, request, connection, is_new);
        // On HTTP/2, the first connection may not be ready yet.
        let is_http2 = self.program.transport == Transport::Http2;
        let ready = if is_http2 {
            self.pool.last_ready_at
        } else {
            at
        };
        self.schedule(at.max(ready), event);
    }

    /// Returns the connection for the next request of a worker, and whether it is new; `None` if all
    /// are in use.
    fn connection_for(&mut self, worker: usize) -> Option<(u64, bool)> {
        let pool = &mut self.pool;
        let known = match self.program.transport {
            Transport::Kept => pool.of_worker.get(&worker).copied(),
            Transport::New => None,
            Transport::Http2 => (pool.opened > 0).then_some(1),
            Transport::Pooled => pool.idle.pop(),
        };
        if let Some(known) = known {
            return Some((known, false));
        }
        let max = self.program.max_connections;
        if self.program.transport == Transport::Pooled {
            if max > 0 && pool.in_use >= max {
                return None;
            }
            pool.in_use += 1;
        }
        pool.opened += 1;
        if self.program.transport == Transport::Kept {
            pool.of_worker.insert(worker, pool.opened);
        }
        Some((pool.opened, true))
    }

    fn arrive(&mut self, worker: usize, request: &Request, connection: u64, is_new: bool) {
        let (answer, more) = self.service.answer(self.now, request);
        let (least, most) = self.service.service.time;
        let took = self.random.between(least, most) * self.random.rarely(2.0, 4.0);
        let opened = if is_new { "<0.0003" } else { "" };
        let status = match answer.status {
            Some(status) => status.to_string(),
            None => "-".to_owned(),
        };
        let Request {
            method,
            target,
            body,
        } = request;
        let h2 = if self.program.transport == Transport::Http2 {
            " h2"
        } else {
            ""
        };
        let body = if body.is_empty() {
            String::new()
        } else {
            format!(" body={body}")
        };
        let now = self.now;
        let line = format!(
            "{now:.5}+{took:.5} {connection}{opened} {method} {target} {status}{h2}{more}{body}"
        );
        self.lines.push((now, line));
        let on_its_way = self.random.between(0.000_05, 0.000_3);
        let event = Event::Read(worker, answer, connection);
        self.schedule(now + took + on_its_way, event);
    }

    fn read(&mut self, worker: usize, answer: Answer, connection: u64) {
        if self.program.transport == Transport::New {
            let at = self.now + self.random.between(0.000_05, 0.000_6);
            self.close(connection, at);
        }
        if self.program.transport == Transport::Pooled {
            self.give_back(connection);
        }
        self.next(worker, Some(answer));
    }

    /// Gives a pooled connection to a waiting worker, or back to the pool.
    fn give_back(&mut self, connection: u64) {
        if let Some((worker, request)) = self.pool.waiting.pop_front() {
            let (least, most) = self.program.cpu;
            let at = self.now + self.random.between(least, most);
            self.schedule(at, Event::Arrives(worker, request, connection, false));
            return;
        }
        let max = self.program.max_idle;
        if max > 0 && self.pool.idle.len() >= max {
            self.pool.in_use -= 1;
            self.close(connection, self.now + 0.000_2);
        } else {
            self.pool.idle.push(connection);
        }
    }
}

/// The state of the model of the mock: quota, waits and ban of one key.
struct ServiceState {
    service: Service,
    requests: u32,
    pets: u32,
    minute: u64,
    used: u32,
    told_until: Seconds,
    strikes: VecDeque<Seconds>,
    banned_until: Seconds,
}

impl ServiceState {
    const fn new(service: Service) -> Self {
        Self {
            service,
            requests: 0,
            pets: 100,
            minute: 0,
            used: 0,
            told_until: 0.0,
            strikes: VecDeque::new(),
            banned_until: 0.0,
        }
    }

    /// Returns the response, and its text in the recording.
    fn answer(&mut self, now: Seconds, request: &Request) -> (Answer, String) {
        self.requests += 1;
        if let Some(quota) = self.service.quota
            && let Some(refused) = self.refuse(now, quota)
        {
            return refused;
        }
        self.used += 1;
        let mut status = (self.service.status)(now, self.requests);
        let mut more = String::new();
        if request.method == "POST" && status == Some(200) {
            status = Some(201);
            self.pets += 1;
            more = format!(" added={}", self.pets);
        }
        let retry_after = self.service.retry_after.filter(|_| status == Some(503));
        if let Some(seconds) = retry_after {
            more = format!(" wait={seconds}");
        }
        let answer = Answer {
            status,
            retry_after,
        };
        (answer, more)
    }

    fn refuse(&mut self, now: Seconds, quota: u32) -> Option<(Answer, String)> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "times are positive"
        )]
        let whole = |seconds: Seconds| seconds as u64;
        let minute = whole(now / 60.0);
        if minute != self.minute {
            (self.minute, self.used) = (minute, 0);
        }
        let wait = |until: Seconds| u32::try_from(whole((until - now).ceil()).max(1)).unwrap();
        let refused = |seconds: u32| Answer {
            status: Some(429),
            retry_after: Some(seconds),
        };
        if now < self.banned_until {
            let seconds = wait(self.banned_until);
            return Some((refused(seconds), format!(" banned wait={seconds}")));
        }
        if self.used < quota {
            return None;
        }
        let mut more = String::new();
        if now < self.told_until {
            self.strikes.retain(|strike| *strike > now - 60.0);
            self.strikes.push_back(now);
            more = format!(" strikes={}", self.strikes.len());
        }
        if self.strikes.len() > 10 {
            self.banned_until = now + 300.0;
            self.strikes.clear();
            return Some((refused(300), format!("{more} banned wait=300")));
        }
        let reset = (minute + 1) * 60;
        #[expect(clippy::cast_precision_loss, reason = "it is less than 2^53")]
        let until = reset as f64;
        self.told_until = until;
        let seconds = wait(until);
        more += &format!(" wait={seconds} remaining=0 reset={reset}");
        Some((refused(seconds), more))
    }
}
