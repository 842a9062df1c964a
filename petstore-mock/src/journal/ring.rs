//! The last exchanges, in a ring that is bounded in number and bytes. New exchanges wake listeners.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use http::request::Parts;
use tokio::sync::watch;

use crate::{
    changes::Changes,
    clock::Clock,
    clock::real_time,
    exchange::{Arrival, Caller, Captured, Exchange, Fields, Masker, Moment, Record},
    lock::lock,
    operation::Target,
    report::{Audit, Report, Severities},
};

/// The default number of exchanges.
pub(crate) const DEFAULT: usize = 1_000;

/// The maximum memory of all exchanges: 4 MiB.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// How many times an arriving request yields to other tasks. Once is not enough, because another
/// thread may be running them.
const SETTLING_YIELDS: usize = 4;

/// The last exchanges.
pub(crate) struct Journal {
    capacity: usize,
    requests: AtomicU64,
    /// Counts arrivals and ends.
    order: AtomicU64,
    /// The number of requests in flight.
    in_flight: AtomicU32,
    ring: Mutex<Ring>,
    keys: Mutex<Masker>,
    audit: Mutex<Audit>,
    clock: Clock,
    changes: Changes,
    /// The number of exchanges ever stored.
    kept: watch::Sender<u64>,
    closed: AtomicBool,
}

#[derive(Default)]
struct Ring {
    records: VecDeque<Arc<Record>>,
    bytes: usize,
    kept: u64,
    /// Whether exchanges were dropped, because the journal was full.
    has_dropped: bool,
}

impl Journal {
    /// Creates a journal of the last `capacity` exchanges; 0 keeps none.
    pub(crate) fn new(
        capacity: usize,
        severities: Severities,
        clock: Clock,
        changes: Changes,
    ) -> Self {
        Self {
            capacity,
            requests: AtomicU64::new(0),
            order: AtomicU64::new(0),
            in_flight: AtomicU32::new(0),
            ring: Mutex::default(),
            keys: Mutex::default(),
            audit: Mutex::new(Audit::new(severities)),
            clock,
            changes,
            kept: watch::Sender::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Masks a secret key from now on.
    pub(crate) fn mask(&self, key: &str) {
        lock(&self.keys).add(key);
    }

    /// Returns the current moment.
    pub(crate) fn now(&self) -> Moment {
        self.moment(self.clock.since_epoch())
    }

    /// Returns the current moment, at which the mock's clock shows `at`.
    fn moment(&self, at: Duration) -> Moment {
        let order = self.order.fetch_add(1, Ordering::Relaxed);
        Moment::new(order, at, real_time::now())
    }

    /// Lets requests end whose clients have left. The runtime may run its newest task first. A
    /// repeated request would then arrive before the end of the lost one.
    pub(crate) async fn settle(&self) {
        for _ in 0..SETTLING_YIELDS {
            if self.in_flight.load(Ordering::Acquire) == 0 {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Stores a completed exchange, and drops the oldest ones if the journal is full.
    pub(super) fn keep(&self, record: Arc<Record>) {
        let mut ring = lock(&self.ring);
        ring.kept += 1;
        ring.bytes += record.weight();
        ring.records.push_back(record);
        while (ring.records.len() > self.capacity || ring.bytes > MAX_BYTES)
            && let Some(oldest) = ring.records.pop_front()
        {
            ring.bytes -= oldest.weight();
            ring.has_dropped = true;
        }
        let kept = ring.kept;
        drop(ring);
        if self.kept.receiver_count() > 0 {
            self.kept.send_replace(kept);
        }
    }

    /// Returns the record of a request that arrives, which is in flight from now on.
    pub(super) fn arrived(&self, caller: Caller, arrival: Arrival, request: &Parts) -> Record {
        let arrived = self.moment(arrival.now);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Record {
            number: self.requests.fetch_add(1, Ordering::Relaxed) + 1,
            caller,
            arrival,
            boundary: self.changes.boundaries(),
            arrived,
            ended: arrived,
            method: request.method.clone(),
            fields: Fields::of(&request.headers),
            body: Captured::default(),
            status: None,
            reply_fields: Fields::default(),
            reply_body: Captured::default(),
            added: None,
            note: None,
            faults: Vec::new(),
            lost: AtomicBool::new(false),
        }
    }

    /// Lets the rules judge an exchange when its response is read or lost.
    pub(super) fn finished(&self, record: &Record, ended: Moment) {
        lock(&self.audit).ended(record, ended);
        self.in_flight.fetch_sub(1, Ordering::Release);
    }

    /// Returns the compliance report.
    pub(crate) fn report(&self) -> Report {
        let keys = lock(&self.keys);
        lock(&self.audit).report(|text| keys.target(text))
    }

    /// Clears the findings.
    pub(crate) fn forget_report(&self) {
        lock(&self.audit).forget();
    }

    /// Returns the exchanges of the requests that are meant, by number.
    pub(crate) fn matching(&self, target: &Target) -> Vec<Exchange> {
        self.latest(usize::MAX, |record| record.is_meant(target))
    }

    /// Returns the number of requests that are meant, and whether the journal has dropped any
    /// request.
    pub(super) fn count(&self, target: &Target) -> (usize, bool) {
        let ring = lock(&self.ring);
        let meant = ring.records.iter().filter(|one| one.is_meant(target));
        (meant.count(), ring.has_dropped)
    }

    /// Returns the last `limit` exchanges that `is_meant` selects, by number. Copies only these.
    pub(crate) fn latest(&self, limit: usize, is_meant: impl Fn(&Record) -> bool) -> Vec<Exchange> {
        let mut records: Vec<_> = lock(&self.ring).records.iter().cloned().collect();
        records.retain(|record| is_meant(record));
        records.sort_unstable_by_key(|record| record.number);
        self.shown(&records[records.len().saturating_sub(limit)..])
    }

    /// Returns the exchanges after the first `seen` ones, in order of completion. Also returns the
    /// current count, to be passed as `seen` the next time.
    ///
    /// Dropped exchanges are missing.
    pub(crate) fn since(&self, seen: u64) -> (Vec<Exchange>, u64) {
        let ring = lock(&self.ring);
        let kept = ring.kept;
        let new = usize::try_from(kept.saturating_sub(seen)).unwrap_or(usize::MAX);
        let old = ring.records.len().saturating_sub(new);
        let records: Vec<_> = ring.records.iter().skip(old).cloned().collect();
        drop(ring);
        (self.shown(&records), kept)
    }

    fn shown(&self, records: &[Arc<Record>]) -> Vec<Exchange> {
        let keys = lock(&self.keys);
        let shown = records.iter().map(|record| Exchange::new(record, &keys));
        shown.collect()
    }

    /// Returns a receiver that changes with each stored exchange.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.kept.subscribe()
    }

    /// Wakes the listeners, because the server stops.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.kept.send_modify(|_| {});
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Drops all exchanges. Numbers and the report continue.
    pub(crate) fn clear(&self) {
        let mut ring = lock(&self.ring);
        ring.records.clear();
        (ring.bytes, ring.has_dropped) = (0, false);
    }
}
