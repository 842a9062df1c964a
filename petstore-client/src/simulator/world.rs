//! The run itself: tasks, their line, the network and virtual time in microseconds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::client::{Client, Kind, Turn};
use super::heard::Heard;
use super::network::{End, Trip};
use super::rng::Rng;
use super::service::{Reply, Service};
use super::setup::{Outcome, Setup};
use crate::quota::{Local, Ticket, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive(usize),
    Answer(usize),
    Gone(usize),
    Ready(usize, Job),
    Wake(usize),
    Burst(usize),
}

/// What a task has to get done: since when, and after how many refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Job {
    since: i64,
    refused: u32,
}

struct Request {
    process: usize,
    ticket: Option<Ticket>,
    sent: i64,
    job: Job,
    trip: Trip,
    reply: Option<Reply>,
    over: bool,
}

struct Process {
    client: Client,
    line: VecDeque<Job>,
    /// Jobs that no task has begun.
    jobs: u64,
    alarm: Option<i64>,
    in_flight: usize,
}

/// A process that is woken more often than this, and sends nothing, goes round in circles.
const MOST_WAKES: u32 = 10_000;

struct World<'s> {
    setup: &'s Setup,
    rng: Rng,
    service: Service,
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    order: u64,
    requests: Vec<Request>,
    processes: Vec<Process>,
    granted: usize,
    /// How often a process was woken since anything else happened.
    woken: u32,
    heard: Heard,
    /// What processes share, where they do.
    page: Option<Vec<u8>>,
    now: i64,
    out: Outcome,
}

pub(super) fn run(setup: &Setup) -> Outcome {
    let mut world = World::new(setup);
    while let Some(Reverse((at, _, event))) = world.events.pop() {
        if at > setup.horizon {
            break;
        }
        world.now = at;
        let alone = matches!(event, Event::Wake(_));
        world.woken = if alone { world.woken + 1 } else { 0 };
        if world.woken > MOST_WAKES {
            break;
        }
        world.take(event);
    }
    world.close()
}

impl<'s> World<'s> {
    fn new(setup: &'s Setup) -> Self {
        let process = |_| Process {
            client: Client::new(setup.kind, setup.start + setup.wall, setup.policy),
            line: VecDeque::new(),
            jobs: setup.jobs,
            alarm: None,
            in_flight: 0,
        };
        let mut world = Self {
            setup,
            rng: Rng::new(setup.seed),
            service: Service::new(setup.model.clone(), setup.start),
            events: BinaryHeap::new(),
            order: 0,
            requests: Vec::new(),
            processes: (0..setup.processes).map(process).collect(),
            granted: 0,
            woken: 0,
            heard: Heard::new(setup.model.day),
            page: None,
            now: 0,
            out: Outcome::default(),
        };
        for process in 0..setup.processes {
            if setup.burst_at > 0 {
                world.next_job(process);
                world.let_through(process);
            }
            // Processes do not start at the same moment.
            let at = if process == 0 { 0 } else { world.rng.below(500_000) };
            world.schedule(setup.burst_at + at, Event::Burst(process));
        }
        world
    }

