//! The rate limiter against the mock, with many tasks in paused time: the mock counts the refusals.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use super::kit::{reason, secs};
use petstore_client::rate_limit::{self, BlockReason, Quota};
use petstore_client::{Client, ClientBuilder, RequestOptions};
use petstore_mock::{Builder, Clock, MockServer, Pattern, Plan, RateHeaders, Window};
use tokio::runtime::{self, Handle};
use tokio::task::{JoinHandle, yield_now};

/// The start of a minute.
fn start() -> SystemTime {
    SystemTime::UNIX_EPOCH + secs(1_800_000_000)
}

fn mock(plan: Plan) -> Builder {
    MockServer::builder().key("key", plan).clock(Clock::runtime(start())).journal(10_000)
}

/// Starts a client that waits as long as it takes.
fn patient(server: &MockServer) -> ClientBuilder {
    let hours = secs(10_000);
    let options = RequestOptions::new().max_wait(hours).timeout(hours);
    Client::builder(server.url()).api_key("key").options(&options)
}

/// Sends requests from several tasks, each with one of the clients. Returns the elapsed minutes of
/// the service's time.
async fn work(server: &MockServer, clients: &[Client], tasks: usize, requests: usize) -> u64 {
    let left = Arc::new(AtomicUsize::new(requests));
    let tasks: Vec<_> = (0..tasks)
        .map(|task| {
            let (client, left) = (clients[task % clients.len()].clone(), Arc::clone(&left));
            tokio::spawn(async move {
                let take = |left: usize| left.checked_sub(1);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                    client.store().orders().await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let refused = server.requests(Pattern::any().status(429)).len();
    assert_eq!((refused, server.requests(Pattern::any()).len()), (0, requests));
    server.clock().now().duration_since(start()).unwrap().as_secs() / 60
}

#[tokio::test(start_paused = true)]
async fn many_tasks_on_a_cold_key_are_never_refused_and_use_each_window() {
    type Case = (fn() -> Builder, bool, usize, RangeInclusive<u64>);
    // 290 requests take five minutes at 60 a minute.
    let cases: [Case; 5] = [
        (|| mock(Plan::Free), false, 290, 4..=4),
        (|| mock(Plan::Free).window(Window::Sliding), false, 290, 4..=5),
        (|| mock(Plan::Free).rate_headers(RateHeaders::Minute), false, 290, 4..=4),
        (|| mock(Plan::Free).rate_headers(RateHeaders::Day), true, 290, 4..=5),
        (|| mock(Plan::Business), false, 2_100, 2..=2),
    ];
    for (mock, knows_plan, requests, minutes) in cases {
        let server = mock().start().await.unwrap();
        let client = patient(&server);
        let client = if knows_plan { client.plan(rate_limit::Plan::FREE) } else { client };
        let took = work(&server, &[client.build().unwrap()], 256, requests).await;
        assert!(minutes.contains(&took), "{requests} requests took {took} minutes");
    }
}

#[tokio::test(start_paused = true)]
async fn two_clients_with_one_key_act_as_one() {
    let server = mock(Plan::Free).start().await.unwrap();
    let clients = [(), ()].map(|()| patient(&server).build().unwrap());
    assert_eq!(work(&server, &clients, 256, 170).await, 2);
    assert_eq!(clients[0].rate_limits(), clients[1].rate_limits());
}

#[tokio::test(start_paused = true)]
async fn once_the_day_is_used_up_all_calls_fail_at_once_and_nothing_is_sent() {
    let server = mock(Plan::enterprise(1_000, 5)).start().await.unwrap();
    let client = Client::builder(server.url()).api_key("key").build().unwrap();
    let calls = (0..405).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.store().orders().await.map(drop) })
    });
    let mut told = 0;
    for call in calls.collect::<Vec<_>>() {
        if let Err(error) = call.await.unwrap() {
            assert_eq!(
                (reason(&error), error.attempts()),
                (Some(BlockReason::Quota(Quota::Day)), 0),
                "{error}"
            );
            assert!(!error.may_have_been_processed() && error.retry_at().is_some());
            told += 1;
        }
    }
    assert_eq!((told, server.requests(Pattern::any()).len()), (400, 5));
    assert!(server.clock().now().duration_since(start()).unwrap() < secs(30));
}

#[test]
fn the_last_client_to_be_dropped_leaves_no_task_behind() {
    let builder = MockServer::builder().clock(Clock::frozen(start()));
    let server = builder.key("key", Plan::enterprise(1, 9)).start_blocking().unwrap();
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let left = runtime.block_on(async {
        let client = patient(&server).build().unwrap();
        client.store().orders().await.unwrap();
        let call = |client: Client| async move { client.store().orders().await.map(drop) };
        let calls: Vec<_> = (0..10).map(|_| tokio::spawn(call(client.clone()))).collect();
        while client.rate_limits().waiting < calls.len() {
            yield_now().await;
        }
        assert!(
            Handle::current().metrics().num_alive_tasks() > calls.len(),
            "and the connection's"
        );
        calls.iter().for_each(JoinHandle::abort);
        drop(client);
        let gone = async {
            while Handle::current().metrics().num_alive_tasks() > 0 {
                yield_now().await;
            }
        };
        tokio::time::timeout(secs(60), gone).await
    });
    assert!(left.is_ok());
}
