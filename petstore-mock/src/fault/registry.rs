//! The faults that are set, in the order in which they were, and what each has done so far. Who holds
//! one is `guard`; carrying out what is chosen here is left to the router and to `accept`.

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
use http::{Response, StatusCode};
use serde::Serialize;

use super::{
    effect::Effect,
    response_effects::{FaultTarget, FinalStatus, StatusEffect},
    socket_effects::SocketPlan,
    spec::Fault,
    trigger::{Random, RequestView},
};
use crate::changes::{Changes, What};

/// All faults of a server, shared by its clones.
#[derive(Clone, Default)]
pub(super) struct Registry(Arc<SharedRegistry>);

#[derive(Default)]
struct SharedRegistry {
    changes: Changes,
    /// Whether there is any: all that a request without faults looks at.
    any: AtomicBool,
    set: Mutex<Set>,
}

#[derive(Default)]
struct Set {
    entries: Vec<Entry>,
    /// The number of the last one that was set.
    last: u64,
    /// The hits of faults that were removed, by name.
    removed_hits: BTreeMap<String, u64>,
}

struct Entry {
    id: u64,
    fault: Arc<Fault>,
    random: Random,
    counts: Arc<Counts>,
    /// How often its turn came, be it that it lets the request pass.
    turns: u64,
}

/// What a fault has met so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) seen: AtomicU64,
    pub(super) matched: AtomicU64,
    pub(super) hits: AtomicU64,
}

/// A fault that is set, and what it has done so far.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FaultStatus {
    /// Its number, by which it can be removed.
    pub id: u64,
    /// The fault itself.
    #[serde(flatten)]
    pub fault: Fault,
    /// How many requests came since it was set.
    pub seen: u64,
    /// How many of them it was meant for.
    pub matched: u64,
    /// How many it changed.
    pub hits: u64,
}

impl Registry {
    pub(super) fn new(changes: Changes) -> Self {
        Self(Arc::new(SharedRegistry { changes, ..SharedRegistry::default() }))
    }

    pub(super) fn add(&self, fault: Fault) -> (u64, Arc<Fault>, Arc<Counts>) {
        let (fault, counts) = (Arc::new(fault), Arc::new(Counts::default()));
        let mut set = self.lock();
        set.last += 1;
        let id = set.last;
        set.entries.push(Entry {
            id,
            random: Random::new(fault.seed),
            fault: Arc::clone(&fault),
            counts: Arc::clone(&counts),
            turns: 0,
        });
        self.0.any.store(true, Ordering::Relaxed);
        self.0.changes.mark_boundary();
        self.0.changes.tell(What::Faults);
        (id, fault, counts)
    }

    /// Removes faults, and returns how many.
    pub(super) fn remove(&self, is_meant: impl Fn(u64) -> bool) -> usize {
        let mut set = self.lock();
        let before = set.entries.len();
        let (removed, kept): (Vec<_>, Vec<_>) =
            mem::take(&mut set.entries).into_iter().partition(|entry| is_meant(entry.id));
        set.entries = kept;
        for Entry { fault, counts, .. } in removed {
            *set.removed_hits.entry(fault.name()).or_default() +=
                counts.hits.load(Ordering::Relaxed);
        }
        self.0.any.store(!set.entries.is_empty(), Ordering::Relaxed);
        self.0.changes.mark_boundary();
        self.0.changes.tell(What::Faults);
        before - set.entries.len()
    }

