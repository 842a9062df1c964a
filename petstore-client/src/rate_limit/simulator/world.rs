//! Runs the processes of a case: tasks that send as much as they may, in virtual time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::rng::Rng;
use super::service::{Model, Service};
use crate::clock;
use crate::rate_limit::limiter::{Acquire, Limiter, Permit};
use crate::rate_limit::limiter_clock::{LimiterClock, TimeSource};
use crate::rate_limit::policy::Policy;
use crate::rate_limit::quota::instant::{DAY, MINUTE, SECOND, micros};
use crate::rate_limit::store::KeyStore;
use crate::rate_limit::store::simulated::SharedLedger;
use crate::rate_limit::view::Priority;

/// How long a request without a response lasts.
const ATTEMPT_TIMEOUT: f64 = 30.0;

/// Where the processes keep what they know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Sharing {
    /// Each for itself.
    Nothing,
    /// In a store whose round trip takes this many microseconds.
    Store(u64),
    /// Nobody needs to: an oracle sees what the service has left.
    Oracle,
}

/// Processes, and what happens to them. Times are in seconds since the start.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) model: Model,
    pub(super) sharing: Sharing,
    /// The number of tasks of each process.
    pub(super) tasks: Vec<usize>,
    /// How many short-lived processes run beside them at any time. Each sends one request.
    pub(super) commands: usize,
    /// For how long each process pauses between two requests of a task.
    pub(super) thinks: Vec<f64>,
    /// Whether the last process shares nothing with the others.
    pub(super) last_is_a_stranger: bool,
    pub(super) minutes: i64,
    /// The mean time to a response, also for every other process.
    pub(super) latency: f64,
    pub(super) far_latency: Option<f64>,
    /// The processes start within this time.
    pub(super) spread: f64,
    /// When in its minute the run begins. By default, within the first ten seconds.
    pub(super) begins: Option<f64>,
    /// When the first process is stopped, and for how long.
    pub(super) stopped: Option<(f64, f64)>,
    pub(super) store_deleted: Vec<f64>,
    /// When the store goes away, and for how long.
    pub(super) store_lost: Option<(f64, f64)>,
    /// Bursts of strangers: one of this many requests each four seconds, on average.
    pub(super) bursts: u64,
    /// The chance that a task gives a request up.
    pub(super) gives_up: f64,
}

/// What a run has shown.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) refused: u64,
    pub(super) bans: u64,
    /// The part of the quota that was used.
    pub(super) used: f64,
    /// From the second window on: what the process with the least got of what the one with the most got.
    pub(super) fairness: f64,
    /// What each process got from the second window on. The last one is that of the commands.
    pub(super) done: Vec<u64>,
    pub(super) in_all: u64,
    /// The seconds until so many responses had come.
    pub(super) until: [f64; 3],
}

/// The numbers of responses of `Outcome::until`.
pub(super) const FIRST: [usize; 3] = [16, 50, 900];

impl Case {
    pub(super) fn new(minute: u64, processes: usize, tasks: usize, sharing: Sharing) -> Self {
        Self {
            model: Model::new(minute),
            sharing,
            tasks: vec![tasks; processes],
            commands: 0,
            thinks: vec![0.0; processes],
            last_is_a_stranger: false,
            minutes: 5,
            latency: 0.09,
            far_latency: None,
            spread: 2.0,
            begins: None,
            stopped: None,
            store_deleted: Vec::new(),
            store_lost: None,
            bursts: 0,
            gives_up: 0.0,
        }
    }

    /// Runs the case with a seed.
    pub(super) fn run(&self, seed: u64) -> Outcome {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O starts");
        runtime.block_on(World::begin(self.clone(), seed).run())
    }
}

/// A process: it can be stopped.
#[derive(Default)]
struct Process {
    is_stopped: Arc<AtomicBool>,
}

impl Process {
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Waits until the process is not stopped.
    async fn run(&self) {
        while self.is_stopped() {
            sleep(Duration::from_millis(50)).await;
        }
    }
}

struct World {
    case: Case,
    seed: u64,
    rng: Rng,
    service: Arc<Mutex<Service>>,
    clock: Arc<LimiterClock>,
    ledger: SharedLedger,
    start: Instant,
    end: Instant,
    /// The service's time at the start.
    epoch: i64,
    /// When responses came.
    answers: Arc<Mutex<Vec<Instant>>>,
    tasks: Vec<JoinHandle<()>>,
}

/// A task of a process, which sends as much as it may.
struct Sender {
    id: usize,
    process: Arc<Process>,
    service: Arc<Mutex<Service>>,
    answers: Arc<Mutex<Vec<Instant>>>,
    rng: Rng,
    latency: f64,
    case: Case,
    end: Instant,
    /// Its oracle's requests that the service has not received yet.
    on_the_way: Arc<Mutex<u64>>,
}

