//! The last exchanges, in a ring that is bounded in number and in bytes, and how others hear of new
//! ones. What is recorded of an exchange, and when, is left to `recording`.

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
    exchange::{Admission, Exchange, InFlight, KeyLabel, Masker, Moment, Record},
    operation::Operation,
    pattern::Pattern,
    real_time,
    report::{Audit, JudgedRequest, Report, Sender, Severities},
};

/// How many exchanges are kept unless set.
pub(crate) const DEFAULT: usize = 1_000;

/// How much memory they may take together: 4 MiB.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// How many exchanges there were of each operation and status.
pub(crate) type Tally = BTreeMap<(Option<Operation>, Option<u16>), u64>;

/// What was asked and answered lately.
#[derive(Debug)]
pub(crate) struct Journal {
    most: usize,
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
    /// The highest number of those that were forgotten for want of room.
    forgotten: u64,
}

impl Journal {
    /// Returns a journal of the last `most` exchanges; 0 keeps none.
    pub(crate) fn new(most: usize, severities: Severities, clock: Clock, changes: Changes) -> Self {
        Self {
            most,
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

    /// Makes a key known, so that its requests are found; if it is a secret it is never shown,
    /// wherever a client sends it.
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

    /// Returns the moment it is, where the mock's clock reads `at`.
    pub(crate) fn moment(&self, at: Duration) -> Moment {
        Moment { order: self.tick(), at, real: real_time::now() }
    }

    /// Returns a number that is higher than any before.
    fn tick(&self) -> u64 {
        self.order.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes in an exchange that has ended, and forgets the oldest ones where there is no room.
    pub(super) fn keep(&self, record: Arc<Record>) {
        let weight = record.weight();
        // Freed after the lock is released; mostly there is one.
        let (mut forgotten, mut more) = (None, Vec::new());
        let kept = {
            let mut ring = lock(&self.ring);
            *ring.tally.entry((record.operation, record.status)).or_default() += 1;
            ring.kept += 1;
            ring.bytes += weight;
            ring.records.push_back(record);
            while ring.records.len() > self.most || ring.bytes > MOST_BYTES {
                let Some(oldest) = ring.records.pop_front() else { break };
                ring.bytes -= oldest.weight();
                ring.forgotten = ring.forgotten.max(oldest.number);
                more.extend(forgotten.replace(oldest));
            }
            ring.kept
        };
        if self.kept.receiver_count() > 0 {
            // Where two came at once, the higher count stands.
            self.kept.send_if_modified(|told| kept > std::mem::replace(told, kept.max(*told)));
        }
    }

    /// Records who sent a request that arrived; returns what else of that client is in flight.
    pub(super) fn arrived(
        &self,
        sender: &Sender<'_>,
        arrived: &Moment,
        connection: (&Moment, u64),
    ) -> InFlight {
        lock(&self.audit).arrived(sender, arrived, connection)
    }

    /// Lets the rules judge an exchange, once its answer is taken or lost.
    pub(super) fn finished(&self, record: &Record) {
        if record.admission == Admission::Rejected {
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

    /// Opens a scope, to which findings belong; returns its number.
    pub(crate) fn open_scope(&self, name: &str) -> u64 {
        self.changes.mark_boundary();
        lock(&self.audit).open_scope(name)
    }

    pub(crate) fn close_scope(&self, number: u64) {
        lock(&self.audit).close_scope(number);
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
        let mut records = self.records();
        {
            let keys = lock(&self.keys);
            records.retain(|record| is_meant(record) && pattern.matches(record, &keys));
        }
        records.sort_unstable_by_key(|record| record.number);
        self.show(&records[records.len().saturating_sub(limit)..])
    }

    /// Looks at what is kept, in the order it ended; the last argument is the highest number among
    /// the exchanges that the ring has forgotten.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&[Arc<Record>], &Masker, u64) -> T) -> T {
        let (records, forgotten) = {
            let ring = lock(&self.ring);
            (ring.records.iter().cloned().collect::<Vec<_>>(), ring.forgotten)
        };
        look(&records, &lock(&self.keys), forgotten)
    }

    fn records(&self) -> Vec<Arc<Record>> {
        lock(&self.ring).records.iter().cloned().collect()
    }

    /// Returns the exchanges that were kept after the first `seen` ones, in the order they ended, and
    /// how many have been kept by now: what to ask with the next time.
    ///
    /// Exchanges that the ring has forgotten meanwhile are missing.
    pub(crate) fn since(&self, seen: u64) -> (Vec<Exchange>, u64) {
        let (records, kept) = {
            let ring = lock(&self.ring);
            let new = usize::try_from(ring.kept.saturating_sub(seen)).unwrap_or(usize::MAX);
            let old = ring.records.len().saturating_sub(new);
            (ring.records.iter().skip(old).cloned().collect::<Vec<_>>(), ring.kept)
        };
        (self.show(&records), kept)
    }

    /// Returns what changes whenever an exchange was kept.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.kept.subscribe()
    }

    /// Returns how many exchanges there were since the start, whatever was forgotten since.
    pub(crate) fn tally(&self) -> Tally {
        lock(&self.ring).tally.clone()
    }

    /// Notes that the server stops: who watches is woken, and finds that it is closed.
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
        (ring.bytes, ring.forgotten) = (0, 0);
        let forgotten = std::mem::take(&mut ring.records);
        drop(ring);
        drop(forgotten);
    }

    fn show(&self, records: &[Arc<Record>]) -> Vec<Exchange> {
        let keys = lock(&self.keys);
        records.iter().map(|record| Exchange::new(record, &keys)).collect()
    }
}

/// What is behind these locks is whole after every step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
