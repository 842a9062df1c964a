//! What the service holds at one moment, to be put back later: in the same process, or as JSON in
//! another.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::accounts::Accounts;
use crate::{
    ban::Record,
    model::Pet,
    plan::Plan,
    quota::{Allowance, Used},
    store::{ChangeError, Order, Store},
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
    pets: Vec<Pet>,
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
    record: Record,
}

impl Snapshot {
    pub(super) fn take(store: &Store, accounts: &mut Accounts) -> Self {
        let state = |(_, account): (&str, &mut super::account::Account)| {
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
        Self {
            version: VERSION,
            last_id: store.last_id(),
            pets: store.pets().to_vec(),
            orders: store.orders().to_vec(),
            keys: accounts.sorted().into_iter().map(state).collect(),
        }
    }

    /// Returns the store it holds, if it can be one.
    pub(super) fn store(&self) -> Result<Store, ChangeError> {
        if self.version != VERSION {
            return Err(ChangeError::Snapshot("its version is not 1"));
        }
        let store = Store::new(self.pets.clone(), self.orders.clone());
        let twins = store.pets().iter().zip(store.pets().iter().skip(1));
        if twins.into_iter().any(|(one, next)| one.id == next.id) {
            return Err(ChangeError::Snapshot("two pets have one id"));
        }
        Ok(store.with_last_id(self.last_id))
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
    record: Record,
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
