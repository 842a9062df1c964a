//! The service without HTTP: the clock, the keys, the stores, the faults and the journal. The keys
//! and the stores each have a lock, which is only held for a short time.

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use super::{
    data_file::DataError,
    keys::{Account, Accounts, Admitted, KeyError, KeyUsage, NewKey, is_public},
    quota::{Period, Quota},
    settings::Settings,
    store::{Change, ChangeError, Store},
    stores::{Snapshot, Stores},
};
use crate::{
    changes::Changes,
    clock::Clock,
    exchange::Rate,
    fault::{Fault, Faults},
    journal::Journal,
    lock::lock,
    plan::Plan,
};

/// The service without HTTP.
pub(crate) struct AppState {
    clock: Clock,
    settings: Settings,
    journal: Arc<Journal>,
    /// Changes by tests and the administration.
    changes: Changes,
    faults: Faults,
    accounts: Mutex<Accounts>,
    stores: Mutex<Stores>,
    first: InitialState,
}

/// The initial state, for a reset.
struct InitialState {
    keys: Vec<NewKey>,
    store: Store,
    faults: Vec<Fault>,
}

impl AppState {
    /// Creates the state, without faults until they are reset. Keys are numbered in their order.
    pub(crate) fn new(
        clock: Clock,
        settings: Settings,
        keys: Vec<NewKey>,
        store: Store,
        faults: Vec<Fault>,
    ) -> Result<Self, KeyError> {
        let changes = Changes::default();
        let severities = settings.severities.clone();
        let journal = Journal::new(settings.journal, severities, clock.clone(), changes.clone());
        let app = Self {
            journal: Arc::new(journal),
            clock,
            faults: Faults::new(changes.clone()),
            changes,
            settings,
            accounts: Mutex::default(),
            stores: Mutex::new(Stores::new(store.clone())),
            first: InitialState {
                keys,
                store,
                faults,
            },
        };
        app.reset_keys()?;
        Ok(app)
    }

    /// Keeps the store in a file. The store of an existing file replaces the initial one.
    pub(crate) fn with_data(self, path: &Path) -> Result<Self, DataError> {
        let stores = Mutex::new(Stores::open(path, self.first.store.clone())?);
        Ok(Self { stores, ..self })
    }

    fn reset_keys(&self) -> Result<(), KeyError> {
        let mut accounts = self.accounts();
        accounts.reset(&self.first.keys, &self.settings)?;
        for key in &self.first.keys {
            key.key().into_iter().for_each(|key| self.mask(key));
        }
        self.changes.notify();
        Ok(())
    }

