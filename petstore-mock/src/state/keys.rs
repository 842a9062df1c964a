//! The keys that are known, what each has used, and whether it lets a request in.

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::settings::{DEFAULT_KEYS, Settings};
use crate::{
    ban::BanRecord,
    clock::instant,
    exchange::KeyLabel,
    plan::Plan,
    quota::{Allowance, Exhausted, Rate},
};

/// Why a key can't be added. The message does not repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The server has the key already.
    #[error("the server has this key already")]
    Taken,
    /// The key is empty, or holds a space or a character beyond ASCII, and so can't be sent in a
    /// header.
    #[error("a key is empty, or holds a space or a character beyond ASCII, which no key may")]
    Unsendable,
}

/// A key that is there from the start.
#[derive(Clone)]
pub(crate) struct FirstKey {
    pub(crate) key: String,
    pub(crate) plan: Plan,
    pub(crate) name: Option<String>,
}

/// A key of this length is no part of another text by chance.
const LONG_KEY: usize = 12;

/// The accounts, by key.
#[derive(Default)]
pub(crate) struct Accounts {
    by_key: HashMap<Box<str>, Account>,
    /// How many keys there ever were: a number is not given again.
    counted: u32,
}

impl Accounts {
    /// Adds a key, or one that no one has where none is given; returns it and its number.
    pub(super) fn add(
        &mut self,
        key: Option<&str>,
        plan: Plan,
        change: impl FnOnce(KeyLabel) -> KeyLabel,
        settings: &Settings,
    ) -> Result<(Box<str>, u32), KeyError> {
        let number = self.counted.saturating_add(1);
        let key = key.map_or_else(|| self.fresh(number), Box::from);
        if !is_sendable(&key) {
            return Err(KeyError::Unsendable);
        }
        if self.by_key.contains_key(&key) {
            return Err(KeyError::Taken);
        }
        self.counted = number;
        self.by_key.insert(key.clone(), Account::new(change(label(number, &key, plan)), settings));
        Ok((key, number))
    }

    /// Returns a key that is not there: `test-key-5`, or what comes after it.
    fn fresh(&self, number: u32) -> Box<str> {
        let mut key = format!("test-key-{number}");
        while self.by_key.contains_key(&*key) {
            key.push('a');
        }
        key.into()
    }

    pub(super) fn remove(&mut self, number: u32) -> bool {
        let before = self.by_key.len();
        self.by_key.retain(|_, account| account.label.number() != number);
        self.by_key.len() < before
    }

    /// Goes back to these keys, as they were when they were the first.
    pub(super) fn reset(&mut self, first: &[FirstKey], settings: &Settings) {
        let account = |(number, first): (u32, &FirstKey)| {
            let FirstKey { key, plan, name } = first;
            let label = label(number, key, *plan);
            let label = name.iter().fold(label, |label, name| label.named(name));
            (Box::from(&**key), Account::new(label, settings))
        };
        self.by_key = (1..).zip(first).map(account).collect();
    }

    pub(super) fn admit(
        &mut self,
        key: &str,
        now: Duration,
        settings: &Settings,
    ) -> Option<Admitted> {
        Some(self.by_key.get_mut(key)?.admit(now, settings))
    }

    pub(super) fn number(&self, key: &str) -> Option<u32> {
        self.by_key.get(key).map(|account| account.label.number())
    }

    pub(super) fn hold_key(&self, text: &str) -> bool {
        let holds = |key: &str| key.len() >= LONG_KEY && text.contains(key);
        self.by_key.contains_key(text)
            || text.len() > LONG_KEY && self.by_key.keys().any(|key| holds(key))
    }

    /// Returns an account by its number: that is for who administers, of whom there are few.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Account> {
        self.by_key.values_mut().find(|account| account.label.number() == number)
    }

    /// Returns the accounts, by their numbers, each with its key.
    pub(super) fn sorted(&mut self) -> Vec<(&str, &mut Account)> {
        let mut all: Vec<_> =
            self.by_key.iter_mut().map(|(key, account)| (&**key, account)).collect();
        all.sort_unstable_by_key(|(_, account)| account.label.number());
        all
    }

    pub(super) fn usage(&mut self, now: Duration) -> Vec<KeyUsage> {
        self.sorted().into_iter().map(|(_, account)| account.usage(now)).collect()
    }
}

