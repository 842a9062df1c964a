//! The active faults, their counts, and the selection of faults for a request.

use std::{
    collections::BTreeMap,
    fmt, mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use serde::Serialize;

use super::{
    effect::Effect,
    response_effects::{FaultTarget, StatusEffect},
    socket_effects::SocketPlan,
    spec::Fault,
    trigger::{Random, RequestView},
};
use crate::changes::{Changes, What};

/// The faults of a server. Clones share them.
///
/// All matching faults hit a request, in the order in which they were set. If two of them end the
/// response or set its speed, the first one does. A request that is hit still uses quota. Faults
/// never hit requests to `/_mock`.
///
/// ```
/// use std::time::Duration;
/// use petstore_mock::{Effect, MockServer, Operation};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = MockServer::start().await;
/// // The pet is added, and the answer lost.
/// let lost = server.faults().on(Operation::CreatePet).nth(2).reset();
/// // For one key, each answer comes late; a tenth of all requests fails, the same in each run.
/// let slow = server.faults().on_all().key("pro-key").delay(Duration::from_secs(2));
/// let flaky = server.faults().on_all().chance(0.1).seed(7).status(500);
/// // One effect after the other.
/// let steps = [Effect::status(503), Effect::pass(), Effect::malformed_json()];
/// let odd = server.faults().on(Operation::ListPets).sequence(steps);
/// # for guard in [lost, slow, flaky, odd] { guard.detach(); }
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Faults(Arc<Registry>);

#[derive(Default)]
struct Registry {
    changes: Changes,
    /// Whether any fault is set, so that requests need no lock if none is.
    has_any: AtomicBool,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    list: Vec<Entry>,
    last_id: u64,
    /// The hits of removed faults, by name.
    removed_hits: BTreeMap<String, u64>,
}

struct Entry {
    set: Arc<SetFault>,
    random: Random,
    /// The number of its turns, including those that let a request pass.
    turns: usize,
}

/// An active fault and its counts.
#[derive(Debug)]
pub(super) struct SetFault {
    pub(super) id: u64,
    pub(super) fault: Fault,
    pub(super) seen: AtomicU64,
    pub(super) matched: AtomicU64,
    pub(super) hits: AtomicU64,
}

/// An active fault and its counts.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FaultStatus {
    /// The number of the fault, for its removal.
    pub id: u64,
    /// The fault.
    #[serde(flatten)]
    pub fault: Fault,
    /// The number of requests since it was set.
    pub seen: u64,
    /// The number of matching requests.
    pub matched: u64,
    /// The number of changed requests.
    pub hits: u64,
}

impl Faults {
    /// Creates an empty set that broadcasts its changes.
    pub(crate) fn new(changes: Changes) -> Self {
        Self(Arc::new(Registry { changes, ..Registry::default() }))
    }

    pub(super) fn add(&self, fault: Fault) -> Arc<SetFault> {
        let mut entries = self.lock();
        entries.last_id += 1;
        let random = Random::new(fault.seed);
        let [seen, matched, hits] = [const { AtomicU64::new(0) }; 3];
        let set = Arc::new(SetFault { id: entries.last_id, fault, seen, matched, hits });
        entries.list.push(Entry { set: Arc::clone(&set), random, turns: 0 });
        self.note_change(&entries);
        set
    }

    /// Returns the active faults in order, with their counts.
    #[must_use]
    pub fn list(&self) -> Vec<FaultStatus> {
        let status = |Entry { set, .. }: &Entry| FaultStatus {
            id: set.id,
            fault: set.fault.clone(),
            seen: set.seen.load(Ordering::Relaxed),
            matched: set.matched.load(Ordering::Relaxed),
            hits: set.hits.load(Ordering::Relaxed),
        };
        self.lock().list.iter().map(status).collect()
    }

    /// Returns the hits since the start of the server, by name of the fault.
    pub(crate) fn total_hits(&self) -> BTreeMap<String, u64> {
        let entries = self.lock();
        let mut total = entries.removed_hits.clone();
        for Entry { set, .. } in &entries.list {
            *total.entry(set.fault.name()).or_default() += set.hits.load(Ordering::Relaxed);
        }
        total
    }

    /// Removes a fault. Returns whether it was set.
    #[expect(clippy::must_use_candidate, reason = "the caller usually knows that it is set")]
    pub fn remove(&self, id: u64) -> bool {
        self.remove_all(|set| set.id == id) > 0
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.remove_all(|_| true);
    }

