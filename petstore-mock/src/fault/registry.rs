//! The active faults, their counts, and the selection of faults for a request.

use std::{
    fmt, mem,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use serde::Serialize;

use super::{
    change::{FaultTarget, SocketPlan},
    effect::Effect,
    random::Random,
    spec::{Fault, RequestView},
};
use crate::{changes::Changes, lock::lock, operation::Target};

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
/// let lost = server.faults().on(Operation::CreatePet).nth(2).apply(Effect::EmptyReply {});
/// // For one key, each response comes late. A tenth of all requests fails, the same in each run.
/// let slow = server.faults().on(..).key("pro-key").delay(Duration::from_secs(2));
/// let flaky = server.faults().on(..).chance(0.1).seed(7).status(500);
/// // One effect after the other.
/// let steps = [Effect::Status(503), Effect::EmptyReply {}];
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
type SharedFault = Arc<Mutex<ActiveFault>>;

#[derive(Debug)]
struct ActiveFault {
    status: FaultStatus,
    target: Target,
    random: Random,
    /// The number of requests at which it was its turn, including those that it let pass.
    turns: usize,
}

impl ActiveFault {
    fn new(id: u64, fault: Fault) -> SharedFault {
        Arc::new(Mutex::new(Self {
            random: Random::new(fault.seed),
            // A fault without a valid target is refused.
            target: fault.target().unwrap_or_default(),
            turns: 0,
            status: FaultStatus {
                id,
                fault,
                seen: 0,
                matched: 0,
                hits: 0,
            },
        }))
    }

    /// Counts a request, and returns the effect that hits it and its delay, if it is its turn.
    fn turn(&mut self, request: RequestView<'_>) -> Option<(Effect, Option<Duration>)> {
        let Self {
            status,
            target,
            random,
            turns,
        } = self;
        status.seen += 1;
        if !request.matches(&status.fault, target) {
            return None;
        }
        status.matched += 1;
        if !status.fault.when.hits(status.matched, random) {
            return None;
        }
        *turns += 1;
        let effect = status.fault.effect(*turns)?;
        Some((effect.clone(), effect.draw_delay(random)))
    }
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

    /// Sets a fault that was read from JSON.
    ///
    /// # Panics
    ///
    /// If it can never hit a request, or if a response cannot be so.
    #[track_caller]
    #[expect(
        clippy::panic,
        reason = "a fault that hits nothing is a mistake of the test"
    )]
    pub fn set(&self, fault: Fault) -> FaultGuard {
        if let Some(problem) = fault.problem() {
            panic!("{problem}");
        }
        let mut entries = lock(&self.entries);
        entries.last_id += 1;
        let fault = ActiveFault::new(entries.last_id, fault);
        entries.list.push(Arc::clone(&fault));
        self.note_change();
        FaultGuard {
            faults: self.clone(),
            fault,
            optional: false,
            detached: false,
        }
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
        let has_removed = list.len() < before;
        if has_removed {
            self.note_change();
        }
        has_removed
    }

    /// Selects the faults that hit a request. Fails if it chooses a fault that does not exist.
    pub(crate) fn choose(&self, request: RequestView<'_>) -> Result<ActiveFaults, &'static str> {
        let entries = lock(&self.entries);
        let hits = entries.list.iter().filter_map(|it| Hit::new(it, request));
        let mut chosen: Vec<_> = hits.collect();
        let name = request.chosen();
        let is_set = |it: &SharedFault| lock(it).status.fault.is_chosen_by(name);
        if let Some(name) = name
            && !entries.list.iter().any(is_set)
        {
            let fault = Fault::built_in(name).ok_or(
                "X-Mock-Fault names no fault: set one with this name and `\"when\": \"named\"`, or \
                 send a status such as 503, reset, emptyReply, hang or malformedJson",
            )?;
            chosen.extend(Hit::new(&ActiveFault::new(0, fault), request));
        }
        Ok(ActiveFaults(chosen))
    }

    fn note_change(&self) {
        self.changes.mark_boundary();
        self.changes.notify();
    }
}

