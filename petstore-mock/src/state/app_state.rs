//! The service without HTTP: the clock, the keys, the store, the faults and the journal. The keys
//! and the store each have a lock, which is only held for a short time.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::runtime::Handle;

use super::{
    key_stores::KeyStores,
    keys::{Account, Accounts, Admitted, InitialKey, KeyError, KeyUsage, is_public},
    persistence::{DataError, DataFile},
    quota::{Period, Quota},
    settings::Settings,
    snapshot::Snapshot,
    store::{Change, ChangeError, Store},
};
use crate::{
    changes::{ChangeKind, Changes},
    clock::Clock,
    exchange::{KeyOrigin, Rate},
    fault::{Fault, Faults},
    journal::Journal,
    plan::Plan,
    report::Report,
};

/// Freeing more pets than this at once would delay requests noticeably.
const MAX_FREED_AT_ONCE: usize = 10_000;

/// The maximum number of keys of the real service that the proxy remembers.
#[cfg(feature = "proxy")]
const MAX_KEYS_OF_SERVICE: usize = 1_000;

/// The service without HTTP.
pub(crate) struct AppState {
    clock: Clock,
    settings: Settings,
    journal: Arc<Journal>,
    /// Changes by tests and the administration.
    changes: Changes,
    faults: Faults,
    /// What the real service did.
    #[cfg(feature = "proxy")]
    service: crate::proxy::ServiceObserver,
    accounts: Mutex<Accounts>,
    /// Shared with the thread that writes the data file.
    store: Arc<Mutex<Store>>,
    data: Option<DataFile>,
    /// The stores of isolated keys.
    key_stores: KeyStores,
    first: InitialState,
}

/// The initial state, for a reset.
struct InitialState {
    keys: Vec<InitialKey>,
    store: Store,
    faults: Vec<Fault>,
}

