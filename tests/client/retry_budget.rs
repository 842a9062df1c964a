//! The retry budget lets all requests go again that were in flight when a server was restarted.

use std::time::Duration;

use futures_util::future::join_all;

use super::service::{Fault, Rules, Service, get, patient, within};

const LIMIT: Duration = Duration::from_secs(120);

/// Makes that many GETs at once, whose connections are all reset once.
async fn restart(calls: u64) {
    // The first request shows that there is room for all.
    let fault = Some(Fault::Reset(1..1 + calls));
    let service = Service::start(Rules { fault, ..Rules::per_minute(1_000_000) });
    let client = patient(&service.base()).build().unwrap();
    within(&client, LIMIT, get(&client)).await.unwrap();
    let all: Vec<_> = (0..calls).map(|_| tokio::spawn(get(&client))).collect();
    let done = within(&client, LIMIT, join_all(all)).await;
    let failed = done.into_iter().filter_map(|call| call.unwrap().err());
    let failed = failed.map(|error| error.to_string());
    let failed: Vec<_> = failed.collect();
    assert!(failed.is_empty(), "{} of {calls} calls failed: {}", failed.len(), failed[0]);
    assert_eq!(service.counts().requests, 1 + 2 * calls);
}

#[tokio::test(start_paused = true)]
async fn all_gets_in_flight_survive_a_restart_of_the_server() {
    restart(64).await;
    restart(256).await;
}
