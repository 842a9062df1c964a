//! A snapshot of pets, orders and key usage, to restore in this process, or as JSON in another.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    ban::BanRecord,
    keys::{Account, Accounts},
    quota::{Period, Used},
    store::{ChangeError, Store},
};
use crate::{plan::Plan, text::present};

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
    store: Store,
    keys: Vec<KeyState>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyState {
    number: u32,
    plan: Plan,
    minute: Used,
    day: Used,
    record: BanRecord,
    /// `None` if the key has no store of its own.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    store: Option<Store>,
}

impl Snapshot {
    /// Takes a snapshot of the shared store, those of the isolated keys, and the accounts.
    pub(super) fn take(
        store: &Store,
        of_keys: &BTreeMap<u32, Store>,
        accounts: &mut Accounts,
    ) -> Self {
        let state = |(_, account): (&str, &mut Account)| {
            let number = account.label().number();
            KeyState {
                number,
                plan: account.label().plan(),
                minute: account.allowance.used(Period::Minute),
                day: account.allowance.used(Period::Day),
                record: account.record.clone(),
                store: of_keys.get(&number).cloned(),
            }
        };
        Self {
            version: 2,
            store: store.clone(),
            keys: accounts.sorted().into_iter().map(state).collect(),
        }
    }

    /// Returns the shared store, and those of the isolated keys.
    pub(super) fn stores(&self) -> Result<(Store, BTreeMap<u32, Store>), ChangeError> {
        if self.version != 2 {
            return Err(ChangeError::Snapshot("its version is not 2"));
        }
        let keys = self.keys.iter();
        let of_keys = keys.filter_map(|key| Some((key.number, key.store.clone()?)));
        Ok((self.store.clone(), of_keys.collect()))
    }

    /// Returns the accounts of the keys that still exist.
    pub(super) fn accounts(&self, accounts: &mut Accounts) -> Result<Vec<Account>, ChangeError> {
        let mut restored = Vec::new();
        for key in &self.keys {
            let Some(mut account) = accounts.by_number(key.number).cloned() else {
                continue;
            };
            account.set_plan(key.plan);
            let allowance = &mut account.allowance;
            let is_possible = allowance.set_used(Period::Minute, &key.minute)
                && allowance.set_used(Period::Day, &key.day);
            if !is_possible {
                return Err(ChangeError::Snapshot(
                    "its keys use another kind of window than this server, or are out of order",
                ));
            }
            if !key.record.is_possible() {
                return Err(ChangeError::Snapshot(
                    "its keys have times after the year 9999",
                ));
            }
            account.record = key.record.clone();
            restored.push(account);
        }
        Ok(restored)
    }
}