impl AppState {
    /// Creates the state. Keys are numbered in their order.
    pub(crate) fn new(
        clock: Clock,
        settings: Settings,
        keys: Vec<InitialKey>,
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
            #[cfg(feature = "proxy")]
            service: crate::proxy::ServiceObserver::default(),
            accounts: Mutex::default(),
            store: Arc::new(Mutex::new(store.clone())),
            data: None,
            key_stores: KeyStores::default(),
            first: InitialState {
                keys,
                store,
                faults,
            },
        };
        app.reset_keys()?;
        app.reset_faults();
        Ok(app)
    }

    /// Keeps the store in a file. The store of an existing file replaces the initial one.
    pub(crate) async fn with_data(mut self, path: PathBuf) -> Result<Self, DataError> {
        let (data, store) = DataFile::open(path, self.first.store.clone()).await?;
        (self.data, self.store) = (Some(data), store);
        Ok(self)
    }

    fn reset_keys(&self) -> Result<(), KeyError> {
        let mut accounts = self.accounts();
        accounts.reset(&self.first.keys, &self.settings)?;
        for (key, account) in accounts.sorted() {
            self.journal.know(key, account.label(), is_public(key));
        }
        self.changes.notify(ChangeKind::Keys);
        Ok(())
    }

    fn reset_faults(&self) {
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

    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns what the real service did.
    #[cfg(feature = "proxy")]
    pub(crate) fn service(&self) -> &crate::proxy::ServiceObserver {
        &self.service
    }

    /// Returns the compliance report.
    pub(crate) fn report(&self) -> Report {
        self.journal.report()
    }

    /// Clears the report.
    pub(crate) fn forget_report(&self) {
        self.journal.forget_report();
        #[cfg(feature = "proxy")]
        self.service.forget();
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
        match self.isolated(key) {
            Some(key) => {
                let first = || self.store().clone();
                self.key_stores.with(key, first, |store| read(store))
            }
            None => read(&self.store()),
        }
    }

    /// Returns the key, if it has its own store.
    fn isolated(&self, key: Option<u32>) -> Option<u32> {
        if self.settings.isolate_keys {
            key
        } else {
            None
        }
    }

    /// Returns the JSON of a pet.
    pub(crate) fn pet_json(&self, key: Option<u32>, id: i64) -> Option<Bytes> {
        self.read(key, |store| {
            store
                .pets()
                .get(id)
                .map(|pet| Bytes::copy_from_slice(pet.json().as_bytes()))
        })
    }

    /// Returns whether changes are possible. They are not while the data file cannot be written.
    pub(crate) async fn is_ready(&self) -> bool {
        match &self.data {
            Some(data) => data.is_ready().await,
            None => true,
        }
    }

    /// Changes the data file, and then the store. Returns the id of an added pet.
    pub(crate) async fn change(
        &self,
        key: Option<u32>,
        mut change: Change,
    ) -> Result<i64, ChangeError> {
        if let Some(key) = self.isolated(key) {
            let first = || self.store().clone();
            let change = |store: &mut Store| store.change(&mut change);
            return self.key_stores.with(key, first, change);
        }
        match &self.data {
            Some(data) => data.change(change).await,
            None => self.store().change(&mut change),
        }
    }

    /// Makes a change for a test or the administration. If it replaces the store, it also replaces
    /// the stores of all isolated keys.
    pub(crate) async fn arrange(
        &self,
        key: Option<u32>,
        change: Change,
    ) -> Result<i64, ChangeError> {
        let is_replaced = matches!(change, Change::Replace(_));
        // This copy keeps the old pets alive, so that they are freed here, where no request waits.
        let old = self.store().clone();
        let changed = self.change(key, change).await;
        if is_replaced && changed.is_ok() {
            self.key_stores.clear();
        }
        if old.pets().len() > MAX_FREED_AT_ONCE
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn_blocking(move || drop(old));
        }
        self.changes.notify(ChangeKind::Pets);
        changed
    }

    /// Closes the data file, if any. The store cannot be changed afterwards.
    pub(crate) fn close(&self) {
        if let Some(data) = &self.data {
            data.close();
        }
    }

    /// Clears the journal.
    pub(crate) fn forget(&self) {
        self.journal.clear();
        self.changes.notify(ChangeKind::Journal);
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

    /// Adds a key for a test. With `None`, creates a new key. Returns the key and its number.
    pub(crate) fn add_key(
        &self,
        key: Option<&str>,
        name: Option<&str>,
        plan: Plan,
    ) -> Result<(Box<str>, u32), KeyError> {
        self.add_key_from(KeyOrigin::Test, key, name, plan)
    }

    fn add_key_from(
        &self,
        origin: KeyOrigin,
        key: Option<&str>,
        name: Option<&str>,
        plan: Plan,
    ) -> Result<(Box<str>, u32), KeyError> {
        let mut accounts = self.accounts();
        let (key, number) = accounts.add(key, name, plan, origin, &self.settings)?;
        if let Some(account) = accounts.by_number(number) {
            self.journal.know(&key, account.label(), is_public(&key));
        }
        self.changes.notify(ChangeKind::Keys);
        Ok((key, number))
    }

    /// Returns the label of a key of the real service. The mock does not limit such a key. `None`
    /// if there are too many keys.
    #[cfg(feature = "proxy")]
    pub(crate) fn label_of(&self, key: &str) -> Option<Arc<crate::exchange::KeyLabel>> {
        let label = |accounts: &mut Accounts| {
            let account = accounts.get(key)?;
            Some(Arc::clone(account.label()))
        };
        let known = label(&mut self.accounts());
        if known.is_some() {
            return known;
        }
        if self.accounts().sorted().len() < MAX_KEYS_OF_SERVICE {
            // Another request may have added it.
            let plan = Plan::default_enterprise();
            let _ = self.add_key_from(KeyOrigin::Service, Some(key), None, plan);
        }
        label(&mut self.accounts())
    }

    /// Removes a key. Returns whether it existed.
    pub(crate) fn remove_key(&self, number: u32) -> bool {
        let was_there = self.accounts().remove(number);
        self.key_stores.remove(number);
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
        let mut accounts = self.accounts();
        let account = accounts.by_number(number);
        let is_there = account.map(|it| it.set_senders(senders)).is_some();
        drop(accounts);
        if is_there {
            self.changes.notify(ChangeKind::Keys);
        }
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
        self.key_stores.remove(number);
        let is_there = self.change_key(number, |account| account.reset(&self.settings));
        self.changes.notify(ChangeKind::Pets);
        is_there
    }

    fn keys_changed(&self, is_changed: bool) -> bool {
        if is_changed {
            self.changes.mark_boundary();
            self.changes.notify(ChangeKind::Keys);
        }
        is_changed
    }

    /// Restores the initial state, except for the clock.
    pub(crate) async fn reset(&self) -> Result<(), ChangeError> {
        self.arrange(None, Change::Replace(self.first.store.clone()))
            .await?;
        // The initial keys were valid at the start.
        let _ = self.reset_keys();
        self.reset_faults();
        self.changes.mark_boundary();
        self.forget();
        Ok(())
    }

    /// Returns a snapshot of pets, orders and usage.
    pub(crate) fn snapshot(&self) -> Snapshot {
        // Copying the store is fast, because the copy shares the pets.
        let store = self.store().clone();
        Snapshot::take(store, &mut self.accounts())
    }

    /// Restores a snapshot completely, or not at all. Does not change keys that it does not
    /// contain.
    pub(crate) async fn restore(&self, snapshot: &Snapshot) -> Result<(), ChangeError> {
        let store = snapshot.store()?;
        let restored = snapshot.accounts(&mut self.accounts())?;
        self.arrange(None, Change::Replace(store)).await?;
        for account in restored {
            self.change_key(account.label().number(), |current| *current = account);
        }
        Ok(())
    }

    /// Locks the store. A panicking handler must not disable the service. The store stays
    /// consistent, because every change comes after all checks.
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the keys. Hold the lock only for a short time, because all other requests wait.
    pub(crate) fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
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
