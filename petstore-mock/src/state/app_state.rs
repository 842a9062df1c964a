//! The whole service without its HTTP side: the clock, the keys and the store, each behind one short lock,
//! the faults and the journal.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::{runtime::Handle, sync::broadcast};

use super::{
    block_on::wait,
    keys::{Accounts, Admitted, FirstKey, KeyError, KeyUsage, is_public},
    persistence::Data,
    settings::Settings,
    snapshot::Snapshot,
    store::{Applied, Change, ChangeError, Store},
};
use crate::{
    changes::{Changes, What},
    clock::Clock,
    exchange::KeyLabel,
    fault::{Fault, Faults},
    journal::Journal,
    model::NewPet,
    plan::Plan,
    quota::{Quota, Rate},
};

/// Frees a store that was replaced. To free a million pets takes longer than any request should wait.
fn free(store: Option<Store>) {
    let large = store.filter(Store::is_large);
    if let (Some(large), Ok(runtime)) = (large, Handle::try_current()) {
        runtime.spawn_blocking(move || drop(large));
    }
}

/// The whole service, without its HTTP side.
pub(crate) struct AppState {
    clock: Clock,
    settings: Settings,
    journal: Arc<Journal>,
    changes: Changes,
    faults: Faults,
    accounts: Mutex<Accounts>,
    /// Shared with who writes it to a file.
    store: Arc<Mutex<Store>>,
    #[cfg_attr(not(feature = "data"), expect(dead_code, reason = "there is none"))]
    data: Option<Data>,
    /// What `reset` goes back to.
    first: First,
}

/// How it all began.
struct First {
    keys: Vec<FirstKey>,
    store: Store,
    faults: Vec<Fault>,
}

impl AppState {
    /// Makes a app; the numbers of the keys are their order.
    ///
    /// # Errors
    ///
    /// Where a key is there twice or can't be sent.
    pub(crate) fn new(
        clock: Clock,
        settings: Settings,
        keys: impl IntoIterator<Item = FirstKey>,
        store: Store,
    ) -> Result<Self, KeyError> {
        let first =
            First { keys: keys.into_iter().collect(), store: store.clone(), faults: vec![] };
        let changes = Changes::default();
        let app = Self {
            journal: Arc::new(Journal::new(
                settings.journal,
                settings.severities,
                clock.clone(),
                changes.clone(),
            )),
            clock,
            faults: Faults::new(changes.clone()),
            changes,
            settings,
            accounts: Mutex::default(),
            store: Arc::new(Mutex::new(store)),
            data: None,
            first,
        };
        for FirstKey { key, plan, name } in &app.first.keys {
            let named = |label| name.iter().fold(label, |label: KeyLabel, name| label.named(name));
            app.insert_key(Some(key), *plan, named)?;
        }
        Ok(app)
    }

    /// Keeps the store in a file: what it holds takes the place of what there is.
    #[cfg(feature = "data")]
    pub(crate) async fn with_data(
        mut self,
        path: std::path::PathBuf,
    ) -> Result<Self, super::DataError> {
        let (data, store) = Data::open(path, self.first.store.clone()).await?;
        (self.data, self.store) = (Some(data), store);
        Ok(self)
    }

    /// Sets faults that are there from the start.
    pub(crate) fn with_faults(mut self, faults: Vec<Fault>) -> Self {
        self.first.faults = faults;
        self.set_first_faults();
        self
    }

