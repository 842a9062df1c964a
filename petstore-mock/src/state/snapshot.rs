//! A snapshot of pets, orders and key usage, to restore in this process, or as JSON in another.

use std::{iter, sync::Arc};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{
    allowance::PerPeriod,
    ban::BanRecord,
    keys::{Account, Accounts},
    pet_list::{PetList, StoredPet},
    quota::Used,
    store::{ChangeError, Order, Store},
};
use crate::{clock, plan::Plan, text::present};

/// The version of the JSON. Other versions are refused.
const VERSION: u32 = 1;

/// A snapshot of a server's pets, orders and key usage.
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
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Snapshot {
    version: u32,
    last_id: i64,
    pets: PetList,
    orders: Arc<Vec<Order>>,
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
}

impl Snapshot {
    pub(super) fn take(store: Store, accounts: &mut Accounts) -> Self {
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
            }
        };
        let keys = accounts.sorted().into_iter().map(state).collect();
        let (last_id, pets, orders) = store.into_parts();
        Self {
            version: VERSION,
            last_id,
            pets,
            orders,
            keys,
        }
    }

    /// Returns the JSON in small pieces. Serializing everything at once, or freeing it at once,
    /// would delay all other requests.
    pub(crate) fn into_json_pieces(self) -> impl Iterator<Item = Bytes> {
        // Texts and numbers can always be serialized.
        let orders = serde_json::to_string(&self.orders).unwrap_or_default();
        let keys = serde_json::to_string(&self.keys).unwrap_or_default();
        let head = format!(
            "{{\"version\":{},\"lastId\":{},\"pets\":[",
            self.version, self.last_id
        );
        let tail = format!("],\"orders\":{orders},\"keys\":{keys}}}");
        let pets = self
            .pets
            .pieces()
            .to_vec()
            .into_iter()
            .enumerate()
            .map(|(place, piece)| {
                let pets = piece
                    .iter()
                    .map(StoredPet::json)
                    .collect::<Vec<_>>()
                    .join(",");
                Bytes::from(if place == 0 { pets } else { format!(",{pets}") })
            });
        iter::once(head.into())
            .chain(pets)
            .chain(iter::once(tail.into()))
    }

    /// Returns the store.
    pub(super) fn store(&self) -> Result<Store, ChangeError> {
        if self.version != VERSION {
            return Err(ChangeError::Snapshot("its version is not 1"));
        }
        Ok(Store::from_parts(
            self.last_id,
            self.pets.clone(),
            Arc::clone(&self.orders),
        ))
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
