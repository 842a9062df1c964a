//! The keys with their quotas and bans, and the admission of requests.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{
    ban::{BanPolicy, BanRecord},
    quota::{Allowance, Period, QuotaUsage},
    settings::{DEFAULT_KEYS, Settings},
};
use crate::{
    clock::{instant, serialize_seconds},
    exchange::{KeyLabel, Rate},
    plan::Plan,
    text::is_word,
};

/// The error of adding a key. The message does not contain the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The server already has the key.
    #[error("the server has this key already")]
    Taken,
    /// The key is empty, or contains a space or a non-ASCII character, so that it is invalid in a
    /// header.
    #[error("a key is empty, or contains a space or a non-ASCII character")]
    Unsendable,
    /// The name of the key would look like another label, or spoil a report.
    #[error(
        "the name of a key must be 1 to 100 characters, without control characters or a leading `…` \
         or `#`"
    )]
    Name,
    /// Another key has the name.
    #[error("the server has another key with this name: give each key its own")]
    NameTaken,
}

/// A key to add.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKey {
    /// `None` for a key that is created.
    key: Option<String>,
    name: Option<String>,
    plan: Plan,
    /// `None` for the number of all keys.
    #[serde(default, deserialize_with = "some_senders")]
    senders: Option<NonZeroU32>,
}

impl NewKey {
    pub(crate) fn new(key: Option<String>, plan: Plan) -> Self {
        Self {
            key,
            plan,
            name: None,
            senders: None,
        }
    }

    /// Gives the key a name for reports and the journal.
    pub(crate) fn with_name(self, name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            ..self
        }
    }

    /// Declares its number of senders.
    #[cfg(feature = "cli")]
    pub(crate) fn with_senders(self, senders: NonZeroU32) -> Self {
        Self {
            senders: Some(senders),
            ..self
        }
    }

    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }
}

/// Reads a number of senders.
pub(crate) fn some_senders<'de, D>(from: D) -> Result<Option<NonZeroU32>, D::Error>
where
    D: Deserializer<'de>,
{
    let senders = NonZeroU32::new(u32::deserialize(from)?);
    senders
        .map(Some)
        .ok_or_else(|| D::Error::custom("a key has at least 1 sender"))
}

/// The accounts, by key.
#[derive(Default)]
pub(crate) struct Accounts {
    by_key: BTreeMap<Box<str>, Account>,
    /// The number of keys ever added. Numbers are not reused.
    counted: u32,
}

impl Accounts {
    /// Replaces all keys with the initial ones, numbered in their order.
    pub(super) fn reset(&mut self, first: &[NewKey], settings: &Settings) -> Result<(), KeyError> {
        self.by_key.clear();
        for (number, key) in (1..).zip(first) {
            self.insert(number, key, settings)?;
        }
        Ok(())
    }

    /// Adds a key. Returns it and its number.
    pub(super) fn add(
        &mut self,
        key: &NewKey,
        settings: &Settings,
    ) -> Result<(String, u32), KeyError> {
        let number = self.counted.saturating_add(1);
        Ok((self.insert(number, key, settings)?, number))
    }

    fn insert(
        &mut self,
        number: u32,
        new: &NewKey,
        settings: &Settings,
    ) -> Result<String, KeyError> {
        let NewKey {
            key,
            plan,
            name,
            senders,
        } = new;
        let key = key.clone().unwrap_or_else(|| self.fresh(number));
        if !is_sendable(&key) {
            return Err(KeyError::Unsendable);
        }
        if name.as_deref().is_some_and(|name| !is_name(name)) {
            return Err(KeyError::Name);
        }
        if self.by_key.contains_key(&*key) {
            return Err(KeyError::Taken);
        }
        let public = is_public(&key).then_some(&*key);
        let name = name.as_deref().or(public);
        let has_name = |other: &Account| name.is_some_and(|name| other.label.name() == name);
        if self.by_key.values().any(has_name) {
            return Err(KeyError::NameTaken);
        }
        let senders = senders.map_or(settings.senders, NonZeroU32::get);
        let label = KeyLabel::new(number, *plan, &key, name).with_senders(senders);
        let account = Account::new(label, settings);
        self.by_key.insert(key.as_str().into(), account);
        self.counted = self.counted.max(number);
        Ok(key)
    }

    /// Returns an unused key: `test-key-5`, or if that is used, a longer one that starts with it.
    fn fresh(&self, number: u32) -> String {
        let mut key = format!("test-key-{number}");
        while self.by_key.contains_key(&*key) {
            key.push('a');
        }
        key
    }

    pub(super) fn remove(&mut self, number: u32) -> bool {
        let before = self.by_key.len();
        self.by_key
            .retain(|_, account| account.label.number() != number);
        self.by_key.len() < before
    }

    pub(crate) fn get(&mut self, key: &str) -> Option<&mut Account> {
        self.by_key.get_mut(key)
    }

    /// Whether a text is a key of at least 8 characters, or contains one of at least 12 as a word. Shorter
    /// ones occur by chance.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let is_long = |key: &str| key.len() >= 12;
        let contains = |key: &str| {
            let mut places = text.match_indices(key);
            places.any(|(at, _)| is_word(text.as_bytes(), at..at + key.len()))
        };
        text.len() >= 8 && self.by_key.contains_key(text)
            || is_long(text) && self.by_key.keys().any(|key| is_long(key) && contains(key))
    }

    /// Returns an account by its number, for the administration.
    pub(crate) fn by_number(&mut self, number: u32) -> Option<&mut Account> {
        self.by_key
            .values_mut()
            .find(|account| account.label.number() == number)
    }

    /// Returns the accounts with their keys, by number.
    pub(crate) fn sorted(&mut self) -> Vec<(&str, &mut Account)> {
        let all = self.by_key.iter_mut();
        let mut all: Vec<_> = all.map(|(key, account)| (&**key, account)).collect();
        all.sort_unstable_by_key(|(_, account)| account.label.number());
        all
    }
}

