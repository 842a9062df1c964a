//! The crates whose types are part of this crate's API, in the versions that it uses. A program
//! that names such a type, for example in its own [`Transport`](crate::transport::Transport),
//! needs no further dependency.
//!
//! ```
//! use petstore_client::Client;
//! use petstore_client::reexports::{http, serde_json::json};
//!
//! fn dry_run(client: &Client) -> Result<(), petstore_client::Error> {
//!     let request = client.request(http::Method::PATCH, "/pets/1").json(&json!({"name": "Max"}));
//!     let request: http::Request<petstore_client::Bytes> = request.build()?;
//!     println!("{} {}", request.method(), request.uri());
//!     Ok(())
//! }
//! # dry_run(&Client::new("https://petstore.example/v1", "s3cret").unwrap()).unwrap();
//! ```

pub use ::{bytes, futures_core, http, serde, serde_json, url};
