//! The active faults, their counts, and the selection of faults for a request.

use std::{
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Response};
use serde::Serialize;

use super::{
    effect::Effect,
    response_effects::{FaultTarget, StatusEffect},
    socket_effects::SocketPlan,
    spec::Fault,
    trigger::{Random, RequestView},
};
use crate::changes::{ChangeKind, Changes};

/// The faults of a server. Clones share them.
///
/// All matching faults hit a request, in the order in which they were set. Those that set a status
/// come before the others, and the last of them sets it. If two faults end the response, or set its
/// speed, only the first one has that effect. A request that is hit still uses quota. Faults never
/// hit requests to `/_mock`.
///
/// ```
/// use std::time::Duration;
/// use petstore_mock::{Effect, MockServer, Operation};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = MockServer::start().await;
/// // The pet is added, and the response is lost.
/// let lost = server.faults().on(Operation::CreatePet).nth(2).apply(Effect::EmptyReply);
/// // For one key, each response comes late. A tenth of all requests fails, the same in each run.
/// let slow = server.faults().on_all().key("pro-key").delay(Duration::from_secs(2));
/// let flaky = server.faults().on_all().chance(0.1).seed(7).status(500);
/// // One effect after the other.
/// let steps = [Effect::status(503), Effect::EmptyReply];
/// let odd = server.faults().on(Operation::ListPets).sequence(steps);
/// # for guard in [lost, slow, flaky, odd] { guard.detach(); }
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Faults {
    changes: Changes,
    entries: Arc<Mutex<Entries>>,
}

#[derive(Default)]
struct Entries {
    list: Vec<SharedFault>,
    last_id: u64,
}

/// An active fault. The registry, its guard and the requests that it hits share it.
pub(super) type SharedFault = Arc<Mutex<ActiveFault>>;

#[derive(Debug)]
pub(super) struct ActiveFault {
    pub(super) status: FaultStatus,
    random: Random,
    /// The number of requests at which it was its turn, including those that it let pass.
    turns: usize,
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
        Self {
            changes,
            ..Self::default()
        }
    }

    #[track_caller]
    #[expect(
        clippy::panic,
        reason = "a fault that hits nothing is a mistake of the test"
    )]
    pub(super) fn add(&self, fault: Fault) -> SharedFault {
        if let Some(problem) = fault.problem() {
            panic!("{problem}");
        }
        let mut entries = lock(&self.entries);
        entries.last_id += 1;
        let shared = shared(entries.last_id, fault);
        entries.list.push(Arc::clone(&shared));
        self.note_change();
        shared
    }

    /// Returns the active faults in order, with their counts.
    #[must_use]
    pub fn list(&self) -> Vec<FaultStatus> {
        lock(&self.entries)
            .list
            .iter()
            .map(|fault| lock(fault).status.clone())
            .collect()
    }

    /// Removes a fault. Returns whether it was set.
    #[expect(
        clippy::must_use_candidate,
        reason = "the caller usually knows that it is set"
    )]
    pub fn remove(&self, id: u64) -> bool {
        self.remove_all(|fault| fault.id == id)
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.remove_all(|_| true);
    }

    /// Removes the faults that `is_meant` selects. Returns whether there was one.
    fn remove_all(&self, is_meant: impl Fn(&FaultStatus) -> bool) -> bool {
        let list = &mut lock(&self.entries).list;
        let before = list.len();
        list.retain(|fault| !is_meant(&lock(fault).status));
        self.note_change();
        list.len() < before
    }

    /// Selects the faults that hit a request. A request may choose a fault by its name. Calls
    /// `request` only if some fault can hit it.
    pub(crate) fn choose<'a>(
        &self,
        named: Option<&'a HeaderValue>,
        request: impl FnOnce() -> RequestView<'a>,
    ) -> Result<Option<ActiveFaults>, UnknownFault> {
        let entries = lock(&self.entries);
        if entries.list.is_empty() && named.is_none() {
            return Ok(None);
        }
        let request = request().choosing(named);
        let mut chosen: Vec<_> = entries
            .list
            .iter()
            .filter_map(|fault| Hit::choose(fault, request))
            .collect();
        let is_set = |fault: &SharedFault| lock(fault).status.fault.is_chosen_by(named);
        if let Some(name) = named
            && !entries.list.iter().any(is_set)
        {
            let fault = Fault::built_in(name).ok_or(UnknownFault)?;
            chosen.extend(Hit::choose(&shared(0, fault), request));
        }
        Ok((!chosen.is_empty()).then_some(ActiveFaults(chosen)))
    }

    fn note_change(&self) {
        self.changes.mark_boundary();
        self.changes.notify(ChangeKind::Faults);
    }
}

