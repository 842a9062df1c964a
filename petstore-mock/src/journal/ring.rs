//! The last exchanges, in a ring that is bounded in number and in bytes. Listeners are woken by new ones.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use crate::{
    changes::Changes,
    clock::Clock,
    clock::real_time,
    exchange::{Admission, Exchange, InFlight, KeyLabel, Masker, Moment, Record},
    operation::Operation,
    pattern::Pattern,
    report::{Audit, JudgedRequest, Report, Severities},
};

/// How many exchanges are kept by default.
pub(crate) const DEFAULT: usize = 1_000;

/// How much memory they may take together: 4 MiB.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// How many exchanges there were of each operation and status.
pub(crate) type Tally = BTreeMap<(Option<Operation>, Option<u16>), u64>;

/// The last exchanges.
#[derive(Debug)]
pub(crate) struct Journal {
    capacity: usize,
    requests: AtomicU64,
    /// Counts arrivals and ends.
    order: AtomicU64,
    ring: Mutex<Ring>,
    keys: Mutex<Masker>,
    audit: Mutex<Audit>,
    clock: Clock,
    changes: Changes,
    /// How many exchanges were ever kept.
    kept: watch::Sender<u64>,
    closed: AtomicBool,
}

#[derive(Debug, Default)]
struct Ring {
    tally: Tally,
    records: VecDeque<Arc<Record>>,
    bytes: usize,
    kept: u64,
    /// The highest number of the exchanges that were dropped for lack of room.
    dropped: u64,
}

impl Journal {
    /// Returns a journal of the last `capacity` exchanges; 0 keeps none.
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
            ring: Mutex::default(),
            keys: Mutex::default(),
            audit: Mutex::new(Audit::new(severities)),
            clock,
            changes,
            kept: watch::Sender::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Registers a key, so that its requests are found; if it is a secret it is never shown, wherever a
    /// client sends it.
    pub(crate) fn know(&self, key: &str, label: &Arc<KeyLabel>, is_public: bool) {
        lock(&self.keys).add(key, Arc::clone(label), is_public);
    }

    /// Returns the number of the request that arrived last.
    pub(crate) fn last_number(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns the number of a request that arrives.
    pub(super) fn next_number(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the current moment; the mock's clock reads `at`.
    pub(crate) fn moment(&self, at: Duration) -> Moment {
        let order = self.order.fetch_add(1, Ordering::Relaxed);
        Moment { order, at, real: real_time::now() }
    }

    /// Records an exchange that has ended, and drops the oldest ones if there is no room.
    pub(super) fn keep(&self, record: Arc<Record>) {
        let weight = record.weight();
        // Freed after the lock is released.
        let mut dropped = Vec::new();
        let kept = {
            let mut ring = lock(&self.ring);
            *ring.tally.entry((record.arrival.operation, record.status)).or_default() += 1;
            ring.kept += 1;
            ring.bytes += weight;
            ring.records.push_back(record);
            while ring.records.len() > self.capacity || ring.bytes > MAX_BYTES {
                let Some(oldest) = ring.records.pop_front() else { break };
                ring.bytes -= oldest.weight();
                ring.dropped = ring.dropped.max(oldest.number);
                dropped.push(oldest);
            }
            ring.kept
        };
        if self.kept.receiver_count() > 0 {
            // If two came at once, the higher count stays.
            self.kept.send_if_modified(|sent| kept > std::mem::replace(sent, kept.max(*sent)));
        }
    }

    /// Records the arrival of a request; returns its client, and how that sends.
    pub(super) fn arrived(&self, record: &Record) -> InFlight {
        lock(&self.audit).arrived(record)
    }

    /// Lets the rules judge an exchange, once its answer is taken or lost.
    pub(super) fn finished(&self, record: &Record) {
        if record.arrival.admission == Admission::Rejected {
            return;
        }
        let ended = self.moment(self.clock.since_epoch());
        let request = JudgedRequest::new(record, ended);
        lock(&self.audit).ended(record, request, self.changes.boundaries());
    }

    /// Returns the compliance report.
    pub(crate) fn report(&self) -> Report {
        let keys = lock(&self.keys);
        lock(&self.audit).report(|text| keys.target(text))
    }

    /// Forgets what the rules found.
    pub(crate) fn forget_report(&self) {
        lock(&self.audit).forget();
    }

    /// Opens a scope, to which findings belong; it is closed by the text that is returned.
    pub(crate) fn open_scope(&self, name: &str) -> Arc<str> {
        self.changes.mark_boundary();
        lock(&self.audit).open_scope(name)
    }

    pub(crate) fn close_scope(&self, scope: &Arc<str>) {
        lock(&self.audit).close_scope(scope);
        self.changes.mark_boundary();
    }

    /// Returns the exchanges that match, by number.
    pub(crate) fn matching(&self, pattern: &Pattern) -> Vec<Exchange> {
        self.latest(pattern, usize::MAX, |_| true)
    }

    /// Returns the last `limit` exchanges that match and are meant, by number. Only these are copied.
    pub(crate) fn latest(
        &self,
        pattern: &Pattern,
        limit: usize,
        is_meant: impl Fn(&Record) -> bool,
    ) -> Vec<Exchange> {
        self.look(|records, keys, _| {
            let is_found = |one: &&Arc<Record>| is_meant(one) && pattern.matches(one, keys);
            let found: Vec<_> = records.iter().filter(is_found).collect();
            let last = &found[found.len().saturating_sub(limit)..];
            last.iter().map(|record| Exchange::new(record, keys)).collect()
        })
    }

    /// Passes on the exchanges that are kept, by number; the last argument is the highest number among
    /// those that were dropped.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&[Arc<Record>], &Masker, u64) -> T) -> T {
        let (mut records, dropped) = {
            let ring = lock(&self.ring);
            (ring.records.iter().cloned().collect::<Vec<_>>(), ring.dropped)
        };
        records.sort_unstable_by_key(|record| record.number);
        look(&records, &lock(&self.keys), dropped)
    }

    /// Returns the exchanges that were kept after the first `seen` ones, in the order they ended, and
    /// how many have been kept by now: what to ask with the next time.
    ///
    /// Exchanges that were dropped meanwhile are missing.
    pub(crate) fn since(&self, seen: u64) -> (Vec<Exchange>, u64) {
        let (records, kept) = {
            let ring = lock(&self.ring);
            let new = usize::try_from(ring.kept.saturating_sub(seen)).unwrap_or(usize::MAX);
            let old = ring.records.len().saturating_sub(new);
            (ring.records.iter().skip(old).cloned().collect::<Vec<_>>(), ring.kept)
        };
        let keys = lock(&self.keys);
        (records.iter().map(|record| Exchange::new(record, &keys)).collect(), kept)
    }

    /// Returns a receiver that changes whenever an exchange is kept.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.kept.subscribe()
    }

    /// Returns how many exchanges there were since the start, dropped ones included.
    pub(crate) fn tally(&self) -> Tally {
        lock(&self.ring).tally.clone()
    }

    /// Wakes the listeners, which find that the server stops.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.kept.send_modify(|_| {});
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Forgets every exchange; numbers go on, and so does the report.
    pub(crate) fn clear(&self) {
        let mut ring = lock(&self.ring);
        (ring.bytes, ring.dropped) = (0, 0);
        let records = std::mem::take(&mut ring.records);
        drop(ring);
        drop(records);
    }
}

/// The data behind these locks is whole after every step, so that a panic does no harm.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
