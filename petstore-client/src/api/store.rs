//! The store: what the specification names and does not describe (section 4.4).

use http::Method;
use serde_json::Value;

use super::Call;
use crate::base_url::BaseUrl;
use crate::pipeline::Pipeline;
use crate::request::Request;

/// The operations on the store, from [`Client::store`](crate::Client::store).
#[derive(Debug, Clone, Copy)]
pub struct Store<'c> {
    pipeline: &'c Pipeline,
    base: &'c BaseUrl,
}

impl<'c> Store<'c> {
    pub(crate) fn new(pipeline: &'c Pipeline, base: &'c BaseUrl) -> Self {
        Self { pipeline, base }
    }

    /// Gets the orders, as whatever JSON the service returns: the specification says that the
    /// operation exists, and not what its parameters and results are.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// let orders = client.store().orders().await?;
    /// println!("{} orders", orders.as_array().map_or(0, Vec::len));
    /// # Ok(())
    /// # }
    /// ```
    pub fn orders(self) -> Call<'c, Value> {
        let url = self.base.at("/store/orders");
        Call::new(self.pipeline, Ok(Request::new("GET /store/orders", Method::GET, url)))
    }
}