    pub(super) fn list(&self) -> Vec<FaultStatus> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let status = |Entry { id, fault, counts, .. }: &Entry| FaultStatus {
            id: *id,
            fault: Fault::clone(fault),
            seen: read(&counts.seen),
            matched: read(&counts.matched),
            hits: read(&counts.hits),
        };
        self.lock().entries.iter().map(status).collect()
    }

    /// Returns how many requests were hit since the start, by the name of the fault.
    pub(super) fn total_hits(&self) -> BTreeMap<String, u64> {
        let set = self.lock();
        let mut total = set.removed_hits.clone();
        for Entry { fault, counts, .. } in &set.entries {
            *total.entry(fault.name()).or_default() += counts.hits.load(Ordering::Relaxed);
        }
        total
    }

    /// Whether no fault is set at all.
    pub(super) fn is_empty(&self) -> bool {
        !self.0.any.load(Ordering::Relaxed)
    }

    /// Chooses the faults that hit a request, which counts as one for all of them.
    pub(super) fn choose(&self, request: RequestView<'_>) -> Option<ActiveFaults> {
        let mut chosen =
            ActiveFaults { processed: true, delay: Duration::ZERO, faults: Vec::new() };
        for entry in &mut self.lock().entries {
            entry.choose(request, &mut chosen);
        }
        Some(chosen).filter(|chosen| !chosen.faults.is_empty())
    }

    fn lock(&self) -> MutexGuard<'_, Set> {
        // What is there after a panic is whole: every change is a single push, count or removal.
        self.0.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn choose(&mut self, request: RequestView<'_>, chosen: &mut ActiveFaults) {
        self.counts.seen.fetch_add(1, Ordering::Relaxed);
        if !self.fault.matcher.matches(request) {
            return;
        }
        let number = self.counts.matched.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.fault.when.hits(number, &mut self.random) {
            return;
        }
        self.turns += 1;
        let Some(effect) = self.fault.effect(self.turns) else {
            return;
        };
        let delay = effect.draw_delay(&mut self.random);
        chosen.processed &= self.fault.is_processed(effect);
        chosen.delay = chosen.delay.saturating_add(delay.unwrap_or_default());
        chosen.faults.push(Active {
            fault: Arc::clone(&self.fault),
            effect: effect.clone(),
            counts: Arc::clone(&self.counts),
            is_delayed: delay.is_some(),
            has_hit: false,
        });
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

/// The faults that hit one request.
#[derive(Debug)]
pub(crate) struct ActiveFaults {
    processed: bool,
    delay: Duration,
    faults: Vec<Active>,
}

#[derive(Debug)]
struct Active {
    fault: Arc<Fault>,
    effect: Effect,
    counts: Arc<Counts>,
    is_delayed: bool,
    has_hit: bool,
}

impl Active {
    /// Counts a hit, once, and returns the name of the fault.
    fn hit(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.has_hit, true) {
            return None;
        }
        self.counts.hits.fetch_add(1, Ordering::Relaxed);
        Some(self.fault.name())
    }
}

impl ActiveFaults {
    /// Whether they keep the request from the service.
    pub(crate) fn skips_service(&self) -> bool {
        !self.processed
    }

    /// The response to a request that is kept from the service.
    pub(crate) fn unavailable() -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        let plan = SocketPlan::default();
        let mut target =
            FaultTarget { response: &mut response, is_head: false, now: Duration::ZERO, plan };
        StatusEffect::new(FinalStatus(StatusCode::SERVICE_UNAVAILABLE)).apply(&mut target);
        response
    }

    /// Returns how much later the response is to be sent, and the names of the faults that delay it:
    /// they have hit as soon as the delay begins, since not every client waits for its end.
    pub(crate) fn delay(&mut self) -> (Duration, Vec<String>) {
        let delayed = self.faults.iter_mut().filter(|active| active.is_delayed);
        (self.delay, delayed.filter_map(Active::hit).collect())
    }

    /// Changes the response, counts the hits, and returns the names of the faults that hit now. What
    /// happens on the socket goes along in the extensions.
    pub(crate) fn change(
        &mut self,
        response: &mut Response<Bytes>,
        now: Duration,
        is_head: bool,
    ) -> Vec<String> {
        let mut target = FaultTarget { response, is_head, now, plan: SocketPlan::default() };
        let mut names = Vec::new();
        // A status replaces the whole response, so it comes before what changes a part.
        let (first, then): (Vec<_>, Vec<_>) =
            self.faults.iter_mut().partition(|active| active.effect.has_status());
        for active in first.into_iter().chain(then) {
            if active.effect.apply(&mut target) {
                names.extend(active.hit());
            }
        }
        if target.plan != SocketPlan::default() {
            let plan = target.plan;
            target.response.extensions_mut().insert(plan);
        }
        names
    }

    /// Whether the client won't get all of a response that was changed here.
    pub(crate) fn loses_response(response: &Response<Bytes>) -> bool {
        response.extensions().get::<SocketPlan>().is_some_and(SocketPlan::loses_response)
    }
}
