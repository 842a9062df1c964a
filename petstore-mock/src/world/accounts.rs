//! The keys that are known, and their accounts.

use std::{collections::HashMap, fmt, time::Duration};

use super::{
    account::{Account, Admitted},
    usage::KeyUsage,
};
use crate::{
    exchange::KeyLabel,
    plan::Plan,
    settings::{DEFAULT_KEYS, Settings},
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