fn seconds(length: f64) -> Duration {
    Duration::from_secs_f64(length)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no task has panicked")
}

impl World {
    fn begin(case: Case, seed: u64) -> Self {
        let mut rng = Rng::new(seed + 1);
        let begins = case.begins.unwrap_or_else(|| 10.0 * rng.unit());
        let into = micros(seconds(begins));
        let noon = 20_000 * DAY + DAY / 2;
        let epoch = noon + case.model.phase + into;
        let start = Instant::now();
        let length = case.minutes * MINUTE - into - SECOND / 10;
        let time = TimeSource::of_machine(|| Duration::ZERO);
        let clock = Arc::new(LimiterClock::start(time));
        Self {
            service: Arc::new(Mutex::new(Service::new(case.model.clone(), epoch, seed))),
            ledger: SharedLedger::new(Arc::clone(&clock)),
            clock,
            start,
            end: start + Duration::from_micros(length.unsigned_abs()),
            epoch,
            answers: Arc::default(),
            tasks: Vec::new(),
            case,
            seed,
            rng,
        }
    }

    async fn run(mut self) -> Outcome {
        let on_the_way = Arc::new(Mutex::new(0));
        let mut first = None;
        for id in 0..self.case.tasks.len() {
            let process = Arc::new(Process::default());
            let begin = self.start + seconds(self.case.spread * self.rng.unit());
            let limiter = self.limiter(id, &process);
            for task in 0..self.case.tasks[id] {
                let sender = self.sender(id, task, &process, &on_the_way);
                let limiter = limiter.clone();
                self.tasks.push(tokio::spawn(async move {
                    sleep_until(begin).await;
                    sender.work(limiter).await;
                }));
            }
            first.get_or_insert(process);
        }
        self.start_commands(&on_the_way);
        self.start_faults(&first.unwrap_or_default());
        sleep_until(self.end).await;
        for task in &self.tasks {
            task.abort();
        }
        self.outcome()
    }

    /// Returns the limiter of a process; `None` if an oracle decides.
    fn limiter(&self, id: usize, process: &Process) -> Option<Arc<Limiter>> {
        let is_stranger = self.case.last_is_a_stranger && id + 1 == self.case.tasks.len();
        let store = match self.case.sharing {
            Sharing::Oracle => return None,
            Sharing::Store(round_trip) if !is_stranger => {
                let round_trip = Duration::from_micros(round_trip);
                let store = self
                    .ledger
                    .store(round_trip, Arc::clone(&process.is_stopped));
                KeyStore::Simulated(store)
            }
            Sharing::Store(_) | Sharing::Nothing => KeyStore::Memory(Mutex::default()),
        };
        let clock = Arc::clone(&self.clock);
        Some(Limiter::new(clock, Arc::new(store), Policy::default()))
    }

    fn sender(
        &self,
        id: usize,
        task: usize,
        process: &Arc<Process>,
        on_the_way: &Arc<Mutex<u64>>,
    ) -> Sender {
        let seed = self.seed * 1_000_003 + id as u64 * 1_009 + task as u64;
        let far = self.case.far_latency.filter(|_| id % 2 == 1);
        Sender {
            latency: far.unwrap_or(self.case.latency),
            id,
            process: Arc::clone(process),
            service: Arc::clone(&self.service),
            answers: Arc::clone(&self.answers),
            rng: Rng::new(seed),
            case: self.case.clone(),
            end: self.end,
            on_the_way: Arc::clone(on_the_way),
        }
    }

    /// Starts the loops that run one short-lived process after the other.
    fn start_commands(&mut self, on_the_way: &Arc<Mutex<u64>>) {
        let id = self.case.tasks.len();
        for task in 0..self.case.commands {
            let process = Arc::new(Process::default());
            let mut sender = self.sender(id, task, &process, on_the_way);
            let (ledger, clock) = (self.ledger.clone(), Arc::clone(&self.clock));
            self.tasks.push(tokio::spawn(async move {
                loop {
                    let store = ledger.store(Duration::ZERO, Arc::default());
                    let store = Arc::new(KeyStore::Simulated(store));
                    let limiter = Limiter::new(Arc::clone(&clock), store, Policy::default());
                    sender.send_one(&limiter).await;
                    limiter.synchronize().await;
                    // A process needs some time to start.
                    sleep(seconds(0.02)).await;
                }
            }));
        }
    }

