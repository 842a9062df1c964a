//! The last exchanges, in a ring that is bounded in number and bytes. New exchanges wake listeners.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::Serialize;
use tokio::sync::watch;

use super::Pattern;
use crate::{
    changes::Changes,
    clock::Clock,
    clock::real_time,
    exchange::{Admission, Exchange, KeyLabel, Masker, Moment, Record},
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
#[derive(Debug)]
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

#[derive(Debug, Default)]
struct Ring {
    records: VecDeque<Arc<Record>>,
    bytes: usize,
    kept: u64,
    /// The highest number of a dropped exchange.
    dropped: u64,
    /// The number of dropped exchanges.
    dropped_count: u64,
}

/// How much the journal holds, and how much it has dropped since the start, a reset or a clearing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JournalUsage {
    /// The maximum number of requests.
    pub capacity: usize,
    /// The maximum of their approximate memory, in bytes.
    pub max_bytes: usize,
    /// The number of requests in the journal.
    pub kept: usize,
    /// The number of requests that were dropped, because the journal was full.
    pub dropped: u64,
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

    /// Registers a key, so that its requests can be found. A secret key is masked from now on.
    pub(crate) fn know(&self, key: &str, label: &Arc<KeyLabel>, is_public: bool) {
        lock(&self.keys).add(key, Arc::clone(label), is_public);
    }

    /// Returns the number of the last request.
    pub(crate) fn last_number(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns the number of a new request.
    pub(super) fn next_number(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the current moment.
    pub(crate) fn now(&self) -> Moment {
        self.moment(self.clock.since_epoch())
    }

    /// Returns the current moment, at which the mock's clock shows `at`.
    pub(super) fn moment(&self, at: Duration) -> Moment {
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
        let weight = record.weight();
        let kept = {
            let mut ring = lock(&self.ring);
            ring.kept += 1;
            ring.bytes += weight;
            ring.records.push_back(record);
            ring.kept
        };
        while let Some(oldest) = self.remove_excess() {
            drop(oldest);
        }
        if self.kept.receiver_count() > 0 {
            // If two threads do this at once, the higher count stays.
            self.kept
                .send_if_modified(|sent| kept > std::mem::replace(sent, kept.max(*sent)));
        }
    }

    /// Removes the oldest exchange if the journal is too full. The caller drops it, after the lock is
    /// released.
    fn remove_excess(&self) -> Option<Arc<Record>> {
        let mut ring = lock(&self.ring);
        if ring.records.len() <= self.capacity && ring.bytes <= MAX_BYTES {
            return None;
        }
        let oldest = ring.records.pop_front()?;
        ring.bytes -= oldest.weight();
        ring.dropped = ring.dropped.max(oldest.number);
        ring.dropped_count += 1;
        Some(oldest)
    }

    /// Returns how much the journal holds, and what it has dropped.
    pub(crate) fn usage(&self) -> JournalUsage {
        let ring = lock(&self.ring);
        JournalUsage {
            capacity: self.capacity,
            max_bytes: MAX_BYTES,
            kept: ring.records.len(),
            dropped: ring.dropped_count,
        }
    }

    /// Records the opening and the end of a connection.
    pub(super) fn connected(&self, connection: u64) {
        lock(&self.audit).connected(connection);
    }

    pub(super) fn disconnected(&self, connection: u64) {
        lock(&self.audit).disconnected(connection);
    }

    /// Counts a request in flight.
    pub(super) fn arrived(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of boundaries so far.
    pub(super) fn boundary(&self) -> u64 {
        self.changes.boundaries()
    }

    /// Lets the rules judge an exchange when its response is read or lost.
    pub(super) fn finished(&self, record: &Record, ended: Moment) {
        if record.arrival.admission == Admission::Rejected {
            return;
        }
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

    /// Returns the exchanges that match, by number.
    pub(crate) fn matching(&self, pattern: &Pattern) -> Vec<Exchange> {
        self.latest(pattern, usize::MAX, |_| true)
    }

    /// Returns the last `limit` matching exchanges, by number. Copies only these.
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
            last.iter()
                .map(|record| Exchange::new(record, keys))
                .collect()
        })
    }

    /// Calls `look` with the stored exchanges, by number. The last argument of `look` is the
    /// highest number of a dropped exchange.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&[Arc<Record>], &Masker, u64) -> T) -> T {
        let (mut records, dropped) = {
            let ring = lock(&self.ring);
            (
                ring.records.iter().cloned().collect::<Vec<_>>(),
                ring.dropped,
            )
        };
        records.sort_unstable_by_key(|record| record.number);
        look(&records, &lock(&self.keys), dropped)
    }

    /// Returns the exchanges after the first `seen` ones, in order of completion. Also returns the
    /// current count, to be passed as `seen` the next time.
    ///
    /// Dropped exchanges are missing.
    pub(crate) fn since(&self, seen: u64) -> (Vec<Exchange>, u64) {
        let (records, kept) = {
            let ring = lock(&self.ring);
            let new = usize::try_from(ring.kept.saturating_sub(seen)).unwrap_or(usize::MAX);
            let old = ring.records.len().saturating_sub(new);
            (
                ring.records.iter().skip(old).cloned().collect::<Vec<_>>(),
                ring.kept,
            )
        };
        let keys = lock(&self.keys);
        (
            records
                .iter()
                .map(|record| Exchange::new(record, &keys))
                .collect(),
            kept,
        )
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
        (ring.bytes, ring.dropped, ring.dropped_count) = (0, 0, 0);
        let records = std::mem::take(&mut ring.records);
        drop(ring);
        drop(records);
    }
}

/// The data is consistent after every step, so a panic while it is locked does no harm.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_arrival_lets_lost_requests_end_first() {
        let (clock, changes) = (Clock::system(), Changes::default());
        let journal = Arc::new(Journal::new(0, Severities::default(), clock, changes));
        journal.in_flight.store(1, Ordering::Release);
        let lost = Arc::clone(&journal);
        let task = tokio::spawn(async move { lost.in_flight.store(0, Ordering::Release) });
        journal.settle().await;
        assert_eq!(journal.in_flight.load(Ordering::Acquire), 0);
        task.await.unwrap();
        journal.in_flight.store(1, Ordering::Release);
        // This gives up, because the request is still running.
        journal.settle().await;
    }
}