fn label(number: u32, key: &str, plan: Plan) -> KeyLabel {
    KeyLabel::new(number, plan, key, is_public(key))
}

/// Whether a key is no secret: everyone knows the default ones.
pub(super) fn is_public(key: &str) -> bool {
    DEFAULT_KEYS.iter().any(|(public, _)| *public == key)
}

/// Whether a key can travel in a header.
pub(crate) fn is_sendable(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic())
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not their names, which are keys.
        f.debug_struct("Accounts").field("len", &self.by_key.len()).finish_non_exhaustive()
    }
}

/// Whether a request is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admitted,
    /// A quota is used up.
    Exhausted(Exhausted),
    /// The key is banned until then, counted from the Unix epoch.
    Banned(Duration),
}

/// What became of a request with a valid key.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    pub(crate) verdict: Verdict,
    /// What its rate headers say.
    pub(crate) rate: Rate,
    /// How its key may be shown.
    pub(crate) label: Arc<KeyLabel>,
}

/// What is kept of one key.
#[derive(Debug)]
pub(crate) struct Account {
    /// Number and plan of the key, and how it may be shown.
    pub(super) label: Arc<KeyLabel>,
    pub(super) allowance: Allowance,
    pub(super) record: BanRecord,
}

impl Account {
    pub(super) fn new(label: KeyLabel, settings: &Settings) -> Self {
        let plan = label.plan();
        let allowance = Allowance::new(plan.per_minute(), plan.per_day(), settings.window);
        Self { label: Arc::new(label), allowance, record: BanRecord::default() }
    }

    /// Lets a request in or refuses it.
    pub(super) fn admit(&mut self, now: Duration, settings: &Settings) -> Admitted {
        let Self { allowance, record, label } = self;
        let verdict = if let Some(until) = record.arrive(now, settings.ban) {
            Verdict::Banned(until)
        } else if let Err(exhausted) = allowance.admit(now) {
            record.told(exhausted.until);
            Verdict::Exhausted(exhausted)
        } else {
            Verdict::Admitted
        };
        let rate = allowance.rate(now, settings.rate_headers);
        Admitted { verdict, rate, label: Arc::clone(label) }
    }

    /// Gives the key another plan: what it used stays used, and a wait it was told is over.
    pub(super) fn set_plan(&mut self, plan: Plan) {
        self.label = Arc::new(self.label.with_plan(plan));
        self.allowance.set_limits(plan.per_minute(), plan.per_day());
        self.record.excuse();
    }

    pub(super) fn usage(&mut self, now: Duration) -> KeyUsage {
        let [minute, day] = self.allowance.usage(now).map(QuotaUsage::new);
        KeyUsage {
            number: self.label.number(),
            plan: self.label.plan(),
            label: KeyLabel::clone(&self.label),
            minute,
            day,
            banned_until: self.record.banned_until(now).map(instant),
            waits_until: self.record.waits_until(now).map(instant),
        }
    }
}

/// What is known of a key at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyUsage {
    /// The number of the key: the server counts its keys from 1, the first ones in their order.
    pub number: u32,
    /// Its plan.
    pub plan: Plan,
    /// How it may be shown.
    pub label: KeyLabel,
    /// The minute's quota.
    pub minute: QuotaUsage,
    /// The day's quota.
    pub day: QuotaUsage,
    /// Until when it is banned, if it is.
    pub banned_until: Option<SystemTime>,
    /// Until when it was told to wait by the `Retry-After` of a 429, if that lies ahead.
    pub waits_until: Option<SystemTime>,
}

/// What is used of a quota at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaUsage {
    /// How many requests it allows.
    pub limit: u32,
    /// How many count: more than the limit where that was lowered since.
    pub used: u32,
    /// How many are left.
    pub remaining: u32,
    /// When it resets, as `X-RateLimit-Reset` would say it.
    pub reset: SystemTime,
}

impl QuotaUsage {
    pub(super) fn new((used, rate): (u32, Rate)) -> Self {
        let reset = instant(Duration::from_secs(rate.reset));
        Self { limit: rate.limit, used, remaining: rate.remaining, reset }
    }
}
