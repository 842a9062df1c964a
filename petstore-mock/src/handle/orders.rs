//! The orders of a running server.

use serde_json::Value;

use crate::{
    state::{Change, ChangeError},
    world::World,
};

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
pub struct Orders<'a>(&'a World);

impl<'a> Orders<'a> {
    pub(crate) const fn new(world: &'a World) -> Self {
        Self(world)
    }

    /// Adds an order: any JSON object, since the specification does not show its fields.
    ///
    /// # Errors
    ///
    /// Where it is no JSON object.
    pub fn insert(self, order: Value) -> Result<(), ChangeError> {
        let Value::Object(order) = order else {
            return Err(ChangeError::NotAnObject);
        };
        self.0.change_now(Change::AddOrder(order)).map(drop)
    }

    /// Removes all orders.
    ///
    /// # Errors
    ///
    /// Where the file that keeps the data can't be written.
    pub fn clear(self) -> Result<(), ChangeError> {
        self.0.change_now(Change::ClearOrders).map(drop)
    }

    /// Returns all orders, in the order they were added.
    #[must_use]
    pub fn all(self) -> Vec<Value> {
        self.0.read(|store| store.orders().iter().cloned().map(Value::Object).collect())
    }

    /// Returns how many orders there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.read(|store| store.orders().len())
    }

    /// Returns whether there is no order.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}
