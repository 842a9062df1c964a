//! A snapshot of pets, orders and key usage, to restore in this process, or as JSON in another.

use serde::{Deserialize, Serialize};

use super::{
    allowance::PerPeriod,
    ban::BanRecord,
    keys::{Account, Accounts},
    quota::Used,
    store::{ChangeError, Contents},
};
use crate::{clock, plan::Plan, text::present};

/// The version of the JSON. Other versions are refused.
const VERSION: u32 = 2;

/// A snapshot of a server's pets, orders and key usage. With isolated keys
/// ([`Builder::isolate_keys`](crate::Builder::isolate_keys)), it also contains their pets and orders.
///
/// It contains no keys: usage refers to the numbers of the keys. It can be serialized as JSON. It
/// does not contain the clock, which never goes back.
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
    version: u32,
    store: Contents,
    keys: Vec<KeyState>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyState {
    number: u32,
    plan: Plan,
    minute: Used,
    /// `None` if the plan has no quota per hour.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    hour: Option<Used>,
    day: Used,
    record: BanRecord,
    /// `None` if the key has no store of its own.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    store: Option<Contents>,
}

impl Snapshot {
    /// Takes a snapshot. `isolated` returns the store of an isolated key.
    pub(super) fn take(
        store: Contents,
        isolated: impl Fn(u32) -> Option<Contents>,
        accounts: &mut Accounts,
    ) -> Self {
        let state = |(_, account): (&str, &mut Account)| {
            let PerPeriod { minute, hour, day } = account.allowance.used();
            let (number, plan) = (account.label().number(), account.label().plan());
            KeyState {
                number,
                plan,
                minute,
                hour,
                day,
                record: account.record.clone(),
                store: isolated(number),
            }
        };
        let keys = accounts.sorted().into_iter().map(state).collect();
        Self {
            version: VERSION,
            store,
            keys,
        }
    }

    /// Returns the shared store.
    pub(super) fn store(&self) -> Result<&Contents, ChangeError> {
        match self.version {
            VERSION => Ok(&self.store),
            _ => Err(ChangeError::Snapshot("its version is not 2")),
        }
    }

    /// Returns the stores of the isolated keys.
    pub(super) fn isolated(&self) -> impl Iterator<Item = (u32, Contents)> {
        let keys = self.keys.iter();
        keys.filter_map(|key| Some((key.number, key.store.clone()?)))
    }

    /// Returns the accounts of the keys that still exist.
    pub(super) fn accounts(&self, accounts: &mut Accounts) -> Result<Vec<Account>, ChangeError> {
        let mut restored = Vec::new();
        for KeyState {
            number,
            plan,
            minute,
            hour,
            day,
            record,
            store: _,
        } in &self.keys
        {
            let used = PerPeriod {
                minute: minute.clone(),
                hour: hour.clone(),
                day: day.clone(),
            };
            let is_in_time = |(at, count): &(u64, u64)| at.max(count) <= &clock::END.as_secs();
            let is_possible = used.iter().flatten().all(is_in_time);
            if !(is_possible && record.is_possible()) {
                return Err(ChangeError::Snapshot("a key's record is out of order"));
            }
            let Some(mut account) = accounts.by_number(*number).cloned() else {
                continue;
            };
            account.set_plan(*plan);
            if !account.allowance.set_used(used) {
                let message =
                    "its keys use another kind of window than this server, or are out of order";
                return Err(ChangeError::Snapshot(message));
            }
            account.record = record.clone();
            restored.push(account);
        }
        Ok(restored)
    }
}
