//! Many processes, on many machines, share the limits of one key through Redis.
//!
//! Each process asks for pets as fast as the key's quotas allow; together they are not refused, and
//! each gets its part. Start several:
//!
//! ```text
//! export PETSTORE_BASE_URL=… PETSTORE_API_KEY=… REDIS_URL=redis://127.0.0.1:6379
//! cargo run --example fleet -- 16 60
//! ```
//!
//! The first argument is the number of tasks, the second for how many seconds. Where `REDIS_URL` is
//! the path of a folder, the processes of one machine share through files in it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]
#![allow(clippy::disallowed_methods, reason = "a program reads its own environment and clock")]

use std::time::{Duration, Instant};

use petstore_client::events::Event;
use petstore_client::rate_limit::{FileStore, RedisStore};
use petstore_client::{Client, ClientBuilder, RequestOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let tasks = numbers.next().transpose()?.unwrap_or(16);
    let seconds = numbers.next().transpose()?.unwrap_or(60);
    let store = std::env::var("REDIS_URL").unwrap_or("redis://127.0.0.1:6379".to_owned());
    let builder = ClientBuilder::from_env()?.on_event(|event| match event {
        Event::SharedStore(store) => eprintln!("{}: {:?}", store.location, store.problem),
        Event::Throttled(throttled) => eprintln!("refused: {}", throttled.blocked),
        _ => {}
    });
    let client = if store.contains("://") {
        builder.shared_limits(RedisStore::new(&store)?).build()?
    } else {
        builder.shared_limits(FileStore::new(store)).build()?
    };
    let end = Instant::now() + Duration::from_secs(seconds);
    let workers = (0..tasks).map(|_| tokio::spawn(work(client.clone(), end)));
    let mut done = 0;
    for worker in workers.collect::<Vec<_>>() {
        done += worker.await?;
    }
    let limits = client.synchronize_rate_limits().await;
    println!("{done} requests, {} refused, {:?}", limits.throttled, limits.shared);
    Ok(())
}

/// Asks for one pet after the other, and returns how many requests were answered.
async fn work(client: Client, end: Instant) -> u64 {
    let mut done = 0;
    while Instant::now() < end {
        // What would wait until after the end is given up.
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
