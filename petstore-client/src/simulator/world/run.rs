//! Runs a simulation: tasks, their queue, the network, and virtual time in microseconds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::client::{Contender, LEASE, SimulatedClient, Turn};
use super::network::{End, RoundTrip};
use super::observations::Observations;
use super::rng::Rng;
use super::service::{Reply, Service};
use super::setup::{Outcome, Setup};
use super::window::{DAY, MINUTE, SECOND};
use crate::rate_limit::StoreTime;
use crate::rate_limit::quota::clock::ServiceTime;
use crate::rate_limit::quota::outstanding::Reservation;
use crate::rate_limit::shared::update::Update;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive(usize),
    Answer(usize),
    Gone(usize),
    Ready(usize, Job),
    Wake(usize),
    Burst(usize),
    Others,
}

/// A job of a task: when it began, and how many times it was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Job {
    since: i64,
    refused: u32,
}

struct SimulatedRequest {
    process: usize,
    reservation: Option<Reservation>,
    sent: i64,
    job: Job,
    round_trip: RoundTrip,
    reply: Option<Reply>,
    over: bool,
}

struct Process {
    client: SimulatedClient,
    line: VecDeque<Job>,
    /// Jobs that no task has begun.
    jobs: u64,
    alarm: Option<i64>,
    in_flight: usize,
}

/// How far the store's clock is ahead of the processes'.
const STORE_AHEAD: i64 = 1_000_000_000_000;

/// If processes are woken more often than this within a second, without any other event, they are
/// in an endless loop.
const MOST_WAKES: u32 = 10_000;
/// If processes are woken for this long and nothing else happens, they wait for ever: no quota is
/// longer than a day.
const LONGEST_WAIT: i64 = 2 * DAY;

struct World<'s> {
    setup: &'s Setup,
    rng: Rng,
    service: Service,
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    order: u64,
    requests: Vec<SimulatedRequest>,
    processes: Vec<Process>,
    granted: usize,
    /// How many times processes were woken in this second, since the last other event.
    woken: u32,
    woken_since: i64,
    /// When the last other event happened.
    active_at: i64,
    observed: Observations,
    /// The shared record as stored; `None` if there is none.
    record: Option<Vec<u8>>,
    now: i64,
    out: Outcome,
}

pub(in crate::simulator) fn run(setup: &Setup) -> Outcome {
    let mut world = World::new(setup);
    while let Some(Reverse((at, _, event))) = world.events.pop() {
        if at > setup.horizon {
            break;
        }
        world.now = at;
        if let Some(later) = world.stopped_until(&event) {
            world.schedule(later, event);
            continue;
        }
        if world.is_stuck(&event) {
            break;
        }
        world.take(event);
    }
    world.close()
}

impl<'s> World<'s> {
    fn new(setup: &'s Setup) -> Self {
        let mut rng = Rng::new(setup.seed);
        let mut process = |id| Process {
            client: SimulatedClient::new(
                setup.contender,
                setup.start + setup.wall + skew(setup.skew, &mut rng),
                setup.policy,
                (
                    id as u64,
                    setup.shared && id + setup.strangers < setup.processes,
                ),
            ),
            line: VecDeque::new(),
            jobs: setup.jobs,
            alarm: None,
            in_flight: 0,
        };
        let processes = (0..setup.processes).map(&mut process).collect();
        let mut world = Self {
            setup,
            rng,
            service: Service::new(setup.model.clone(), setup.start),
            events: BinaryHeap::new(),
            order: 0,
            requests: Vec::new(),
            processes,
            granted: 0,
            woken: 0,
            woken_since: 0,
            active_at: 0,
            observed: Observations::new(setup.model.day),
            record: None,
            now: 0,
            out: Outcome {
                done: vec![0; setup.processes],
                ..Outcome::default()
            },
        };
        for process in 0..setup.processes {
            if setup.burst_at > 0 {
                world.next_job(process);
                world.let_through(process);
            }
            // Processes do not start at the same moment.
            let at = if process == 0 {
                0
            } else {
                world.rng.below(setup.starts_within)
            };
            world.schedule(setup.burst_at + at, Event::Burst(process));
        }
        world.next_burst();
        world
    }