    fn schedule(&mut self, at: i64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
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
            Event::Wake(p) => {
                self.processes[p].alarm = None;
                self.let_through(p);
            }
            Event::Burst(p) => {
                (0..self.setup.tasks).for_each(|_| self.next_job(p));
                self.let_through(p);
            }
        }
    }

    /// Has a process know what the others know.
    fn open(&mut self, p: usize) {
        if let Some(page) = &self.page {
            let (now, wall) = self.clocks();
            assert!(self.processes[p].client.keeper.take_over(page, now, wall));
        }
    }

    /// Has a process leave what it knows to the others.
    fn shut(&mut self, p: usize) {
        if self.setup.shared {
            let (now, wall) = self.clocks();
            self.page = Some(self.processes[p].client.keeper.note(now, wall));
        }
    }

    fn clocks(&self) -> (Local, Time) {
        (Local(self.now), Time(self.setup.start + self.setup.wall + self.now))
    }

    fn is_killed(&self, p: usize) -> bool {
        p == 0 && self.now >= self.setup.killed
    }

    fn let_through(&mut self, p: usize) {
        if self.is_killed(p) {
            return;
        }
        self.open(p);
        while let Some(&job) = self.processes[p].line.front() {
            let process = &mut self.processes[p];
            match process.client.turn(self.now, &mut self.service) {
                Turn::Go(ticket) => {
                    process.line.pop_front();
                    self.granted += 1;
                    let trip = self.setup.network.trip(self.granted - 1, &mut self.rng);
                    match ticket {
                        Some(ticket) if trip.end == End::Dropped => {
                            self.processes[p].client.keeper.state.unused(ticket);
                            self.next_job(p);
                        }
                        _ => self.send(p, ticket, job, trip),
                    }
                }
                Turn::At(at) => {
                    if process.alarm.is_none_or(|alarm| alarm > at || alarm <= self.now) {
                        process.alarm = Some(at);
                        self.schedule(at.max(self.now + 1), Event::Wake(p));
                    }
                    break;
                }
                Turn::Busy if self.setup.shared => {
                    // As the gate looks again whether others' requests are over.
                    if process.alarm.is_none_or(|alarm| alarm <= self.now) {
                        process.alarm = Some(self.now + 20_000);
                        self.schedule(self.now + 20_000, Event::Wake(p));
                    }
                    break;
                }
                Turn::Busy => break,
            }
        }
        self.shut(p);
    }

    fn send(&mut self, p: usize, ticket: Option<Ticket>, job: Job, trip: Trip) {
        let process = &mut self.processes[p];
        process.in_flight += 1;
        self.out.defied += u64::from(self.now < process.client.told);
        if process.client.keeper.state.accounts().is_empty() {
            self.out.most_while_unknown = self.out.most_while_unknown.max(process.in_flight);
        }
        self.out.times.push(self.now);
        let id = self.requests.len();
        let (sent, reply, over) = (self.now, None, false);
        self.requests.push(Request { process: p, ticket, sent, job, trip, reply, over });
        match trip.end {
            End::LostThere(after) => self.schedule(sent + after, Event::Gone(id)),
            End::Cancelled(after) => {
                self.schedule(sent + trip.there, Event::Arrive(id));
                self.schedule(sent + after, Event::Gone(id));
            }
            _ => self.schedule(sent + trip.there, Event::Arrive(id)),
        }
    }

    fn arrive(&mut self, id: usize) {
        let Request { process, trip, sent, .. } = self.requests[id];
        let client = &mut self.processes[process].client;
        client.on_the_way = client.on_the_way.saturating_sub(1);
        let reply = self.service.serve(self.now, &mut self.rng);
        self.requests[id].reply = Some(reply);
        if reply.status == 429 {
            self.out.unforeseen += u64::from(!self.heard.foretold(sent, &reply));
        }
        match trip.end {
            End::LostBack(after) => self.schedule(self.now + after, Event::Gone(id)),
            _ => self.schedule(self.now + trip.back, Event::Answer(id)),
        }
        if self.setup.kind == Kind::Oracle {
            self.let_through(process);
        }
    }

    fn answer(&mut self, id: usize) {
        let Request { process: p, ticket, sent, job, reply: Some(reply), over: false, .. } =
            self.requests[id]
        else {
            return;
        };
        self.requests[id].over = true;
        self.processes[p].in_flight -= 1;
        if self.is_killed(p) {
            return;
        }
        self.open(p);
        let client = &mut self.processes[p].client;
        let wait = client.answered((ticket, sent, job.refused), self.now, &reply, &mut self.rng);
        self.shut(p);
        self.heard.answer(self.now, &reply);
        if reply.status == 429 {
            let again = Job { refused: job.refused + 1, ..job };
            self.schedule(self.now + wait, Event::Ready(p, again));
        } else {
            self.out.latencies.push(self.now - job.since);
            self.next_job(p);
        }
        self.let_through(p);
    }

    fn gone(&mut self, id: usize) {
        let Request { process: p, ticket, over: false, .. } = self.requests[id] else { return };
        self.requests[id].over = true;
        self.processes[p].in_flight -= 1;
        if let Some(ticket) = ticket.filter(|_| !self.is_killed(p)) {
            self.open(p);
            self.processes[p].client.keeper.state.lost(ticket);
            self.shut(p);
        }
        self.heard.nothing();
        self.next_job(p);
        self.let_through(p);
    }

    fn next_job(&mut self, p: usize) {
        self.out.finished = self.now;
        let process = &mut self.processes[p];
        if process.jobs > 0 {
            process.jobs -= 1;
            process.line.push_back(Job { since: self.now, refused: 0 });
        }
    }

    /// Counts what is left, once one more request has been answered.
    fn close(mut self) -> Outcome {
        self.out.refusals = self.service.refusals;
        self.out.late_repeats = self.service.late_repeats;
        self.out.bans = self.service.bans;
        self.out.let_in = self.service.let_in;
        (self.out.unheard, self.out.most_unheard) = (self.heard.unheard, self.heard.most_in_a_row);
        for process in &mut self.processes {
            self.out.undone += process.jobs + process.line.len() as u64;
            if self.setup.kind == Kind::Gate {
                self.out.left_over += process.client.reserved_at_rest(self.now);
            }
        }
        self.out
    }
}
