//! The keys of a running server.

use std::{fmt, ops::Deref, sync::Arc, time::Duration};

use crate::{
    plan::Plan,
    world::{KeyError, KeyUsage, World},
};

/// The keys of a server: see [`MockServer::keys`](crate::MockServer::keys).
///
/// ```
/// use petstore_mock::{MockServer, Plan};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), petstore_mock::KeyError> {
/// let server = MockServer::start().await;
/// server.keys().insert("my-key", Plan::Pro)?;
/// assert_eq!(server.keys().all().len(), 5);
/// assert_eq!(server.keys().get("free-key").and_then(|key| key.plan()), Some(Plan::Free));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a>(&'a Arc<World>);

impl<'a> Keys<'a> {
    pub(crate) const fn new(world: &'a Arc<World>) -> Self {
        Self(world)
    }

    /// Adds a key.
    ///
    /// # Errors
    ///
    /// Where the server has it already, or it can't travel in a header.
    pub fn insert(self, key: &str, plan: Plan) -> Result<Key, KeyError> {
        let (text, number) = self.0.add_key(Some(key), plan)?;
        Ok(Key { world: Arc::clone(self.0), text, number })
    }

    /// Returns the key with this text, if the server has it.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Key> {
        let number = self.0.number(key)?;
        Some(Key { world: Arc::clone(self.0), text: key.into(), number })
    }

    /// Returns all keys, by their numbers.
    #[must_use]
    pub fn all(self) -> Vec<Key> {
        let keys = self.0.keys().into_iter();
        keys.map(|(text, number)| Key { world: Arc::clone(self.0), text, number }).collect()
    }

    /// Returns what each key has used, by their numbers.
    #[must_use]
    pub fn usage(self) -> Vec<KeyUsage> {
        self.0.usage()
    }
}

/// A key of a running server, which can be used wherever a `&str` can: see
/// [`MockServer::key`](crate::MockServer::key). Its `Debug` output does not show it.
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
    world: Arc<World>,
    text: Box<str>,
    number: u32,
}

impl Key {
    pub(crate) fn fresh(world: &Arc<World>, plan: Plan) -> Self {
        loop {
            // A fresh key can be taken only by someone who adds that very one meanwhile.
            if let Ok((text, number)) = world.add_key(None, plan) {
                return Self { world: Arc::clone(world), text, number };
            }
        }
    }

    /// Returns the key, as it is sent after `Bearer `.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns its number: the server counts its keys from 1.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns its plan; nothing if it was removed.
    #[must_use]
    pub fn plan(&self) -> Option<Plan> {
        self.usage().map(|usage| usage.plan)
    }

    /// Returns what it has used; nothing if it was removed.
    #[must_use]
    pub fn usage(&self) -> Option<KeyUsage> {
        self.world.usage_of(self.number)
    }

    /// Gives it another plan: what it used stays used, and a `Retry-After` it was told is over.
    ///
    /// To a key that was removed this does nothing; nor do the methods below.
    pub fn set_plan(&self, plan: Plan) {
        self.world.set_plan(self.number, plan);
    }

    /// Bans it for so long from now, on the server's clock.
    pub fn ban(&self, length: Duration) {
        self.world.ban(self.number, length);
    }

    /// Ends its ban, and forgets what led to it.
    pub fn unban(&self) {
        self.world.unban(self.number);
    }

    /// Removes it: from now on it is 401 `unauthorized`.
    pub fn remove(&self) {
        self.world.remove_key(self.number);
    }
}

impl Deref for Key {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.text.into()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("number", &self.number).finish_non_exhaustive()
    }
}
