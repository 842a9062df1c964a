//! The rate limiter against the mock, with many tasks in paused time: the mock counts the refusals.

use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::Client;
use petstore_client::limits::{self, BlockReason, Limits, Quota};
use petstore_mock::{Builder, Clock, MockServer, Plan, RateHeaders, Seed};
use tokio::runtime::{self, Handle};
use tokio::task::{JoinHandle, yield_now};

use crate::client::kit::{START, at, client, key, reason, secs};
use crate::client::service::{self, patient, refused};

const HOUR: Duration = secs(3_600);

fn mock(plan: Plan) -> Builder {
    crate::client::kit::mock(key(), plan)
        .journal(10_000)
        .seed(Seed::none())
}

/// Sends requests from 256 tasks, spread over the clients. Returns the elapsed minutes of the
/// service's time.
async fn work(server: &MockServer, clients: &[Client], requests: usize) -> u64 {
    let (tasks, each) = (256 / clients.len(), requests / clients.len());
    let work = clients
        .iter()
        .map(|one| service::work(one, tasks, each, HOUR));
    join_all(work).await;
    assert_eq!((refused(server), server.requests(..).len()), (0, requests));
    let took = server.clock().now().duration_since(at(START));
    took.unwrap().as_secs() / 60
}

#[tokio::test(start_paused = true)]
async fn a_plan_fills_in_a_minute_that_the_service_does_not_show() {
    let server = mock(Plan::Free).rate_headers(RateHeaders::Day);
    let server = server.start().await.unwrap();
    let limits = Limits::new().plan(limits::Plan::FREE);
    let client = patient(server.url()).limits(limits).build().unwrap();
    // 290 requests take five minutes at 60 a minute. The first one begins with the mock.
    let took = work(&server, &[client], 290).await;
    assert!((4..=5).contains(&took), "it took {took} minutes");
}

#[tokio::test(start_paused = true)]
async fn two_clients_with_one_key_act_as_one() {
    let server = mock(Plan::Free).start().await.unwrap();
    let clients = [(), ()].map(|()| patient(server.url()).build().unwrap());
    assert_eq!(work(&server, &clients, 170).await, 2);
    let [one, two] = clients.map(|client| client.limits().snapshot());
    assert_eq!(one, two);
}

#[tokio::test(start_paused = true)]
async fn all_calls_fail_at_once_when_the_day_is_used_up() {
    let server = mock(Plan::enterprise(1_000, 5)).start().await.unwrap();
    let client = client(server.url());
    let after_midnight = START.next_multiple_of(86_400) + 1;
    let calls = (0..405).map(|_| client.store().orders().send());
    let mut told = 0;
    for error in join_all(calls).await.into_iter().filter_map(Result::err) {
        assert_eq!(reason(&error), Some(BlockReason::Quota(Quota::Day)));
        assert_eq!(error.retry_at(), Some(at(after_midnight)));
        assert!(error.attempts() == 0 && !error.may_have_been_processed());
        told += 1;
    }
    assert_eq!((told, server.requests(..).len()), (400, 5));
    assert!(server.clock().now().duration_since(at(START)).unwrap() < secs(30));
}

#[test]
fn the_last_client_to_be_dropped_leaves_no_task_behind() {
    let server = mock(Plan::enterprise(1, 9)).clock(Clock::frozen(at(START)));
    let server = server.start_blocking().unwrap();
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        let client = patient(server.url()).build().unwrap();
        client.store().orders().await.unwrap();
        let calls = [(); 10].map(|()| tokio::spawn(client.store().orders().send()));
        while client.limits().snapshot().waiting < calls.len() {
            yield_now().await;
        }
        let tasks = || Handle::current().metrics().num_alive_tasks();
        assert!(tasks() > calls.len(), "and the connection's");
        calls.iter().for_each(JoinHandle::abort);
        drop(client);
        let gone = async {
            while tasks() > 0 {
                yield_now().await;
            }
        };
        tokio::time::timeout(secs(60), gone).await.unwrap();
    });
}
