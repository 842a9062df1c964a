//! The store of the server, and those of isolated keys.

use std::{collections::BTreeMap, path::Path};

use super::{
    data_file::{DataError, DataFile},
    store::{Change, ChangeError, Contents, Store},
};

/// The stores. With isolated keys, each key has its own, which begins as a copy of the shared one.
pub(super) struct Stores {
    shared: Store,
    of_keys: BTreeMap<u32, Store>,
    data: Data,
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
            shared,
            of_keys: BTreeMap::new(),
            data: Data::Memory,
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
    pub(super) fn close(&mut self) {
        if matches!(self.data, Data::File(_)) {
            self.data = Data::Closed;
        }
    }

    /// Returns whether the shared store can be changed.
    pub(super) fn is_ready(&mut self) -> bool {
        match &mut self.data {
            Data::File(file) => file.is_ready(),
            Data::Memory | Data::Closed => true,
        }
    }

    /// Returns the store of an isolated key, or the shared one.
    pub(super) fn of(&mut self, key: Option<u32>) -> &mut Store {
        match key {
            Some(key) => self
                .of_keys
                .entry(key)
                .or_insert_with(|| self.shared.clone()),
            None => &mut self.shared,
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
        Ok(id)
    }

    /// Lets a key begin again with a copy of the shared store.
    pub(super) fn reset_key(&mut self, key: u32) {
        self.of_keys.remove(&key);
    }

    /// Returns the contents of the isolated keys' stores.
    pub(super) fn isolated(&self) -> impl Iterator<Item = (u32, &Contents)> {
        self.of_keys
            .iter()
            .map(|(key, store)| (*key, store.contents()))
    }

    /// Replaces the shared store, and the stores of all isolated keys.
    pub(super) fn replace(
        &mut self,
        shared: Contents,
        isolated: impl IntoIterator<Item = (u32, Contents)>,
    ) -> Result<(), ChangeError> {
        self.change(None, Change::Replace(shared))?;
        let stores = isolated
            .into_iter()
            .map(|(key, contents)| (key, contents.into()));
        self.of_keys = stores.collect();
        Ok(())
    }
}
