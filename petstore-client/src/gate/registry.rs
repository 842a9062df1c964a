//! One gate for each key and origin in a process, whatever the number of clients.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use http::HeaderValue;
use url::Url;

use super::door::Gate;

/// The gates by a digest of key and origin, seeded anew in each process: the key itself is not
/// kept here.
struct Registry {
    seeds: [RandomState; 2],
    gates: Mutex<HashMap<[u64; 2], Weak<Gate>>>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry {
    seeds: [RandomState::new(), RandomState::new()],
    gates: Mutex::default(),
});

/// The gates of a client: one, or with a key provider one for each key.
#[derive(Debug)]
pub(crate) struct Gates {
    home: Url,
    /// The gate of a fixed key, or else of the last one.
    last: Mutex<Option<(HeaderValue, Arc<Gate>)>>,
}

impl Gates {
    pub(crate) fn new(home: Url) -> Self {
        Self { home, last: Mutex::default() }
    }

    /// Returns the gate of a key. It lives as long as anyone holds it.
    pub(crate) fn of(&self, authorization: &HeaderValue) -> Arc<Gate> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((key, gate)) = &*last
            && key == authorization
        {
            return Arc::clone(gate);
        }
        let gate = REGISTRY.gate(&self.home, authorization);
        *last = Some((authorization.clone(), Arc::clone(&gate)));
        gate
    }

    /// Returns the gate that was used last.
    pub(crate) fn last(&self) -> Option<Arc<Gate>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map(|(_, gate)| Arc::clone(gate))
    }
}

impl Registry {
    fn gate(&self, home: &Url, authorization: &HeaderValue) -> Arc<Gate> {
        let origin = (home.scheme(), home.host_str(), home.port_or_known_default());
        let digest =
            self.seeds.each_ref().map(|seed| seed.hash_one((origin, authorization.as_bytes())));
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get(&digest).and_then(Weak::upgrade) {
            return gate;
        }
        gates.retain(|_, gate| gate.strong_count() > 0);
        let gate = Arc::new(Gate::new());
        gates.insert(digest, Arc::downgrade(&gate));
        gate
    }
}
