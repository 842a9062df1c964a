//! Rotates the API key while the program runs. No call fails.
//!
//! `cargo run -p petstore-client --example keys`
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use petstore_client::auth::{ApiKeyProvider, CachingProvider};
use petstore_client::{ApiKey, BoxError, Client};
use petstore_mock::{MockServer, Plan};

/// A vault that takes a while to return the key.
struct Vault {
    is_rotated: Arc<AtomicBool>,
}

impl ApiKeyProvider for Vault {
    async fn api_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        println!(
            "reading the vault{}",
            if rejected.is_some() {
                " after a 401"
            } else {
                ""
            }
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
        let key = if self.is_rotated.load(Ordering::Relaxed) {
            "new-key"
        } else {
            "old-key"
        };
        Ok(ApiKey::new(key))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = MockServer::builder()
        .key("old-key", Plan::Business)
        .start()
        .await?;
    let is_rotated = Arc::new(AtomicBool::new(false));
    let vault = Vault {
        is_rotated: Arc::clone(&is_rotated),
    };
    let keys = CachingProvider::new(vault, Duration::from_secs(300));
    let client = Client::builder(server.url())
        .api_key_provider(keys.clone())
        .build()?;
    for _ in 0..3 {
        client.pets().list().await?;
    }

    println!("rotating the key");
    server.keys().insert("new-key", Plan::Business)?;
    is_rotated.store(true, Ordering::Relaxed);
    if let Some(old) = server.keys().get("old-key") {
        old.remove();
    }
    let page = client.pets().list().with_meta().await?;
    println!(
        "{} pets after {} attempts",
        page.value.len(),
        page.meta.attempts()
    );

    // A program that learns of a rotation can invalidate the cached key. That avoids the 401.
    keys.invalidate();
    client.pets().list().await?;
    Ok(())
}
