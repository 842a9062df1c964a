//! Handles on a running server for tests in the same process: pets, orders and keys.

use std::{fmt, ops::Deref, sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    model::{Pet, SeedPet},
    plan::Plan,
    state::{Account, AppState, Change, ChangeError, KeyError, KeyUsage, NewKey},
};

/// The keys of a server: see [`MockServer::keys`](crate::MockServer::keys).
///
/// ```
/// use petstore_mock::{MockServer, Plan};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), petstore_mock::KeyError> {
/// let server = MockServer::start().await;
/// let mine = server.keys().insert("my-key", Plan::Pro)?;
/// assert_eq!(server.keys().all().last().map(|key| key.number()), Some(mine.number()));
/// assert_eq!(server.keys().get("free-key").and_then(|key| key.plan()), Some(Plan::Free));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a>(pub(crate) &'a Arc<AppState>);

impl Keys<'_> {
    /// Adds a key.
    ///
    /// # Errors
    ///
    /// If the server already has the key, or it is invalid in a header.
    pub fn insert(self, key: &str, plan: Plan) -> Result<Key, KeyError> {
        Key::add(self.0, &NewKey::new(Some(key.to_owned()), plan))
    }

    /// Adds a key like [`Keys::insert`], with a name for reports and the journal.
    ///
    /// # Errors
    ///
    /// If the server already has the key or the name, the key is invalid in a header, or the name is
    /// empty, too long, or would spoil a report.
    pub fn insert_named(self, name: &str, key: &str, plan: Plan) -> Result<Key, KeyError> {
        let key = NewKey::new(Some(key.to_owned()), plan);
        Key::add(self.0, &key.with_name(name))
    }

    /// Returns the key with this text, if the server has it.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Key> {
        let number = self.0.accounts().get(key)?.label().number();
        Some(Key::new(self.0, key, number))
    }

    /// Returns all keys, by number.
    #[must_use]
    pub fn all(self) -> Vec<Key> {
        let mut accounts = self.0.accounts();
        let key = |(text, account): (&str, &mut Account)| {
            Key::new(self.0, text, account.label().number())
        };
        accounts.sorted().into_iter().map(key).collect()
    }
}

/// A key of a running server: see [`MockServer::key`](crate::MockServer::key). It derefs to `&str`.
/// Its `Debug` output does not show it.
///
/// ```
/// use std::time::Duration;
/// use petstore_mock::{MockServer, Plan};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = MockServer::start().await;
/// let key = server.key(Plan::Free);
/// let list = || reqwest::Client::new().get(format!("{}/pets", server.url())).bearer_auth(&*key);
///
/// assert_eq!(list().send().await?.status(), 200);
/// assert_eq!(key.usage().map(|usage| usage.minute.used), Some(1));
/// key.ban(Duration::from_secs(60));
/// assert_eq!(list().send().await?.status(), 429);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Key {
    app: Arc<AppState>,
    text: String,
    number: u32,
}

impl Key {
    fn new(app: &Arc<AppState>, text: impl Into<String>, number: u32) -> Self {
        Self {
            app: Arc::clone(app),
            text: text.into(),
            number,
        }
    }

    fn add(app: &Arc<AppState>, key: &NewKey) -> Result<Self, KeyError> {
        let (text, number) = app.add_key(key)?;
        Ok(Self::new(app, text, number))
    }

    pub(crate) fn fresh(app: &Arc<AppState>, plan: Plan) -> Self {
        Self::add(app, &NewKey::new(None, plan)).expect("a new key is valid and unused")
    }

    /// Returns the key, to be sent after `Bearer `.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns its number, from 1.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns its plan; `None` if it was removed.
    #[must_use]
    pub fn plan(&self) -> Option<Plan> {
        self.usage().map(|usage| usage.plan)
    }

    /// Returns its usage; `None` if it was removed.
    #[must_use]
    pub fn usage(&self) -> Option<KeyUsage> {
        let now = self.app.clock().since_epoch();
        self.app
            .accounts()
            .by_number(self.number)
            .map(|account| account.usage(now))
    }

    /// Changes its plan. Used requests stay counted, and its `Retry-After` ends.
    ///
    /// This and the methods below do nothing if the key was removed.
    pub fn set_plan(&self, plan: Plan) {
        self.app
            .change_key(self.number, |account| account.set_plan(plan));
    }

