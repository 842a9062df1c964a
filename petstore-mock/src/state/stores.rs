//! The store of the server, and those of isolated keys.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use serde::{Deserialize, Serialize};

use super::{
    data_file::{DataError, DataFile},
    store::{Change, ChangeError, Store},
};

/// The pets and orders of a server at an instant, with those of isolated keys
/// ([`Builder::isolate_keys`](crate::Builder::isolate_keys)).
///
/// It can be serialized as JSON, and contains no keys. Restoring it gives every key unused quotas and
/// no ban.
///
/// ```
/// use petstore_mock::{MockServer, SeedPet, Snapshot};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = MockServer::start().await;
/// let text = serde_json::to_string(&server.snapshot())?;
/// server.pets().insert(SeedPet::new("Rex", 7))?;
///
/// server.restore(&serde_json::from_str::<Snapshot>(&text)?)?;
/// assert_eq!(server.pets().len(), 25);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// The shared store.
    store: Store,
    /// The stores of isolated keys, by number.
    keys: BTreeMap<u32, Store>,
}

impl Snapshot {
    /// Returns a snapshot without stores of isolated keys.
    pub(crate) const fn new(store: Store) -> Self {
        let keys = BTreeMap::new();
        Self { store, keys }
    }
}

/// The stores. With isolated keys, each key has its own, which begins as a copy of the shared one.
pub(crate) struct Stores {
    all: Snapshot,
    data: Data,
    /// Changes with each change, and is unique in the process.
    version: u64,
}

/// Where the shared store is kept.
enum Data {
    Memory,
    File(DataFile),
    /// The file is closed, because the server has ended.
    Closed,
}

impl Stores {
    pub(super) fn new(shared: Store) -> Self {
        Self {
            all: Snapshot::new(shared),
            data: Data::Memory,
            version: next_version(),
        }
    }

    /// Keeps the shared store in a file. The content of an existing file replaces `first`.
    pub(super) fn open(path: &Path, first: Store) -> Result<Self, DataError> {
        let (file, shared) = DataFile::open(path, first)?;
        Ok(Self {
            data: Data::File(file),
            ..Self::new(shared)
        })
    }

    /// Closes the data file, if any. The shared store cannot be changed afterwards.
    pub(crate) fn close(&mut self) {
        if matches!(self.data, Data::File(_)) {
            self.data = Data::Closed;
        }
    }

    /// Returns whether the shared store can be changed.
    pub(crate) fn is_ready(&mut self) -> bool {
        match &mut self.data {
            Data::File(file) => file.is_ready(),
            Data::Memory | Data::Closed => true,
        }
    }

    /// Returns the store of an isolated key, or the shared one.
    pub(super) fn of(&mut self, key: Option<u32>) -> &mut Store {
        let Snapshot { store, keys } = &mut self.all;
        match key {
            Some(key) => keys.entry(key).or_insert_with(|| store.clone()),
            None => store,
        }
    }

    /// Changes a store completely, or not at all. Returns the id of a new pet.
    pub(super) fn change(
        &mut self,
        key: Option<u32>,
        mut change: Change,
    ) -> Result<i64, ChangeError> {
        let id = self.of(key).check(&mut change)?;
        if key.is_none() {
            match &mut self.data {
                Data::Memory => {}
                Data::File(file) => file.append(&change)?,
                Data::Closed => return Err(ChangeError::Unsaved("it is closed".to_owned())),
            }
        }
        self.of(key).apply(change);
        self.version = next_version();
        Ok(id)
    }

    /// Returns a number that changes with the stores, and is unique in the process.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Lets a key begin again with a copy of the shared store.
    pub(super) fn reset_key(&mut self, key: u32) {
        self.all.keys.remove(&key);
        self.version = next_version();
    }

    /// Returns all stores.
    pub(crate) fn all(&self) -> &Snapshot {
        &self.all
    }

    /// Replaces all stores completely, or none.
    pub(super) fn replace(&mut self, all: Snapshot) -> Result<(), ChangeError> {
        self.change(None, Change::Replace(all.store))?;
        self.all.keys = all.keys;
        Ok(())
    }
}

fn next_version() -> u64 {
    static VERSIONS: AtomicU64 = AtomicU64::new(1);
    VERSIONS.fetch_add(1, Ordering::Relaxed)
}
