//! The run itself: tasks, their line, the network and virtual time in microseconds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::client::{Client, Kind, Turn};
use super::rng::Rng;
use super::service::{Model, Reply, Service};
use crate::quota::{Policy, Ticket};

/// What is run.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    pub(super) seed: u64,
    pub(super) kind: Kind,
    pub(super) model: Model,
    pub(super) processes: usize,
    /// Tasks and jobs of each process.
    pub(super) tasks: usize,
    pub(super) jobs: u64,
    /// When the run ends at the latest.
    pub(super) horizon: i64,
    /// The shortest way, and how much longer it may be, in microseconds; each way.
    pub(super) way: (i64, i64),
    /// Of a thousand requests: lost on the way there, or back; cancelled while under way; dropped
    /// before they were sent.
    pub(super) lost: u32,
    pub(super) cancelled: u32,
    pub(super) dropped: u32,
    /// How far the local wall clock is ahead of the service's clock.
    pub(super) wall: i64,
    /// Where in the service's day the run starts.
    pub(super) start: i64,
    pub(super) policy: Policy,
}

impl Setup {
    pub(super) fn new(kind: Kind, model: Model, tasks: usize, jobs: u64, seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0xabcd);
        Self {
            seed,
            kind,
            model,
            processes: 1,
            tasks,
            jobs,
            horizon: i64::MAX,
            way: (35_000, 25_000),
            lost: 0,
            cancelled: 0,
            dropped: 0,
            wall: 0,
            // A noon, and some of the minute gone.
            start: 1_735_732_800_000_000 + rng.below(60_000_000),
            policy: Policy::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive(usize),
    Answer(usize),
    Gone(usize),
    Ready { process: usize, attempt: u32 },
    Wake(usize),
}

struct Request {
    process: usize,
    ticket: Option<Ticket>,
    sent: i64,
    attempt: u32,
    reply: Option<Reply>,
    over: bool,
}

struct Process {
    client: Client,
    /// The attempts behind those that wait.
    line: VecDeque<u32>,
    jobs: u64,
    alarm: Option<i64>,
    in_flight: usize,
}

pub(super) struct World {
    setup: Setup,
    pub(super) rng: Rng,
    pub(super) service: Service,
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    order: u64,
    requests: Vec<Request>,
    processes: Vec<Process>,
    now: i64,
    out: Outcome,
}

/// What came of a run.
#[derive(Debug, Default, Clone)]
pub(super) struct Outcome {
    /// When the last job was done.
    pub(super) finished: i64,
    pub(super) refusals: u64,
    pub(super) late_repeats: u64,
    pub(super) bans: u64,
    pub(super) let_in: u64,
    pub(super) sent: u64,
    /// Requests sent before the end of a wait that an answer had named.
    pub(super) defied: u64,
    /// The sum of all requests' remaining jobs: nothing when each wait has ended.
    pub(super) undone: u64,
    /// What the gate still counts at rest.
    pub(super) left_over: u64,
    pub(super) most_while_unknown: usize,
    /// When each request was granted.
    pub(super) times: Vec<i64>,
}

pub(super) fn run(setup: &Setup) -> Outcome {
    let mut world = World::new(setup.clone());
    world.run();
    world.out
}

impl World {
    fn new(setup: Setup) -> Self {
        let process = |_| {
            let mut client = Client::new(setup.kind, setup.start + setup.wall);
            client.policy = setup.policy;
            let tasks = setup.tasks.min(usize::try_from(setup.jobs).unwrap_or(usize::MAX));
            let line = std::iter::repeat_n(0, tasks).collect();
            Process { client, line, jobs: setup.jobs - tasks as u64, alarm: None, in_flight: 0 }
        };
        let mut world = Self {
            rng: Rng::new(setup.seed),
            service: Service::new(setup.model.clone()),
            events: BinaryHeap::new(),
            order: 0,
            requests: Vec::new(),
            processes: (0..setup.processes).map(process).collect(),
            now: 0,
            out: Outcome::default(),
            setup,
        };
        for process in 0..world.processes.len() {
            // Processes do not start at the same moment.
            let at = if process == 0 { 0 } else { world.rng.below(500_000) };
            world.schedule(at, Event::Wake(process));
        }
        world
    }

    fn schedule(&mut self, at: i64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    fn run(&mut self) {
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at > self.setup.horizon {
                break;
            }
            self.now = at;
            match event {
                Event::Arrive(id) => self.arrive(id),
                Event::Answer(id) => self.answer(id),
                Event::Gone(id) => self.gone(id),
                Event::Ready { process, attempt } => {
                    self.processes[process].line.push_front(attempt);
                    self.let_through(process);
                }
                Event::Wake(process) => {
                    self.processes[process].alarm = None;
                    self.let_through(process);
                }
            }
        }
        self.out.refusals = self.service.refusals;
        self.out.late_repeats = self.service.late_repeats;
        self.out.bans = self.service.bans;
        self.out.let_in = self.service.let_in;
        for process in &self.processes {
            self.out.undone += process.jobs + process.line.len() as u64;
            self.out.left_over += u64::from(process.client.keeper.state.in_flight);
        }
    }

