//! Tests that several clients and slow providers do not block each other, and in which order calls go.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::auth::provider_fn;
use petstore_client::limits::{Limits, Plan, Priority};
use petstore_client::{ApiKey, RequestOptions};
use tokio::time::{sleep, timeout};

use crate::client::kit::{http, key, millis, secs};
use crate::client::service::{self, MINUTE, get, patient, refused, within};
use crate::client::wire::{Act, Wire};

#[tokio::test(start_paused = true)]
async fn a_provider_slower_than_a_permit_stops_nobody() {
    for (length, tasks) in [(1_150, 3), (7_000, 64)] {
        let name = format!("{}-{length}-{tasks}", key());
        let server = service::start_with(name.clone(), 60, millis(100)).await;
        let provider = provider_fn(move |_| {
            let name = name.clone();
            async move {
                sleep(millis(length)).await;
                Ok(ApiKey::new(name))
            }
        });
        let client = patient(server.url()).api_key_provider(provider);
        let client = client.build().unwrap();
        let calls = |count| join_all((0..count).map(|_| get(&client)));
        within(&client, MINUTE, calls(60)).await;
        within(&client, MINUTE * 3, calls(tasks)).await;
        assert_eq!(refused(&server), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn one_clients_settings_do_not_hold_up_another_client() {
    for by_plan in [false, true] {
        let server = service::start_with(key(), 1_000, secs(5)).await;
        let free = patient(server.url()).build().unwrap();
        get(&free).await.unwrap();
        let limits = match by_plan {
            true => Limits::new().plan(Plan::custom().per_minute(2)),
            false => Limits::new().max_in_flight(1),
        };
        let tight = patient(server.url()).limits(limits).build().unwrap();
        let held: Vec<_> = (0..10).map(|_| tokio::spawn(get(&tight))).collect();
        sleep(millis(100)).await;
        timeout(secs(6), get(&free)).await.unwrap().unwrap();
        free.pets().list().max_wait(Duration::ZERO).await.unwrap();
        held.into_iter().for_each(|call| call.abort());
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_hangs_in_one_call_does_not_hang_the_others() {
    let mut requests = 0;
    let server = Wire::reading(move |seen| {
        requests += 1;
        let is_old = seen.header("authorization").unwrap().ends_with("-old");
        let status = if is_old && requests > 1 { 401 } else { 200 };
        Act::Later(millis(100), http(status, &[], "[]"))
    });
    let (name, refreshes) = (key(), AtomicUsize::new(0));
    let provider = provider_fn(move |rejected: Option<ApiKey>| {
        let refresh = match rejected {
            Some(_) => refreshes.fetch_add(1, Ordering::Relaxed) + 1,
            None => 0,
        };
        let issued = if refresh > 1 { "new" } else { "old" };
        let issued = ApiKey::new(format!("{name}-{issued}"));
        async move {
            if refresh == 1 {
                std::future::pending::<()>().await;
            }
            Ok(issued)
        }
    });
    let client = patient(&server.base()).api_key_provider(provider);
    let client = client.build().unwrap();
    get(&client).await.unwrap();
    let hanging = tokio::spawn(get(&client));
    sleep(millis(200)).await;
    timeout(secs(30), get(&client)).await.unwrap().unwrap();
    hanging.abort();
}

#[tokio::test(start_paused = true)]
async fn a_call_passes_a_hundred_of_low_priority() {
    let server = Wire::start(|_| Act::Later(secs(1), http(200, &[], "[]")));
    let one_at_a_time = patient(&server.base()).limits(Limits::new().max_in_flight(1));
    let client = one_at_a_time.build().unwrap();
    let waits = async |priority| {
        let options = RequestOptions::new().priority(priority);
        let list = client.pets().list().options(&options).with_meta();
        list.await.unwrap().meta.waited().as_secs()
    };
    let hundred = join_all((0..100).map(|_| waits(Priority::Low)));
    let normal = async {
        sleep(millis(5_500)).await;
        waits(Priority::Normal).await
    };
    let (_, normal) = tokio::join!(hundred, normal);
    assert_eq!(normal, 0, "the one in flight came first, for half a second");
}