/// The guard of a fault. The fault is removed when the guard is dropped.
///
/// If the fault has hit no request, dropping the guard panics: without the fault, the test proves
/// nothing. It does not panic if the thread already panics, or if the fault is
/// [`optional`](Self::optional). [`detach`](Self::detach) keeps the fault without a guard.
///
/// ```
/// use petstore_mock::{MockServer, Operation};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), reqwest::Error> {
/// let server = MockServer::start().await;
/// let busy = server.faults().on(Operation::ListPets).first(1).status(503);
/// # let client = reqwest::Client::builder().no_proxy().build()?;
/// let list = || client.get(format!("{}/pets", server.url())).bearer_auth("free-key").send();
/// assert_eq!(list().await?.status(), 503);
/// assert_eq!(list().await?.status(), 200);
/// assert_eq!(busy.hits(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping the guard removes the fault, and panics since nothing has hit it yet"]
pub struct FaultGuard {
    faults: Faults,
    fault: SharedFault,
    optional: bool,
    detached: bool,
}

impl FaultGuard {
    /// Returns the number of requests that the fault has changed.
    ///
    /// Matching requests whose response had nothing to change do not count, for example if the body
    /// was too short to be cut.
    #[must_use]
    pub fn hits(&self) -> u64 {
        lock(&self.fault).status.hits
    }

    /// Returns the number of matching requests, hit or not.
    #[must_use]
    pub fn matched(&self) -> u64 {
        lock(&self.fault).status.matched
    }

    /// Accepts that the fault may hit no request.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Keeps the fault without a guard, until it is removed or the server stops. Returns its number
    /// for [`Faults::remove`](crate::Faults::remove).
    #[expect(
        clippy::must_use_candidate,
        reason = "a fault that is never removed needs no number"
    )]
    pub fn detach(mut self) -> u64 {
        self.detached = true;
        lock(&self.fault).status.id
    }
}

impl Drop for FaultGuard {
    #[expect(clippy::panic, reason = "a test without its fault shows nothing")]
    fn drop(&mut self) {
        if self.detached {
            return;
        }
        let id = lock(&self.fault).status.id;
        self.faults.remove(id);
        let FaultStatus {
            fault,
            seen,
            matched,
            hits,
            ..
        } = lock(&self.fault).status.clone();
        if hits > 0 || self.optional || thread::panicking() {
            return;
        }
        let why = match (seen, matched) {
            (0, _) => "no request came".to_owned(),
            (seen, 0) => format!("{seen} requests came, none matched"),
            (seen, matched) => format!(
                "{seen} requests came, {matched} matched, none triggered the fault: it was not their \
                 turn, or there was nothing to change"
            ),
        };
        panic!(
            "the fault `{fault}` was never hit: {why}. Send a request that matches, or call `.optional()`"
        );
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

/// The faults that hit one request.
#[derive(Default)]
pub(crate) struct ActiveFaults(Vec<Hit>);

/// A fault that hits one request.
struct Hit {
    fault: SharedFault,
    effect: Effect,
    delay: Option<Duration>,
    skips_service: bool,
    is_counted: bool,
}

impl Hit {
    fn new(fault: &SharedFault, request: RequestView<'_>) -> Option<Self> {
        let mut active = lock(fault);
        let (effect, delay) = active.turn(request)?;
        Some(Self {
            fault: Arc::clone(fault),
            skips_service: !active.status.fault.is_processed(&effect),
            effect,
            delay,
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
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the service does not process the request.
    pub(crate) fn skips_service(&self) -> bool {
        self.0.iter().any(|hit| hit.skips_service)
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

    /// Changes the response, and counts the hits. Returns the names of the faults that hit now, and
    /// their effects on the socket.
    pub(crate) fn change(
        &mut self,
        response: &mut Response<Bytes>,
        now: Duration,
        is_head: bool,
    ) -> (Vec<String>, SocketPlan) {
        let mut target = FaultTarget::new(response, now, is_head);
        let mut names = Vec::new();
        // A status replaces the whole response, so it comes first.
        self.0.sort_by_key(|hit| !hit.effect.has_status());
        for hit in &mut self.0 {
            if hit.effect.apply(&mut target) {
                names.extend(hit.count());
            }
        }
        (names, target.plan())
    }
}