    /// Declares how many of its requests may be under way at once (default: 1, or that of
    /// [`Builder::senders`](crate::Builder::senders)), and returns it. Each of these senders may have to
    /// learn by itself that it is told to wait. Declare before the first request, and no more than there
    /// are: see the [guide](crate::guide::compliance).
    ///
    /// ```
    /// # use petstore_mock::{MockServer, Plan};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = MockServer::start().await;
    /// let key = server.key(Plan::Free).senders(8);
    /// assert_eq!(key.usage().map(|usage| usage.senders), Some(8));
    /// # }
    /// ```
    #[expect(
        clippy::must_use_candidate,
        clippy::return_self_not_must_use,
        reason = "it changes the server"
    )]
    pub fn senders(self, senders: u32) -> Self {
        self.app.declare_senders(self.number, senders);
        self
    }

    /// Bans it from now for this long, on the server's clock.
    pub fn ban(&self, length: Duration) {
        self.app.ban(self.number, length);
    }

    /// Ends its ban, and resets the count of early requests.
    pub fn unban(&self) {
        self.app
            .change_key(self.number, |account| account.record.pardon());
    }

    /// Restores its unused quotas, ends its ban and, if keys are isolated
    /// ([`Builder::isolate_keys`](crate::Builder::isolate_keys)), restores its initial pets.
    pub fn reset(&self) {
        self.app.reset_key(self.number);
    }

    /// Returns its own pets, if keys are isolated and it was not removed, or else those of the server.
    #[must_use]
    pub fn pets(&self) -> Pets<'_> {
        Pets {
            app: &self.app,
            key: self.usage().map(|usage| usage.number),
        }
    }

    /// Removes it. Requests with it are then answered 401 `unauthorized`.
    pub fn remove(&self) {
        self.app.remove_key(self.number);
    }
}

impl Deref for Key {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// The pets of a server: see [`MockServer::pets`](crate::MockServer::pets).
///
/// These methods use no quota and do not appear in the journal.
///
/// ```
/// use petstore_mock::{MockServer, PetStatus, SeedPet};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), petstore_mock::ChangeError> {
/// let server = MockServer::start().await;
/// let rex = server.pets().insert(SeedPet::new("Rex", 7).with_status(PetStatus::Sold))?;
/// assert_eq!(server.pets().get(rex.id).map(|pet| pet.name), Some("Rex".to_owned()));
/// assert_eq!(server.pets().all().last(), Some(&rex));
/// server.pets().clear()?;
/// assert!(server.pets().is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Pets<'a> {
    app: &'a AppState,
    /// The key whose pets they are, if keys are isolated.
    key: Option<u32>,
}

impl<'a> Pets<'a> {
    pub(crate) const fn new(app: &'a AppState) -> Self {
        Self { app, key: None }
    }

    /// Adds a pet and returns it with its id: the given one, or the next one. A pet without a
    /// status has none. The server's default status is only for pets that are created over HTTP.
    ///
    /// # Errors
    ///
    /// If another pet has the id, or no id is left.
    pub fn insert(self, pet: SeedPet) -> Result<Pet, ChangeError> {
        let id = self.app.arrange(self.key, Change::Add(pet.clone()))?;
        Ok(pet.into_pet(id))
    }

    /// Removes a pet. Its id is not reused.
    ///
    /// # Errors
    ///
    /// If no pet has this id.
    pub fn remove(self, id: i64) -> Result<(), ChangeError> {
        self.app.arrange(self.key, Change::Remove(id)).map(drop)
    }

    /// Removes all pets. Their ids are not reused.
    ///
    /// # Errors
    ///
    /// If the data file cannot be written.
    pub fn clear(self) -> Result<(), ChangeError> {
        self.app.arrange(self.key, Change::ClearPets).map(drop)
    }

    /// Returns the pet with this id.
    #[must_use]
    pub fn get(self, id: i64) -> Option<Pet> {
        self.app.read(self.key, |store| store.pet(id).cloned())
    }

    /// Returns all pets, by ascending id.
    #[must_use]
    pub fn all(self) -> Vec<Pet> {
        self.app
            .read(self.key, |store| store.pets().cloned().collect())
    }

    /// Returns the number of pets.
    #[must_use]
    pub fn len(self) -> usize {
        self.app.read(self.key, |store| store.pets().len())
    }

    /// Returns whether the server has no pets.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// The orders of a server: see [`MockServer::orders`](crate::MockServer::orders).
///
/// ```
/// use petstore_mock::MockServer;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), petstore_mock::ChangeError> {
/// let server = MockServer::start().await;
/// server.orders().insert(json!({"id": 1, "petId": 5}))?;
/// assert_eq!(server.orders().all(), [json!({"id": 1, "petId": 5})]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Orders<'a>(pub(crate) &'a AppState);

impl Orders<'_> {
    /// Adds an order: any JSON object, since the specification does not show its fields.
    ///
    /// # Errors
    ///
    /// If it is not a JSON object.
    pub fn insert(self, order: Value) -> Result<(), ChangeError> {
        let Value::Object(order) = order else {
            return Err(ChangeError::NotAnObject);
        };
        self.0.arrange(None, Change::AddOrder(order)).map(drop)
    }

    /// Removes all orders.
    ///
    /// # Errors
    ///
    /// If the data file cannot be written.
    pub fn clear(self) -> Result<(), ChangeError> {
        self.0.arrange(None, Change::ClearOrders).map(drop)
    }

    /// Returns all orders, in the order in which they were added.
    #[must_use]
    pub fn all(self) -> Vec<Value> {
        self.0.read(None, |store| {
            store.orders().iter().cloned().map(Value::Object).collect()
        })
    }
}
