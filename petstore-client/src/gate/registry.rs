//! One gate for each key and origin in a process, whatever the number of clients.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use http::HeaderValue;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::door::Gate;
use super::store::Store;

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
    /// Where processes share limits, if they do.
    folder: Option<PathBuf>,
    /// The gate of a fixed key, or else of the last one.
    last: Mutex<Option<(HeaderValue, Arc<Gate>)>>,
}

impl Gates {
    pub(crate) fn new(home: Url, folder: Option<PathBuf>) -> Self {
        Self { home, folder, last: Mutex::default() }
    }

    /// Returns the gate of a key. It lives as long as anyone holds it.
    pub(crate) fn of(&self, authorization: &HeaderValue) -> Arc<Gate> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((key, gate)) = &*last
            && key == authorization
        {
            return Arc::clone(gate);
        }
        let gate = REGISTRY.gate(&self.home, self.folder.as_deref(), authorization);
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
    fn gate(&self, home: &Url, folder: Option<&Path>, authorization: &HeaderValue) -> Arc<Gate> {
        let origin = home.origin().ascii_serialization();
        let key = (origin.as_str(), folder, authorization.as_bytes());
        let digest = self.seeds.each_ref().map(|seed| seed.hash_one(key));
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get(&digest).and_then(Weak::upgrade) {
            return gate;
        }
        gates.retain(|_, gate| gate.strong_count() > 0);
        let gate = Arc::new(Gate::new(
            folder.map(|folder| Store::new(folder.join(file_name(&origin, authorization)))),
        ));
        gates.insert(digest, Arc::downgrade(&gate));
        gate
    }
}

/// Returns the name of the file in which processes share the limits of a key. The key cannot be
/// had from it.
fn file_name(origin: &str, authorization: &HeaderValue) -> String {
    let digest = Sha256::new()
        .chain_update(b"petstore limits\n")
        .chain_update(origin)
        .chain_update(b"\n")
        .chain_update(authorization.as_bytes())
        .finalize();
    let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("limits-{name}.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_ends_with_the_last_who_holds_it() {
        let home = Url::parse("https://petstore.example/v1").unwrap();
        let gates = Gates::new(home.clone(), None);
        let gate = Arc::downgrade(&gates.of(&HeaderValue::from_static("Bearer one")));
        assert!(gate.upgrade().is_some(), "the client holds it");
        drop(gates);
        assert!(gate.upgrade().is_none());
        let _other = Gates::new(home, None).of(&HeaderValue::from_static("Bearer another"));
        let known = REGISTRY.gates.lock().unwrap();
        assert!(known.values().all(|gate| gate.strong_count() > 0), "and it is forgotten");
    }
}