    fn set_first_faults(&self) {
        for fault in self.first.faults.iter().cloned() {
            self.faults.set(fault).detach();
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns what tells of all that is changed but by requests.
    pub(crate) fn listen(&self) -> broadcast::Receiver<What> {
        self.changes.listen()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Lets a request of `key` in or refuses it; returns nothing if no such key exists.
    pub(crate) fn admit(&self, key: &str, now: Duration) -> Option<Admitted> {
        self.accounts().admit(key, now, &self.settings)
    }

    /// Returns whether this is a valid key.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.number(key).is_some()
    }

    /// Returns whether a text is a valid key, or holds one that is too long to be there by chance.
    pub(crate) fn holds_key(&self, text: &str) -> bool {
        self.accounts().hold_key(text)
    }

    /// Returns what the rate headers say to who has no valid key: Free's minute, untouched.
    pub(crate) fn anonymous_rate(&self, now: Duration) -> Rate {
        Quota::new(Plan::Free.per_minute(), 60, self.settings.window).rate(now)
    }

    /// Looks at the store, briefly: everyone else waits meanwhile.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.store())
    }

    /// Adds a pet and returns its id and its JSON.
    pub(crate) async fn add(&self, mut pet: NewPet) -> Result<(i64, Bytes), ChangeError> {
        pet.status = pet.status.or(self.settings.default_status);
        let id = self.change(Change::Add { id: None, pet }).await?.unwrap_or_default();
        let json = self.pet_json(id);
        // Only a test could remove it in between.
        json.map(|json| (id, json)).ok_or(ChangeError::NoSuchPet(id))
    }

    /// Returns the JSON of a pet.
    pub(crate) fn pet_json(&self, id: i64) -> Option<Bytes> {
        self.store().get(id).map(|pet| Bytes::copy_from_slice(pet.json().as_bytes()))
    }

    /// Returns whether changes can be made: not while the data file can't be written.
    pub(crate) async fn is_ready(&self) -> bool {
        #[cfg(feature = "data")]
        if let Some(data) = &self.data {
            return data.is_ready().await;
        }
        true
    }

    /// Makes a change of the store; it is there when this returns. Returns the id of the pet it is
    /// about.
    pub(crate) async fn change(&self, change: Change) -> Result<Option<i64>, ChangeError> {
        #[cfg(feature = "data")]
        if let Some(data) = &self.data {
            return data.change(change).await;
        }
        let Applied { id, old } = self.store().change(change)?;
        free(old);
        Ok(id)
    }

    /// Stops keeping the store in a file, if it is kept there; from now on it can't be changed.
    pub(crate) fn close(&self) {
        #[cfg(feature = "data")]
        if let Some(data) = &self.data {
            data.close();
        }
    }

    /// Makes a change that no request has asked for: waits for it on this thread, and tells of it.
    pub(crate) fn change_now(&self, change: Change) -> Result<Option<i64>, ChangeError> {
        let changed = wait(self.change(change))?;
        self.changes.tell(What::Pets);
        Ok(changed)
    }

    /// Puts another store in the place of what there is.
    pub(crate) async fn replace(&self, store: Store) -> Result<(), ChangeError> {
        self.change(Change::Replace(store)).await?;
        self.changes.tell(What::Pets);
        Ok(())
    }

    /// Forgets the exchanges.
    pub(crate) fn forget(&self) {
        self.journal.clear();
        self.changes.tell(What::Journal);
    }

    /// Returns what each key has used, by their numbers.
    pub(crate) fn usage(&self) -> Vec<KeyUsage> {
        let now = self.clock.since_epoch();
        self.accounts().usage(now)
    }

    /// Returns what a key has used, if there is one of this number.
    pub(crate) fn usage_of(&self, number: u32) -> Option<KeyUsage> {
        let now = self.clock.since_epoch();
        self.accounts().get_mut(number).map(|account| account.usage(now))
    }

    /// Returns the number of a key.
    pub(crate) fn number(&self, key: &str) -> Option<u32> {
        self.accounts().number(key)
    }

    /// Returns all keys with their numbers, by these.
    pub(crate) fn keys(&self) -> Vec<(Box<str>, u32)> {
        let mut accounts = self.accounts();
        let all = accounts.sorted().into_iter();
        all.map(|(key, account)| (Box::from(key), account.label.number())).collect()
    }

    /// Adds a key for a test, or one that no one has where none is given; returns it and its number.
    pub(crate) fn add_key(
        &self,
        key: Option<&str>,
        plan: Plan,
    ) -> Result<(Box<str>, u32), KeyError> {
        self.insert_key(key, plan, KeyLabel::made_by_test)
    }

    fn insert_key(
        &self,
        key: Option<&str>,
        plan: Plan,
        label: impl FnOnce(KeyLabel) -> KeyLabel,
    ) -> Result<(Box<str>, u32), KeyError> {
        let mut accounts = self.accounts();
        let (key, number) = accounts.add(key, plan, label, &self.settings)?;
        if let Some(account) = accounts.get_mut(number) {
            self.journal.know(&key, &account.label, is_public(&key));
        }
        self.changes.tell(What::Keys);
        Ok((key, number))
    }

    /// Removes a key; returns whether it was there.
    pub(crate) fn remove_key(&self, number: u32) -> bool {
        self.of_key(self.accounts().remove(number))
    }

    /// Gives a key another plan; returns whether it was there.
    pub(crate) fn set_plan(&self, number: u32, plan: Plan) -> bool {
        self.of_key(self.accounts().get_mut(number).map(|it| it.set_plan(plan)).is_some())
    }

    /// Bans a key for so long from now; returns whether it was there.
    pub(crate) fn ban(&self, number: u32, length: Duration) -> bool {
        let until = self.clock.since_epoch().saturating_add(length);
        self.of_key(self.accounts().get_mut(number).map(|it| it.record.ban(until)).is_some())
    }

    /// Ends the ban of a key, and forgets what led to it; returns whether the key was there.
    pub(crate) fn unban(&self, number: u32) -> bool {
        self.of_key(self.accounts().get_mut(number).map(|it| it.record.pardon()).is_some())
    }

    /// Tells that a key was changed, if it was there.
    fn of_key(&self, was_there: bool) -> bool {
        if was_there {
            self.changes.mark_boundary();
            self.changes.tell(What::Keys);
        }
        was_there
    }

    /// Goes back to how it all began, but for the clock.
    pub(crate) async fn reset(&self) -> Result<(), ChangeError> {
        self.replace(self.first.store.clone()).await?;
        {
            let mut accounts = self.accounts();
            accounts.reset(&self.first.keys, &self.settings);
            for (key, account) in accounts.sorted() {
                self.journal.know(key, &account.label, is_public(key));
            }
        }
        self.changes.tell(What::Keys);
        self.faults.clear();
        self.set_first_faults();
        self.changes.mark_boundary();
        self.forget();
        Ok(())
    }

    /// Does as [`AppState::reset`], and waits for it on this thread.
    pub(crate) fn reset_now(&self) -> Result<(), ChangeError> {
        wait(self.reset())
    }

    /// Returns what there is, to be put back later.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut accounts = self.accounts();
        // A copy of the store shares its pets, so that nobody waits for it.
        let store = self.store().clone();
        Snapshot::take(store, &mut accounts)
    }

    /// Puts back what there was, all of it or nothing. Keys that have come since stay as they are.
    pub(crate) async fn restore(&self, snapshot: &Snapshot) -> Result<(), ChangeError> {
        let read = snapshot.clone();
        let store = if let Ok(runtime) = Handle::try_current()
            && snapshot.is_large()
        {
            let read = runtime.spawn_blocking(move || read.store()).await;
            read.unwrap_or(Err(ChangeError::Snapshot("it can't be read")))?
        } else {
            read.store()?
        };
        let usage = snapshot.usage(&mut self.accounts())?;
        self.replace(store).await?;
        let mut accounts = self.accounts();
        usage.into_iter().for_each(|key| key.put_back(&mut accounts));
        drop(accounts);
        self.changes.mark_boundary();
        self.changes.tell(What::Keys);
        Ok(())
    }

    /// Does as [`AppState::restore`], and waits for it on this thread.
    pub(crate) fn restore_now(&self, snapshot: &Snapshot) -> Result<(), ChangeError> {
        wait(self.restore(snapshot))
    }

    /// A handler that panicked must not take the whole service along: what it left is whole, since
    /// every change is made after all checks.
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for AppState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the accounts: their names are keys.
        f.debug_struct("AppState")
            .field("clock", &self.clock)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
