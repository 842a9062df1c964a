//! What one request touches: the clock, the accounts of the keys, and the store, behind one short
//! lock. It knows nothing of HTTP; what its verdicts mean there is left to `extract` and `error`.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    ban::Record,
    clock::Clock,
    exchange::KeyLabel,
    fault::Faults,
    journal::Journal,
    model::{NewPet, Pet},
    plan::Plan,
    quota::{Allowance, Exhausted, Quota, Rate},
    settings::{DEFAULT_KEYS, Settings},
    store::{OutOfIds, Store},
};

/// Whether a request is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admitted,
    /// A quota is used up.
    Exhausted(Exhausted),
    /// The key is banned until then, counted from the Unix epoch.
    Banned(Duration),
}

/// The whole service, without its HTTP face.
pub(crate) struct World {
    clock: Clock,
    settings: Settings,
    journal: Arc<Journal>,
    faults: Faults,
    state: Mutex<State>,
}

struct State {
    accounts: HashMap<Box<str>, Account>,
    store: Store,
}

/// What is kept of one key.
struct Account {
    label: Arc<KeyLabel>,
    allowance: Allowance,
    record: Record,
}

impl World {
    pub(crate) fn new(
        clock: Clock,
        settings: Settings,
        keys: impl IntoIterator<Item = (String, Plan)>,
        store: Store,
    ) -> Self {
        let journal = Journal::new(settings.journal);
        let account = |(number, (key, plan)): (u32, (String, Plan))| {
            let is_public = DEFAULT_KEYS.iter().any(|(public, _)| *public == key);
            let label = Arc::new(KeyLabel::new(number, plan, &key, is_public));
            journal.know(&key, &label, is_public);
            let allowance = Allowance::new(plan.per_minute(), plan.per_day(), settings.window);
            let record = Record::default();
            (key.into_boxed_str(), Account { label, allowance, record })
        };
        let accounts = (1..).zip(keys).map(account).collect();
        let journal = Arc::new(journal);
        let (faults, state) = (Faults::default(), Mutex::new(State { accounts, store }));
        Self { clock, settings, journal, faults, state }
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

    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Lets a request of `key` in or refuses it, and returns what its rate headers say, and how the
    /// key may be shown; nothing if no such key exists.
    pub(crate) fn admit(&self, key: &str, now: Duration) -> Option<(Verdict, Rate, Arc<KeyLabel>)> {
        let mut state = self.lock();
        let Account { label, allowance, record } = state.accounts.get_mut(key)?;
        let verdict = if let Some(until) = record.arrive(now, self.settings.ban) {
            Verdict::Banned(until)
        } else if let Err(exhausted) = allowance.admit(now) {
            record.told(exhausted.until);
            Verdict::Exhausted(exhausted)
        } else {
            Verdict::Admitted
        };
        let rate = allowance.rate(now, self.settings.rate_headers);
        Some((verdict, rate, Arc::clone(label)))
    }

    /// Returns whether this is a valid key.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.lock().accounts.contains_key(key)
    }

    /// Returns what the rate headers say to who has no valid key: Free's minute, untouched.
    pub(crate) fn rate_of_strangers(&self, now: Duration) -> Rate {
        Quota::new(Plan::Free.per_minute(), 60, self.settings.window).rate(now)
    }

    /// Looks at the store, briefly: everyone else waits meanwhile.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.lock().store)
    }

    /// Adds a pet and returns what `look` sees of it.
    pub(crate) fn add<T>(
        &self,
        mut pet: NewPet,
        look: impl FnOnce(&Pet) -> T,
    ) -> Result<T, OutOfIds> {
        pet.status = pet.status.or(self.settings.default_status);
        self.lock().store.add(pet).map(look)
    }

    /// A handler that panicked must not take the whole service along: what it left is whole, since
    /// every change is a single push or count.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the accounts: their names are keys.
        f.debug_struct("World")
            .field("clock", &self.clock)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