    fn schedule(&mut self, at: i64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    /// Counts the event. Returns whether processes are woken again and again in vain.
    fn is_stuck(&mut self, event: &Event) -> bool {
        if !matches!(event, Event::Wake(_)) {
            (self.woken, self.woken_since, self.active_at) = (0, self.now, self.now);
            return false;
        }
        if self.now >= self.woken_since + SECOND {
            (self.woken, self.woken_since) = (0, self.now);
        }
        self.woken += 1;
        let quiet = self.now - self.active_at;
        self.woken > MOST_WAKES || quiet > LONGEST_WAIT || quiet > MINUTE && self.is_done()
    }

    /// Returns whether all jobs are done. Processes may still try to report to the store.
    fn is_done(&self) -> bool {
        self.processes
            .iter()
            .all(|process| process.jobs == 0 && process.line.is_empty() && process.in_flight == 0)
    }

    /// Returns when an event reaches a process that is stopped.
    fn stopped_until(&self, event: &Event) -> Option<i64> {
        let process = match event {
            Event::Arrive(_) | Event::Others => return None,
            Event::Answer(id) | Event::Gone(id) => self.requests[*id].process,
            Event::Ready(p, _) | Event::Wake(p) | Event::Burst(p) => *p,
        };
        let is_stopped = process == 0 && self.setup.stopped.contains(&self.now);
        is_stopped.then_some(self.setup.stopped.end)
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Arrive(id) => self.arrive(id),
            Event::Answer(id) => self.answer(id),
            Event::Gone(id) => self.gone(id),
            Event::Ready(p, job) => {
                self.processes[p].line.push_front(job);
                self.let_through(p);
            }
            // Another alarm was set since.
            Event::Wake(p) if self.processes[p].alarm != Some(self.now) => {}
            Event::Wake(p) => {
                self.processes[p].alarm = None;
                self.let_through(p);
            }
            Event::Burst(p) => {
                let tasks = if p == 0 {
                    self.setup.first_tasks
                } else {
                    self.setup.tasks
                };
                (0..tasks).for_each(|_| self.next_job(p));
                self.let_through(p);
            }
            Event::Others => {
                let size = self.setup.bursts.map_or(0, |bursts| bursts.size);
                self.out.others += self.service.count_others(self.now, size);
                self.next_burst();
            }
        }
    }

    /// Schedules the next burst of other clients.
    fn next_burst(&mut self) {
        if let Some(bursts) = self.setup.bursts {
            let pause = self.rng.below(2 * bursts.interval);
            self.schedule(self.now + pause, Event::Others);
        }
    }

    /// Updates the record, if a process has something to report or to ask for.
    fn update(&mut self, p: usize) -> bool {
        let now = self.processes[p].client.local(self.now);
        let waiting = self.processes[p].line.len() as u64;
        let due = self.processes[p].client.update_at(waiting);
        if due.is_none_or(|at| at > now) {
            return false;
        }
        let spread = self.rng.below(1_000) as f64 / 1e3;
        let killed = self.is_killed(0);
        let (at, wall) = self.clocks();
        let client = &mut self.processes[p].client;
        let member = client.member.member_mut().unwrap();
        let report = member.report(now, waiting, spread);
        let is_cut_off = p + self.setup.cut_off.min(self.setup.processes) >= self.setup.processes;
        if is_cut_off && self.setup.outage.contains(&self.now) {
            member.update_failed(now, None);
            return true;
        }
        let shift = at.since().0 - now.0;
        let (id, report) = (member.id(), report.moved(shift));
        let applied = Update::new(id, &report, &client.policy, at.since()).apply_to_stored(
            self.record.as_deref(),
            at,
            wall,
            |member| member.get() != 0 || !killed,
            || None,
        );
        client.ahead += shift;
        member.shift(shift);
        let applied = match applied {
            Ok(applied) => applied,
            Err(rejected) => {
                member.wait_for_room(at.since(), *rejected.full.expect("the record is full"));
                return true;
            }
        };
        self.out.largest_record = self.out.largest_record.max(applied.bytes.len());
        self.out.updates += 1;
        self.record = Some(applied.bytes);
        member.updated(
            at.since(),
            applied.record,
            report.given_back,
            applied.granted,
        );
        true
    }