/// A request chooses a fault that does not exist.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "X-Mock-Fault names no fault: set one with this name and `\"when\": \"named\"`, or send a status \
     such as 503, reset, emptyReply, hang or malformedJson"
)]
pub(crate) struct UnknownFault;

fn shared(id: u64, fault: Fault) -> SharedFault {
    let random = Random::new(fault.seed);
    let status = FaultStatus {
        id,
        fault,
        seen: 0,
        matched: 0,
        hits: 0,
    };
    Arc::new(Mutex::new(ActiveFault {
        status,
        random,
        turns: 0,
    }))
}

/// Every change is a single push, count or removal, so a panic cannot leave the faults
/// inconsistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

/// The faults that hit one request.
#[derive(Debug)]
pub(crate) struct ActiveFaults(Vec<Hit>);

/// A fault that hits one request.
#[derive(Debug)]
struct Hit {
    fault: SharedFault,
    effect: Effect,
    delay: Option<Duration>,
    skips_service: bool,
    is_counted: bool,
}

impl Hit {
    /// Counts a request, and returns the effect that hits it.
    fn choose(shared: &SharedFault, request: RequestView<'_>) -> Option<Self> {
        let ActiveFault {
            status,
            random,
            turns,
        } = &mut *lock(shared);
        status.seen += 1;
        if !status.fault.matches(request) {
            return None;
        }
        status.matched += 1;
        if !status.fault.when.hits(status.matched, random) {
            return None;
        }
        *turns += 1;
        let effect = status.fault.effect(*turns)?.clone();
        Some(Self {
            fault: Arc::clone(shared),
            delay: effect.draw_delay(random),
            skips_service: !status.fault.is_processed(&effect),
            effect,
            is_counted: false,
        })
    }

    /// Counts the hit once, and returns the name of the fault.
    fn count(&mut self) -> Option<String> {
        if mem::replace(&mut self.is_counted, true) {
            return None;
        }
        let status = &mut lock(&self.fault).status;
        status.hits += 1;
        Some(status.fault.name())
    }
}

impl ActiveFaults {
    /// Whether the service does not process the request.
    pub(crate) fn skips_service(&self) -> bool {
        self.0.iter().any(|hit| hit.skips_service)
    }

    /// The response to an unprocessed request.
    pub(crate) fn unavailable() -> Response<Bytes> {
        StatusEffect::new(503, true).to_response()
    }

    /// Returns the delay of the response, and the names of the faults that cause it. The hits count
    /// when the delay begins, because not every client waits for its end.
    pub(crate) fn delay(&mut self) -> (Duration, Vec<String>) {
        let (mut delay, mut names) = (Duration::ZERO, Vec::new());
        for hit in &mut self.0 {
            if let Some(own) = hit.delay {
                delay = delay.saturating_add(own);
                names.extend(hit.count());
            }
        }
        (delay, names)
    }

    /// Changes the response, counts the hits, and returns the names of the faults that hit now.
    /// Effects on the socket are stored in the extensions of the response.
    pub(crate) fn change(
        &mut self,
        response: &mut Response<Bytes>,
        now: Duration,
        is_head: bool,
    ) -> Vec<String> {
        let mut target = FaultTarget::new(response, now, is_head);
        let mut names = Vec::new();
        // A status replaces the whole response, so it comes first.
        self.0.sort_by_key(|hit| !hit.effect.has_status());
        for hit in &mut self.0 {
            if hit.effect.apply(&mut target) {
                names.extend(hit.count());
            }
        }
        let plan = target.into_plan();
        if plan != SocketPlan::default() {
            response.extensions_mut().insert(plan);
        }
        names
    }

    /// Whether the client won't receive the whole changed response.
    pub(crate) fn loses_response(response: &Response<Bytes>) -> bool {
        response
            .extensions()
            .get::<SocketPlan>()
            .is_some_and(SocketPlan::loses_response)
    }
}