    fn remove_all(&self, is_meant: impl Fn(&SetFault) -> bool) -> usize {
        let mut entries = self.lock();
        let (removed, kept): (Vec<_>, Vec<_>) =
            mem::take(&mut entries.list).into_iter().partition(|entry| is_meant(&entry.set));
        entries.list = kept;
        for Entry { set, .. } in &removed {
            let hits = set.hits.load(Ordering::Relaxed);
            *entries.removed_hits.entry(set.fault.name()).or_default() += hits;
        }
        self.note_change(&entries);
        removed.len()
    }

    /// Selects the faults that hit a request. Calls `request` only if any fault is set.
    pub(crate) fn choose<'a>(
        &self,
        request: impl FnOnce() -> RequestView<'a>,
    ) -> Option<ActiveFaults> {
        if !self.0.has_any.load(Ordering::Relaxed) {
            return None;
        }
        let request = request();
        let mut entries = self.lock();
        let chosen = entries.list.iter_mut().filter_map(|entry| entry.choose(request));
        Some(ActiveFaults(chosen.collect())).filter(|chosen| !chosen.0.is_empty())
    }

    fn note_change(&self, entries: &Entries) {
        self.0.has_any.store(!entries.list.is_empty(), Ordering::Relaxed);
        self.0.changes.mark_boundary();
        self.0.changes.tell(What::Faults);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        // A panic cannot leave the entries inconsistent: every change is a single push, count or
        // removal.
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

impl Entry {
    /// Counts a request, and returns the effect that hits it.
    fn choose(&mut self, request: RequestView<'_>) -> Option<ActiveFault> {
        let Self { set, random, turns } = self;
        set.seen.fetch_add(1, Ordering::Relaxed);
        if !set.fault.matches(request) {
            return None;
        }
        let number = set.matched.fetch_add(1, Ordering::Relaxed) + 1;
        if !set.fault.when.hits(number, random) {
            return None;
        }
        *turns += 1;
        let effect = set.fault.effect(*turns)?.clone();
        let delay = effect.draw_delay(random);
        Some(ActiveFault { set: Arc::clone(set), effect, delay, has_hit: false })
    }
}

/// The faults that hit one request.
#[derive(Debug)]
pub(crate) struct ActiveFaults(Vec<ActiveFault>);

#[derive(Debug)]
struct ActiveFault {
    set: Arc<SetFault>,
    effect: Effect,
    delay: Option<Duration>,
    has_hit: bool,
}

impl ActiveFault {
    /// Counts the hit once, and returns the name of the fault.
    fn hit(&mut self) -> Option<String> {
        if mem::replace(&mut self.has_hit, true) {
            return None;
        }
        self.set.hits.fetch_add(1, Ordering::Relaxed);
        Some(self.set.fault.name())
    }
}

impl ActiveFaults {
    /// Whether the service does not process the request.
    pub(crate) fn skips_service(&self) -> bool {
        self.0.iter().any(|active| !active.set.fault.is_processed(&active.effect))
    }

    /// The response to an unprocessed request.
    pub(crate) fn unavailable() -> Response<Bytes> {
        StatusEffect::new(503, true).to_response()
    }

    /// Returns the delay of the response, and the names of the faults that cause it. They count as
    /// hits when the delay begins, because not every client waits for its end.
    pub(crate) fn delay(&mut self) -> (Duration, Vec<String>) {
        let delayed = self.0.iter_mut().filter(|active| active.delay.is_some());
        let (mut delay, mut names) = (Duration::ZERO, Vec::new());
        for active in delayed {
            delay = delay.saturating_add(active.delay.unwrap_or_default());
            names.extend(active.hit());
        }
        (delay, names)
    }

    /// Changes the response, counts the hits, and returns the names of the faults that hit now. The
    /// extensions of the response carry the effects on the socket.
    pub(crate) fn change(
        &mut self,
        response: &mut Response<Bytes>,
        now: Duration,
        is_head: bool,
    ) -> Vec<String> {
        let mut target = FaultTarget { response, is_head, now, plan: SocketPlan::default() };
        let mut names = Vec::new();
        // A status replaces the whole response, so it comes first.
        self.0.sort_by_key(|active| !active.effect.has_status());
        for active in &mut self.0 {
            if active.effect.apply(&mut target) {
                names.extend(active.hit());
            }
        }
        let plan = target.plan;
        if plan != SocketPlan::default() {
            response.extensions_mut().insert(plan);
        }
        names
    }

    /// Whether the client won't receive the whole changed response.
    pub(crate) fn loses_response(response: &Response<Bytes>) -> bool {
        response.extensions().get::<SocketPlan>().is_some_and(SocketPlan::loses_response)
    }
}
