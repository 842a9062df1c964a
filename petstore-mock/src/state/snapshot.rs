//! The pets, the orders and what the keys have used, at one moment: to be put back later, in the same
//! process or as JSON in another.

use std::{iter, sync::Arc};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{
    keys::{Account, Accounts},
    pet_list::{PetList, StoredPet},
    store::{ChangeError, Order, Store},
};
use crate::{ban::BanRecord, clock, plan::Plan, quota::Used};

/// The form of the JSON; another one is refused.
const VERSION: u32 = 1;

/// The pets and orders of a server, and what its keys have used, at one moment.
///
/// No key is in it: usage belongs to the numbers of the keys, which the server counts from 1. It can
/// be written as JSON and read again; the clock is not part of it, since it never goes back.
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
    day: Used,
    record: BanRecord,
}

impl Snapshot {
    pub(super) fn take(store: Store, accounts: &mut Accounts) -> Self {
        let state = |(_, account): (&str, &mut Account)| {
            let [minute, day] = account.allowance.used();
            let (number, plan) = (account.label.number(), account.label.plan());
            KeyState { number, plan, minute, day, record: account.record.clone() }
        };
        let keys = accounts.sorted().into_iter().map(state).collect();
        let Store { last_id, pets, orders, .. } = store;
        Self { version: VERSION, last_id, pets, orders, keys }
    }

    /// Returns the JSON in pieces, each of which is written quickly: all at once would hold up every other
    /// request.
    pub(crate) fn into_json_pieces(self) -> impl Iterator<Item = Bytes> {
        // Texts and numbers: writing them as JSON can't fail.
        let orders = serde_json::to_string(&self.orders).unwrap_or_default();
        let keys = serde_json::to_string(&self.keys).unwrap_or_default();
        let head = format!("{{\"version\":{},\"lastId\":{},\"pets\":[", self.version, self.last_id);
        let tail = format!("],\"orders\":{orders},\"keys\":{keys}}}");
        let pets = self.pets.pieces().to_vec().into_iter().enumerate().map(|(place, piece)| {
            let pets = piece.pets().iter().map(StoredPet::json).collect::<Vec<_>>().join(",");
            Bytes::from(if place == 0 { pets } else { format!(",{pets}") })
        });
        iter::once(head.into()).chain(pets).chain(iter::once(tail.into()))
    }

    /// Returns the store it holds.
    pub(super) fn store(&self) -> Result<Store, ChangeError> {
        if self.version != VERSION {
            return Err(ChangeError::Snapshot("its version is not 1"));
        }
        let (pets, orders) = (self.pets.clone(), Arc::clone(&self.orders));
        Ok(Store { last_id: self.last_id, pets, orders, ..Store::default() })
    }

    /// Returns the accounts as they were, of those keys that are still there.
    pub(super) fn accounts(&self, accounts: &mut Accounts) -> Result<Vec<Account>, ChangeError> {
        let mut restored = Vec::new();
        for KeyState { number, plan, minute, day, record } in &self.keys {
            if !record.is_possible(clock::END) {
                return Err(ChangeError::Snapshot("a key's record is out of order"));
            }
            let Some(mut account) = accounts.by_number(*number).cloned() else { continue };
            account.set_plan(*plan);
            if !account.allowance.set_used([minute.clone(), day.clone()]) {
                let message =
                    "its keys count in another kind of window than this server's, or out of order";
                return Err(ChangeError::Snapshot(message));
            }
            account.record = record.clone();
            restored.push(account);
        }
        Ok(restored)
    }
}