    fn start_faults(&mut self, first: &Process) {
        if self.case.bursts > 0 {
            let (service, size) = (Arc::clone(&self.service), self.case.bursts);
            let mut rng = Rng::new(self.seed + 77);
            self.tasks.push(tokio::spawn(async move {
                loop {
                    sleep(seconds(8.0 * rng.unit())).await;
                    lock(&service).count_strangers(size);
                }
            }));
        }
        if let Some((at, length)) = self.case.stopped {
            let is_stopped = Arc::clone(&first.is_stopped);
            self.tasks.push(tokio::spawn(async move {
                sleep(seconds(at)).await;
                is_stopped.store(true, Ordering::Relaxed);
                sleep(seconds(length)).await;
                is_stopped.store(false, Ordering::Relaxed);
            }));
        }
        for at in self.case.store_deleted.clone() {
            let ledger = self.ledger.clone();
            self.tasks.push(tokio::spawn(async move {
                sleep(seconds(at)).await;
                ledger.delete();
            }));
        }
        if let Some((at, length)) = self.case.store_lost {
            let ledger = self.ledger.clone();
            self.tasks.push(tokio::spawn(async move {
                sleep(seconds(at)).await;
                ledger.set_down(true);
                sleep(seconds(length)).await;
                ledger.set_down(false);
            }));
        }
    }

    fn outcome(&self) -> Outcome {
        let service = lock(&self.service);
        let Model {
            minute, day, phase, ..
        } = service.model;
        let all = day.min(minute * self.case.minutes.unsigned_abs());
        let first_window = (self.epoch - phase).div_euclid(MINUTE);
        let mut done = vec![0; self.case.tasks.len() + 1];
        for (at, process) in &service.admitted {
            if (at - phase).div_euclid(MINUTE) > first_window {
                done[*process] += 1;
            }
        }
        // A process that was stopped gets less.
        let skipped = usize::from(self.case.stopped.is_some());
        let compared = &done[skipped..self.case.tasks.len()];
        let least = compared.iter().min().copied().unwrap_or(0);
        let most = compared.iter().max().copied().unwrap_or(0);
        let answers = lock(&self.answers);
        let until = FIRST.map(|count| {
            let at = answers.get(count - 1);
            at.map_or(f64::INFINITY, |at| (*at - self.start).as_secs_f64())
        });
        Outcome {
            refused: service.refusals,
            bans: service.bans,
            used: (service.admitted.len() as u64 + service.by_strangers) as f64 / all as f64,
            fairness: least as f64 / most.max(1) as f64,
            done,
            in_all: service.admitted.len() as u64,
            until,
        }
    }
}

impl Sender {
    async fn work(mut self, limiter: Option<Arc<Limiter>>) {
        let pause = self.case.thinks[self.id];
        loop {
            if pause > 0.0 {
                sleep(seconds(pause)).await;
            }
            match &limiter {
                Some(limiter) => self.send_one(limiter).await,
                None => self.send_by_oracle().await,
            }
        }
    }

    /// Sends a request as soon as the limiter lets it.
    async fn send_one(&mut self, limiter: &Arc<Limiter>) {
        let request = Acquire {
            place: None,
            priority: Priority::Normal,
            max_wait: Duration::from_secs(1_000_000),
            deadline: clock::now() + Duration::from_secs(1_000_000),
            forced: false,
            lease: seconds(ATTEMPT_TIMEOUT + 2.0),
        };
        let permit = loop {
            self.process.run().await;
            let Ok(permit) = limiter.acquire(request, |_| ()).await else {
                panic!("a call may wait for eleven days");
            };
            if !self.process.is_stopped() {
                break permit;
            }
            // Here, the timers of a stopped process run. Really, it gets no permit.
            permit.not_sent();
        };
        if Instant::now() >= self.end {
            return permit.not_sent();
        }
        self.send(permit).await;
    }

    async fn send(&mut self, permit: Permit) {
        let way = seconds(self.rng.around(self.latency / 2.0));
        if self.rng.happens(self.case.gives_up) {
            let (service, id) = (Arc::clone(&self.service), self.id);
            tokio::spawn(async move {
                sleep(way).await;
                lock(&service).serve(id);
            });
            sleep(way.mul_f64(2.0 * self.rng.unit())).await;
            return drop(permit);
        }
        sleep(way).await;
        if lock(&self.service).hangs() {
            sleep(seconds(ATTEMPT_TIMEOUT)).await;
            return drop(permit);
        }
        let head = lock(&self.service).serve(self.id);
        sleep(way).await;
        self.process.run().await;
        permit.observe_head(head);
        if !head.is_refusal() {
            lock(&self.answers).push(Instant::now());
        }
    }

    async fn send_by_oracle(&mut self) {
        loop {
            let (left, wait) = lock(&self.service).left();
            if left > *lock(&self.on_the_way) {
                break;
            }
            let wait = Duration::from_micros(wait.unsigned_abs());
            sleep(wait.max(Duration::from_millis(5))).await;
        }
        *lock(&self.on_the_way) += 1;
        let way = seconds(self.rng.around(self.latency / 2.0));
        sleep(way).await;
        *lock(&self.on_the_way) -= 1;
        lock(&self.service).serve(self.id);
        sleep(way).await;
    }
}