    /// The clock of the store, and the wall clock.
    fn clocks(&self) -> (StoreTime, ServiceTime) {
        let (at, by) = self.setup.store_step;
        let step = if self.now >= at { by } else { 0 };
        let since = Duration::from_micros((self.now + STORE_AHEAD + step) as u64);
        (
            StoreTime::new(0, since),
            ServiceTime(self.setup.start + self.setup.wall + self.now),
        )
    }

    fn is_killed(&self, p: usize) -> bool {
        p == 0 && self.now >= self.setup.killed
    }

    fn let_through(&mut self, p: usize) {
        if self.is_killed(p) {
            return;
        }
        loop {
            let wake = self.send_all(p);
            if !self.update(p) {
                let waiting = self.processes[p].line.len() as u64;
                let client = &self.processes[p].client;
                let update = client.update_at(waiting).map(|at| at.0 - client.ahead);
                if let Some(at) = wake.into_iter().chain(update).min() {
                    self.wake(p, at);
                }
                break;
            }
        }
    }

    fn wake(&mut self, p: usize, at: i64) {
        let process = &mut self.processes[p];
        if process
            .alarm
            .is_none_or(|alarm| alarm > at || alarm <= self.now)
        {
            let at = at.max(self.now + 1);
            process.alarm = Some(at);
            self.schedule(at, Event::Wake(p));
        }
    }

    /// Sends what may be sent. Returns when to look again, if jobs wait.
    fn send_all(&mut self, p: usize) -> Option<i64> {
        while let Some(&job) = self.processes[p].line.front() {
            let process = &mut self.processes[p];
            match process.client.turn(self.now, &mut self.service) {
                Turn::Send(reservation) => {
                    process.line.pop_front();
                    self.granted += 1;
                    let round_trip = self
                        .setup
                        .network
                        .round_trip(self.granted - 1, &mut self.rng);
                    match reservation {
                        Some(reservation) if round_trip.end == End::Dropped => {
                            self.processes[p].client.member.release(reservation);
                            self.next_job(p);
                        }
                        _ => self.send(p, reservation, job, round_trip),
                    }
                }
                Turn::At(at) => return Some(at),
                // The limiter, too, checks every second whether leases are over.
                Turn::Busy => return Some(self.now + 1_000_000),
            }
        }
        None
    }

    fn send(
        &mut self,
        p: usize,
        reservation: Option<Reservation>,
        job: Job,
        round_trip: RoundTrip,
    ) {
        let process = &mut self.processes[p];
        if let Some(reservation) = reservation {
            let now = process.client.local(self.now);
            assert!(process.client.member.start(reservation, now, LEASE));
        }
        process.in_flight += 1;
        self.out.sent_while_blocked += u64::from(self.now < process.client.blocked_until);
        if process.client.member.local().ledger().windows().is_empty() {
            self.out.most_while_unknown = self.out.most_while_unknown.max(process.in_flight);
        }
        self.out.times.push(self.now);
        let id = self.requests.len();
        let (sent, reply, over) = (self.now, None, false);
        self.requests.push(SimulatedRequest {
            process: p,
            reservation,
            sent,
            job,
            round_trip,
            reply,
            over,
        });
        match round_trip.end {
            End::LostThere(after) => self.schedule(sent + after, Event::Gone(id)),
            End::Cancelled(after) => {
                self.schedule(sent + round_trip.there, Event::Arrive(id));
                self.schedule(sent + after, Event::Gone(id));
            }
            _ => self.schedule(sent + round_trip.there, Event::Arrive(id)),
        }
    }