    /// Sets the initial faults, which must have no problem.
    pub(crate) fn reset_faults(&self) {
        self.faults.clear();
        for fault in self.first.faults.iter().cloned() {
            self.faults.set(fault).detach();
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Returns why a fault can never hit a request of this server.
    pub(crate) fn problem_of(&self, fault: &Fault) -> Option<String> {
        let is_unknown = |key| self.accounts().get(key).is_none();
        let problem = if let Some(problem) = fault.problem() {
            problem
        } else if fault.is_named() && !self.settings.fault_header {
            "requests cannot choose it: start the mock with --fault-header (`fault_header()` in Rust)"
        } else if fault.key().is_some_and(is_unknown) {
            "it is for a key that this server does not have: add it first"
        } else {
            return None;
        };
        Some(format!("the fault `{fault}`: {problem}"))
    }

    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Admits or refuses a request with `key`; `None` if the key does not exist.
    pub(crate) fn admit(&self, key: &str, now: Duration) -> Option<Admitted> {
        self.accounts()
            .get(key)
            .map(|account| account.admit(now, &self.settings))
    }

    /// Returns the rate headers of a request without a valid key: Free's unused quota per minute.
    pub(crate) fn anonymous_rate(&self, now: Duration) -> Rate {
        Quota::new(
            Plan::Free.per_minute(),
            Period::Minute,
            self.settings.window,
        )
        .rate(now)
    }

    /// Reads the store of a key, if keys are isolated, or else the shared one. `read` must be
    /// short, because all other requests wait.
    pub(crate) fn read<T>(&self, key: Option<u32>, read: impl FnOnce(&Store) -> T) -> T {
        read(self.stores().of(self.isolated(key)))
    }

    /// Returns a number that changes with the stores, and is unique in the process.
    pub(crate) fn version(&self) -> u64 {
        self.stores().version()
    }

    /// Returns the key, if it has its own store.
    fn isolated(&self, key: Option<u32>) -> Option<u32> {
        if self.settings.isolate_keys {
            key
        } else {
            None
        }
    }

    /// Changes the data file, and then the store. Returns the id of an added pet.
    pub(crate) fn change(&self, key: Option<u32>, change: Change) -> Result<i64, ChangeError> {
        self.stores().change(self.isolated(key), change)
    }

    /// Makes a change for a test or the administration.
    pub(crate) fn arrange(&self, key: Option<u32>, change: Change) -> Result<i64, ChangeError> {
        let changed = self.change(key, change);
        self.changes.notify();
        changed
    }

    /// Replaces the shared store, and the stores of all isolated keys.
    pub(crate) fn replace(&self, all: Snapshot) -> Result<(), ChangeError> {
        self.stores().replace(all)?;
        self.changes.notify();
        Ok(())
    }

    /// Clears the journal.
    pub(crate) fn forget(&self) {
        self.journal.clear();
        self.changes.notify();
    }

    /// Returns the usage of each key, by number.
    pub(crate) fn usage(&self) -> Vec<KeyUsage> {
        let now = self.clock.since_epoch();
        self.accounts()
            .sorted()
            .into_iter()
            .map(|(_, account)| account.usage(now))
            .collect()
    }

    /// Adds a key for a test. Returns it and its number.
    pub(crate) fn add_key(&self, key: &NewKey) -> Result<(String, u32), KeyError> {
        let (key, number) = self.accounts().add(key, &self.settings)?;
        self.mask(&key);
        self.changes.notify();
        Ok((key, number))
    }

    /// Masks a key in the journal, unless it is public.
    fn mask(&self, key: &str) {
        if !is_public(key) {
            self.journal.mask(key);
        }
    }

    /// Removes a key. Returns whether it existed.
    pub(crate) fn remove_key(&self, number: u32) -> bool {
        let was_there = self.accounts().remove(number);
        self.stores().reset_key(number);
        self.keys_changed(was_there)
    }

    /// Changes a key. Returns whether it exists.
    pub(crate) fn change_key(&self, number: u32, change: impl FnOnce(&mut Account)) -> bool {
        let is_there = self.accounts().by_number(number).map(change).is_some();
        self.keys_changed(is_there)
    }

    /// Declares how many requests of a key may be under way at once. Returns whether it exists.
    ///
    /// This is no boundary for other keys, so that tests that run in parallel can declare.
    pub(crate) fn declare_senders(&self, number: u32, senders: u32) -> bool {
        let declare = |account: &mut Account| account.set_senders(senders);
        let is_there = self.accounts().by_number(number).map(declare).is_some();
        self.changes.notify();
        is_there
    }

    /// Bans a key from now for this long. Returns whether it exists.
    pub(crate) fn ban(&self, number: u32, length: Duration) -> bool {
        let until = self.clock.since_epoch().saturating_add(length);
        self.change_key(number, |account| account.record.ban(until))
    }

    /// Restores the unused quotas of a key and, if keys are isolated, the initial pets. Ends its
    /// ban. Returns whether it exists.
    pub(crate) fn reset_key(&self, number: u32) -> bool {
        self.stores().reset_key(number);
        let is_there = self.change_key(number, |account| account.reset(&self.settings));
        self.changes.notify();
        is_there
    }

    fn keys_changed(&self, is_changed: bool) -> bool {
        if is_changed {
            self.changes.mark_boundary();
            self.changes.notify();
        }
        is_changed
    }

    /// Restores the initial state, except for the clock.
    pub(crate) fn reset(&self) -> Result<(), ChangeError> {
        self.replace(Snapshot::new(self.first.store.clone()))?;
        // The initial keys were valid at the start.
        let _ = self.reset_keys();
        self.reset_faults();
        self.changes.mark_boundary();
        self.forget();
        Ok(())
    }

    /// Restores pets and orders, the unused quotas of all keys, and ends their bans.
    pub(crate) fn restore(&self, snapshot: Snapshot) -> Result<(), ChangeError> {
        self.replace(snapshot)?;
        for (_, account) in self.accounts().sorted() {
            account.reset(&self.settings);
        }
        self.keys_changed(true);
        Ok(())
    }

    /// Locks the stores. A panicking handler must not disable the service. The stores stay
    /// consistent, because every change comes after all checks.
    pub(crate) fn stores(&self) -> MutexGuard<'_, Stores> {
        lock(&self.stores)
    }

    /// Locks the keys. Hold the lock only for a short time, because all other requests wait.
    pub(crate) fn accounts(&self) -> MutexGuard<'_, Accounts> {
        lock(&self.accounts)
    }
}

impl fmt::Debug for AppState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The keys are not shown.
        f.debug_struct("AppState")
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