/// Whether a key is public: the default keys are documented.
pub(super) fn is_public(key: &str) -> bool {
    DEFAULT_KEYS.iter().any(|(public, _)| *public == key)
}

/// Whether a key can have this name. Others would look like another label, or spoil a report.
fn is_name(name: &str) -> bool {
    (1..=100).contains(&name.chars().count())
        && !name.starts_with(['…', '#'])
        && !name.chars().any(char::is_control)
}

/// Whether a key is valid in a header.
pub(crate) fn is_sendable(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The admission of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admitted,
    /// A quota is exhausted.
    Exhausted(Period, Rate),
    /// The key is banned until this time, since the Unix epoch.
    Banned(Duration),
}

/// The decision on a request with a valid key.
pub(crate) struct Admitted {
    pub(crate) verdict: Verdict,
    /// The number of early requests of the key, including this one, if the request is early.
    pub(crate) strikes: u32,
    /// The values of its rate headers.
    pub(crate) rate: Rate,
    pub(crate) label: Arc<KeyLabel>,
}

/// The quotas and the ban of one key.
pub(crate) struct Account {
    label: Arc<KeyLabel>,
    allowance: Allowance,
    pub(crate) record: BanRecord,
}

impl Account {
    fn new(label: KeyLabel, settings: &Settings) -> Self {
        Self {
            allowance: Allowance::new(label.plan(), settings.window),
            label: Arc::new(label),
            record: BanRecord::default(),
        }
    }

    pub(crate) fn label(&self) -> &Arc<KeyLabel> {
        &self.label
    }

    /// Admits a request or refuses it.
    pub(super) fn admit(&mut self, now: Duration, settings: &Settings) -> Admitted {
        let ban = BanPolicy {
            after: settings.ban.after.saturating_mul(self.label.senders()),
            ..settings.ban
        };
        let strikes = self.record.arrive(now, ban);
        let verdict = if let Some(until) = self.record.banned_until(now) {
            Verdict::Banned(until)
        } else if let Err((period, rate)) = self.allowance.admit(now) {
            self.record.told(rate.reset);
            Verdict::Exhausted(period, rate)
        } else {
            Verdict::Admitted
        };
        Admitted {
            verdict,
            strikes,
            rate: self.allowance.rate(now, settings.rate_headers),
            label: Arc::clone(&self.label),
        }
    }

    /// Restores the unused quotas, and ends the ban. The plan stays.
    pub(super) fn reset(&mut self, settings: &Settings) {
        *self = Self::new(KeyLabel::clone(&self.label), settings);
    }

    /// Changes the plan. Used requests stay counted, and the current `Retry-After` ends.
    pub(crate) fn set_plan(&mut self, plan: Plan) {
        self.label = Arc::new(self.label.with_plan(plan));
        self.allowance.set_plan(plan);
        self.record.excuse();
    }

    /// Declares how many of its requests may be under way at once.
    pub(super) fn set_senders(&mut self, senders: u32) {
        self.label = Arc::new(self.label.with_senders(senders));
    }

    pub(crate) fn usage(&mut self, now: Duration) -> KeyUsage {
        let [minute, day] = self.allowance.usage(now);
        KeyUsage {
            minute,
            day,
            number: self.label.number(),
            plan: self.label.plan(),
            senders: self.label.senders(),
            label: KeyLabel::clone(&self.label),
            banned_until: self.record.banned_until(now).map(instant),
            waits_until: self.record.waits_until(now).map(instant),
        }
    }
}

/// The quotas and the ban of a key at an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KeyUsage {
    /// The number of the key, from 1.
    #[serde(rename = "id")]
    pub number: u32,
    /// The label of the key.
    pub label: KeyLabel,
    /// The plan.
    pub plan: Plan,
    /// The most requests that may be under way at once, as declared for the compliance report.
    pub senders: u32,
    /// The quota per minute.
    pub minute: QuotaUsage,
    /// The quota per day.
    pub day: QuotaUsage,
    /// The end of the ban, if the key is banned.
    #[serde(serialize_with = "serialize_seconds")]
    pub banned_until: Option<SystemTime>,
    /// The end of the last `Retry-After` of a 429, if it is in the future.
    #[serde(rename = "retryAfterUntil", serialize_with = "serialize_seconds")]
    pub waits_until: Option<SystemTime>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_12_characters_is_found_as_a_word_of_longer_texts() {
        let settings = Settings::default();
        let mut accounts = Accounts::default();
        for key in ["abcdefghijkl", "bcdefghijkm"] {
            let key = NewKey::new(Some(key.to_owned()), Plan::Free);
            accounts.add(&key, &settings).unwrap();
        }
        for (text, is_found) in [
            ("abcdefghijkl", true),
            ("key:abcdefghijkl", true),
            ("-abcdefghijkl abcdefghijkl", true),
            ("-abcdefghijkl", false),
            ("abcdefghijkls", false),
            ("bcdefghijkm", true),
            (":bcdefghijkm", false),
        ] {
            assert_eq!(accounts.is_in(text), is_found, "{text}");
        }
    }
}