    fn way(&mut self) -> i64 {
        let (least, more) = self.setup.way;
        // One in fifty takes much longer, and is overtaken.
        let more = if self.rng.in_thousand(20) { 4 * more } else { more };
        least + self.rng.below(more + 1)
    }

    fn let_through(&mut self, p: usize) {
        while let Some(&attempt) = self.processes[p].line.front() {
            let process = &mut self.processes[p];
            match process.client.turn(self.now, self.setup.start, &mut self.service) {
                Turn::Go(ticket) => {
                    process.line.pop_front();
                    if self.setup.kind == Kind::Gate && self.rng.in_thousand(self.setup.dropped) {
                        self.processes[p].client.keeper.state.unused(ticket.unwrap());
                        self.next_job(p);
                        continue;
                    }
                    self.send(p, ticket, attempt);
                }
                Turn::At(at) => {
                    if process.alarm.is_none_or(|alarm| alarm > at || alarm <= self.now) {
                        process.alarm = Some(at);
                        self.schedule(at.max(self.now + 1), Event::Wake(p));
                    }
                    break;
                }
                Turn::Busy => break,
            }
        }
    }

    fn send(&mut self, p: usize, ticket: Option<Ticket>, attempt: u32) {
        let process = &mut self.processes[p];
        process.in_flight += 1;
        self.out.sent += 1;
        self.out.defied += u64::from(self.now < process.client.told);
        if process.client.keeper.state.accounts().is_empty() {
            self.out.most_while_unknown = self.out.most_while_unknown.max(process.in_flight);
        }
        self.out.times.push(self.now);
        let id = self.requests.len();
        let (sent, reply, over) = (self.now, None, false);
        self.requests.push(Request { process: p, ticket, sent, attempt, reply, over });
        let there = self.now + self.way();
        if self.rng.in_thousand(self.setup.lost) {
            // Lost on the way there; some are noticed at once, the rest time out.
            let noticed = there + if self.rng.in_thousand(500) { 0 } else { 2_000_000 };
            self.schedule(noticed, Event::Gone(id));
        } else {
            self.schedule(there, Event::Arrive(id));
            if self.rng.in_thousand(self.setup.cancelled) {
                let (least, more) = self.setup.way;
                let at = self.now + self.rng.below(2 * (least + more) + 1);
                self.schedule(at, Event::Gone(id));
            }
        }
    }

    fn arrive(&mut self, id: usize) {
        let process = self.requests[id].process;
        let client = &mut self.processes[process].client;
        client.on_the_way = client.on_the_way.saturating_sub(1);
        let reply = self.service.serve(self.now + self.setup.start, &mut self.rng);
        self.requests[id].reply = Some(reply);
        let back = self.now + self.way();
        if self.rng.in_thousand(self.setup.lost) {
            self.schedule(back + 2_000_000, Event::Gone(id));
        } else {
            self.schedule(back, Event::Answer(id));
        }
        if self.setup.kind == Kind::Oracle {
            self.let_through(process);
        }
    }

    fn answer(&mut self, id: usize) {
        if self.requests[id].over {
            return;
        }
        self.requests[id].over = true;
        let Request { process: p, ticket, sent, attempt, reply, .. } = self.requests[id];
        let reply = reply.unwrap();
        let client = &mut self.processes[p].client;
        let wait = client.answered((ticket, sent, attempt), self.now, &reply, &mut self.rng);
        self.processes[p].in_flight -= 1;
        if reply.status == 429 {
            let ready = Event::Ready { process: p, attempt: attempt + 1 };
            self.schedule(self.now + wait, ready);
        } else {
            self.next_job(p);
        }
        self.let_through(p);
    }

    fn gone(&mut self, id: usize) {
        if self.requests[id].over {
            return;
        }
        self.requests[id].over = true;
        let Request { process: p, ticket, .. } = self.requests[id];
        self.processes[p].in_flight -= 1;
        if let Some(ticket) = ticket {
            self.processes[p].client.keeper.state.lost(ticket);
        }
        self.next_job(p);
        self.let_through(p);
    }

    fn next_job(&mut self, p: usize) {
        self.out.finished = self.now;
        let process = &mut self.processes[p];
        if process.jobs > 0 {
            process.jobs -= 1;
            process.line.push_back(0);
        }
    }
}