    fn arrive(&mut self, id: usize) {
        let SimulatedRequest {
            process,
            round_trip,
            sent,
            ..
        } = self.requests[id];
        let client = &mut self.processes[process].client;
        client.on_the_way = client.on_the_way.saturating_sub(1);
        let reply = self.service.serve(self.now, &mut self.rng);
        self.requests[id].reply = Some(reply);
        if reply.status == 429 {
            self.out.unforeseen += u64::from(!self.observed.foreseen(sent, &reply));
        }
        match round_trip.end {
            End::LostBack(after) => self.schedule(self.now + after, Event::Gone(id)),
            _ => self.schedule(self.now + round_trip.back, Event::Answer(id)),
        }
        if self.setup.contender == Contender::Oracle {
            self.let_through(process);
        }
    }

    fn answer(&mut self, id: usize) {
        let SimulatedRequest {
            process: p,
            reservation,
            job,
            reply: Some(reply),
            over: false,
            ..
        } = self.requests[id]
        else {
            return;
        };
        self.requests[id].over = true;
        self.processes[p].in_flight -= 1;
        if self.is_killed(p) {
            return;
        }
        let client = &mut self.processes[p].client;
        let wait = client.answered((reservation, job.refused), self.now, &reply, &mut self.rng);
        self.observed.answer(self.now, &reply);
        if reply.status == 429 {
            let again = Job {
                refused: job.refused + 1,
                ..job
            };
            self.schedule(self.now + wait, Event::Ready(p, again));
        } else {
            self.out.latencies.push(self.now - job.since);
            if p == 0 {
                self.out.first_latencies.push(self.now - job.since);
            }
            self.out.done[p] += 1;
            self.next_job(p);
        }
        self.let_through(p);
    }

    fn gone(&mut self, id: usize) {
        let SimulatedRequest {
            process: p,
            reservation,
            over: false,
            ..
        } = self.requests[id]
        else {
            return;
        };
        self.requests[id].over = true;
        self.processes[p].in_flight -= 1;
        if let Some(reservation) = reservation.filter(|_| !self.is_killed(p)) {
            let client = &mut self.processes[p].client;
            client
                .member
                .record_lost(reservation, client.local(self.now));
        }
        self.observed.nothing();
        self.next_job(p);
        self.let_through(p);
    }

    fn next_job(&mut self, p: usize) {
        self.out.finished = self.now;
        let process = &mut self.processes[p];
        if process.jobs > 0 {
            process.jobs -= 1;
            let pause = if p == 0 && self.now > 0 {
                self.setup.first_pause
            } else {
                0
            };
            let job = Job {
                since: self.now + pause,
                refused: 0,
            };
            match pause {
                0 => process.line.push_back(job),
                pause => self.schedule(self.now + pause, Event::Ready(p, job)),
            }
        }
    }

    /// Answers one more request, and counts what is then left.
    fn close(mut self) -> Outcome {
        self.out.refusals = self.service.refusals;
        self.out.late_repeats = self.service.late_repeats;
        self.out.bans = self.service.bans;
        self.out.admitted = self.service.admitted;
        self.out.seconds = std::mem::take(&mut self.service.seconds);
        (self.out.uninformative, self.out.most_uninformative) =
            (self.observed.uninformative, self.observed.most_in_a_row);
        for process in &mut self.processes {
            self.out.undone += process.jobs + process.line.len() as u64;
            if self.setup.contender == Contender::Limiter {
                self.out.left_over += process.client.outstanding_at_rest(self.now);
            }
        }
        self.out
    }
}

/// Returns how far a process's wall clock is off.
fn skew(most: i64, rng: &mut Rng) -> i64 {
    match most {
        0 => 0,
        most => rng.below(2 * most + 1) - most,
    }
}
