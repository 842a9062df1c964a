//! The stores of isolated keys: each key has its own pets and orders.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::store::Store;

/// The stores, by the number of the key. A store begins as a copy of the shared store, and shares
/// its pets.
#[derive(Default)]
pub(super) struct KeyStores(Mutex<HashMap<u32, Store>>);

impl KeyStores {
    /// Calls `act` with the store of a key. At the key's first request, `first` returns the store.
    pub(super) fn with<T>(
        &self,
        key: u32,
        first: impl FnOnce() -> Store,
        act: impl FnOnce(&mut Store) -> T,
    ) -> T {
        act(self.lock().entry(key).or_insert_with(first))
    }

    pub(super) fn remove(&self, key: u32) {
        self.lock().remove(&key);
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// A change is made completely or not at all, so a panic does no harm.
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Store>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
