//! A key that the service stops accepting is refreshed once, whatever the number of calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::auth::ApiKeyProvider;
use petstore_client::{ApiKey, BoxError};
use tokio::time::timeout;

use super::kit::{http, key};
use super::service::{get, patient};
use super::wire::{Act, Seen, Wire};

const TASKS: usize = 50;

/// Hands out the key in force, and takes some time to fetch the next one.
#[derive(Clone)]
struct Vault {
    issued: Arc<Mutex<ApiKey>>,
    refreshes: Arc<AtomicUsize>,
    delay: Duration,
}

impl ApiKeyProvider for Vault {
    async fn api_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        if rejected.is_some() {
            let number = self.refreshes.fetch_add(1, Ordering::Relaxed) + 1;
            tokio::time::sleep(self.delay).await;
            // A vault may issue another key each time it is asked.
            *self.issued.lock().unwrap() = ApiKey::new(format!("new-{number}"));
        }
        Ok(self.issued.lock().unwrap().clone())
    }
}

/// Responds after 100 ms; accepts the old key for the first requests only.
fn start(accepted: usize) -> Wire {
    let mut seen_old = 0;
    Wire::reading(move |seen: &Seen| {
        let old = seen.header("authorization").unwrap().contains("old");
        seen_old += usize::from(old);
        let status = if old && seen_old > accepted { 401 } else { 200 };
        Act::Later(Duration::from_millis(100), http(status, &[], "[]"))
    })
}

fn sent_with_the_old_key(server: &Wire) -> usize {
    let old = |seen: &&Seen| seen.header("authorization").unwrap().contains("old");
    server.seen().iter().filter(old).count()
}

async fn rotate(delay: Duration) {
    let server = start(100);
    let vault = Vault {
        issued: Arc::new(Mutex::new(ApiKey::new(format!("old-{}", key())))),
        refreshes: Arc::default(),
        delay,
    };
    let client = patient(&server.base()).api_key_provider(vault.clone()).build().unwrap();
    let task = || {
        let client = client.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                get(&client).await?;
            }
            Ok::<_, petstore_client::Error>(())
        })
    };
    let tasks: Vec<_> = (0..TASKS).map(|_| task()).collect();
    let done = timeout(Duration::from_secs(60), join_all(tasks)).await.unwrap();
    let failed = done.into_iter().filter_map(|task| task.unwrap().err());
    let failed: Vec<_> = failed.map(|error| error.to_string()).collect();
    assert!(failed.is_empty(), "{} tasks fail: {}", failed.len(), failed[0]);
    let (refreshes, old) =
        (vault.refreshes.load(Ordering::Relaxed), sent_with_the_old_key(&server));
    assert_eq!(refreshes, 1, "with {old} requests of the old key");
    // Those in flight, no more: a task that learns of the new key does not try the old one again.
    assert!(old <= 100 + TASKS, "{old} requests with the old key");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_refused_to_50_tasks_is_refreshed_once_however_long_it_takes() {
    rotate(Duration::ZERO).await;
    rotate(Duration::from_secs(1)).await;
}
