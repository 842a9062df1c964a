//! What the service holds at one moment, to be put back later: in the same process, or as JSON in
//! another.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{
    keys::Accounts,
    pet_list::{PetList, StoredPet},
    store::{ChangeError, Content, Order, Store},
};
use crate::{
    ban::BanRecord,
    plan::Plan,
    quota::{Allowance, Used},
};

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
    orders: Vec<Order>,
    keys: Vec<KeyState>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyState {
    number: u32,
    #[serde(serialize_with = "write_plan", deserialize_with = "read_plan")]
    plan: Plan,
    minute: Used,
    day: Used,
    record: BanRecord,
}

impl Snapshot {
    pub(super) fn take(store: Store, accounts: &mut Accounts) -> Self {
        let state = |(_, account): (&str, &mut super::keys::Account)| {
            let [minute, day] = account.allowance.used();
            let record = account.record.clone();
            KeyState {
                number: account.label.number(),
                plan: account.label.plan(),
                minute,
                day,
                record,
            }
        };
        let Content { last_id, pets, orders } = store.into();
        Self {
            version: VERSION,
            last_id,
            pets,
            orders,
            keys: accounts.sorted().into_iter().map(state).collect(),
        }
    }

    /// Whether it takes long to make a store of it.
    pub(super) fn is_large(&self) -> bool {
        self.pets.len() > 10_000
    }

    /// Returns the JSON in pieces, each of which is written quickly: all at once would hold up every other
    /// request.
    pub(crate) fn into_json_pieces(self) -> impl Iterator<Item = Bytes> {
        let (orders, keys) =
            (serde_json::to_string(&self.orders), serde_json::to_string(&self.keys));
        // Texts and numbers: there is nothing in it that JSON can't say.
        let (orders, keys) = (orders.unwrap_or_default(), keys.unwrap_or_default());
        let head = format!("{{\"version\":{},\"lastId\":{},\"pets\":[", self.version, self.last_id);
        let tail = format!("],\"orders\":{orders},\"keys\":{keys}}}");
        let pets = self.pets.pieces().to_vec().into_iter().enumerate().map(|(place, piece)| {
            let pets = piece.iter().map(StoredPet::json).collect::<Vec<_>>().join(",");
            Bytes::from(if place == 0 { pets } else { format!(",{pets}") })
        });
        std::iter::once(head.into()).chain(pets).chain(std::iter::once(tail.into()))
    }

    /// Returns the store it holds, if it can be one.
    pub(super) fn store(&self) -> Result<Store, ChangeError> {
        if self.version != VERSION {
            return Err(ChangeError::Snapshot("its version is not 1"));
        }
        if self.pets.had_twins() {
            return Err(ChangeError::Snapshot("two pets have one id"));
        }
        let (pets, orders) = (self.pets.clone(), self.orders.clone());
        Ok(Content { last_id: self.last_id, pets, orders }.into())
    }

    /// Returns what the keys have used, if keys of these accounts can have.
    pub(super) fn usage(&self, accounts: &mut Accounts) -> Result<Vec<Restored>, ChangeError> {
        let mut usage = Vec::new();
        for key in &self.keys {
            let Some(account) = accounts.get_mut(key.number) else { continue };
            let used = [key.minute.clone(), key.day.clone()];
            let mut allowance = account.allowance.with_used(used).ok_or(ChangeError::Snapshot(
                "its keys count in another kind of window than this server's, or out of order",
            ))?;
            if !key.record.is_possible() {
                return Err(ChangeError::Snapshot("a key's record is out of order"));
            }
            allowance.set_limits(key.plan.per_minute(), key.plan.per_day());
            usage.push(Restored {
                number: key.number,
                plan: key.plan,
                allowance,
                record: key.record.clone(),
            });
        }
        Ok(usage)
    }
}

/// What a key has used, checked.
pub(super) struct Restored {
    number: u32,
    plan: Plan,
    allowance: Allowance,
    record: BanRecord,
}

impl Restored {
    pub(super) fn put_back(self, accounts: &mut Accounts) {
        if let Some(account) = accounts.get_mut(self.number) {
            account.set_plan(self.plan);
            account.allowance = self.allowance;
            account.record = self.record;
        }
    }
}

fn write_plan<S: Serializer>(plan: &Plan, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(plan)
}

fn read_plan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Plan, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}
