//! Shares the rate limits of one key between processes on several machines, through Redis.
//!
//! Each process lists pets as fast as the key's quotas allow. The processes share the quotas
//! fairly, and none is refused. Start several of them, each with a number of tasks and of seconds:
//!
//! ```text
//! export PETSTORE_BASE_URL=… PETSTORE_API_KEY=… REDIS_URL=redis://127.0.0.1:6379
//! cargo run -p petstore-examples --example fleet --features redis -- 16 60
//! ```
//!
//! Without `PETSTORE_BASE_URL`, each process uses its own mock server. Without `REDIS_URL`, the processes
//! of one machine share the limits through files.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints its result"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "a program reads its environment and the clock"
)]

use std::time::{Duration, Instant};

use petstore_client::events::EventKind;
use petstore_client::limits::{FileStore, Limits, RedisStore};
use petstore_client::{Client, ClientBuilder, RequestOptions};
use petstore_mock::{MockServer, Plan};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let tasks = numbers.next().transpose()?.unwrap_or(16);
    let seconds = numbers.next().transpose()?.unwrap_or(1);
    let server = MockServer::builder()
        .key("fleet-key", Plan::Business)
        .start()
        .await?;
    let builder = match std::env::var_os("PETSTORE_BASE_URL") {
        Some(_) => ClientBuilder::from_env()?,
        None => Client::builder(server.url()).api_key("fleet-key"),
    };
    let builder = builder.on_event(|event| match event.kind {
        EventKind::SharedStore(store) => eprintln!("{}: {:?}", store.location, store.problem),
        EventKind::Throttled { blocked, .. } => eprintln!("refused: {blocked}"),
        _ => {}
    });
    let limits = match std::env::var("REDIS_URL") {
        Ok(url) => Limits::new().store(RedisStore::new(&url)?),
        Err(_) => Limits::new().store(FileStore::new(std::env::temp_dir().join("petstore-fleet"))),
    };
    let client = builder.limits(limits).build()?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let workers = (0..tasks).map(|_| tokio::spawn(work(client.clone(), end)));
    let mut done = 0;
    for worker in workers.collect::<Vec<_>>() {
        done += worker.await?;
    }
    client.close().await;
    let limits = client.limits().snapshot();
    println!(
        "{done} requests, {} refused, {:?}",
        limits.throttled, limits.shared
    );
    Ok(())
}

/// Sends one request after another, and returns the number of successes.
async fn work(client: Client, end: Instant) -> u64 {
    let mut done = 0;
    while Instant::now() < end {
        // A request that would wait beyond the end fails at once.
        let left = end.saturating_duration_since(Instant::now());
        let options = RequestOptions::new().max_wait(left);
        match client.pets().list().limit(1).options(&options).await {
            Ok(_) => done += 1,
            Err(error) if error.is_rate_limited() => break,
            Err(error) => {
                eprintln!("{error}");
                break;
            }
        }
    }
    done
}
