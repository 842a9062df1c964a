//! What is sent again, and what never is.

use std::time::Duration;

use petstore_client::retry::{Backoff, RetryBudget};
use petstore_client::{ErrorKind, Method, NewPet, RequestOptions};
use tokio::net::TcpListener;

use super::kit::{REX, answer, builder, client, http, no_pets};
use super::wire::{Act, Wire};

/// Starts a server whose first answer goes wrong.
async fn failing_once(fail: impl Fn() -> Act + Send + 'static, then: u16, body: &str) -> Wire {
    let body = body.to_owned();
    Wire::start(move |number| if number == 0 { fail() } else { answer(then, &[], &body) }).await
}

async fn failing(status: u16) -> Wire {
    Wire::start(move |_| answer(status, &[], "")).await
}

#[tokio::test]
async fn retries_a_get_after_what_passes() {
    for status in [408, 500, 502, 503, 504] {
        let server = failing_once(move || answer(status, &[], "busy"), 200, "[]").await;
        let page = client(&server.base()).pets().list().send().await.unwrap();
        assert_eq!((page.meta().attempts(), server.count()), (2, 2), "{status}");
    }
}

#[tokio::test]
async fn retries_a_get_whose_answer_was_lost() {
    let part = || http(200, &[], "[     ]")[..20].to_vec();
    let body = || b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[".to_vec();
    let losses: [fn() -> Act; 4] = [
        || Act::Cut(Vec::new()),
        || Act::Reset(Vec::new()),
        || Act::Cut(b"garbage\r\n\r\n".to_vec()),
        || Act::Cut(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[".to_vec()),
    ];
    for loss in losses {
        let server = failing_once(loss, 200, "[]").await;
        let page = client(&server.base()).pets().list().send().await.unwrap();
        assert_eq!((page.meta().attempts(), server.count()), (2, 2));
    }
    for bytes in [part(), body()] {
        let server = failing_once(move || Act::Reset(bytes.clone()), 200, "[]").await;
        assert_eq!(client(&server.base()).pets().list().send().await.unwrap().meta().attempts(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn retries_a_get_after_an_attempt_timed_out() {
    let server = failing_once(|| Act::Stall(Vec::new()), 200, "[]").await;
    let page = client(&server.base()).pets().list().send().await.unwrap();
    assert_eq!((page.meta().attempts(), server.count()), (2, 2));
}

#[tokio::test]
async fn a_get_is_not_sent_again_after_an_answer_that_stands() {
    for status in [301, 400, 401, 403, 404, 405, 410, 422, 501, 505] {
        let server = failing(status).await;
        let error = client(&server.base()).pets().list().send().await.unwrap_err();
        assert_eq!((error.attempts(), server.count()), (1, 1), "{status}");
    }
}

#[tokio::test]
async fn a_post_is_never_sent_again_once_it_may_have_been_processed() {
    let pet = NewPet::new("Rex", 7);
    for status in [408, 500, 502, 503, 504] {
        let server = failing(status).await;
        let error = client(&server.base()).pets().create(&pet).await.unwrap_err();
        assert_eq!((error.attempts(), server.count()), (1, 1), "{status}");
        assert!(error.may_have_been_processed());
    }
    for cut in [true, false] {
        let server = Wire::start(move |_| {
            if cut { Act::Cut(Vec::new()) } else { Act::Reset(b"HTTP/1.1 201".to_vec()) }
        });
        let server = server.await;
        let error = client(&server.base()).pets().create(&pet).await.unwrap_err();
        assert_eq!((error.attempts(), server.count()), (1, 1));
        assert!(error.may_have_been_processed() && error.kind() == ErrorKind::Interrupted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_is_not_sent_again_after_a_503_even_with_retry_after() {
    let server = Wire::start(|_| answer(503, &[("Retry-After", "1")], "")).await;
    let error = client(&server.base()).pets().create(&NewPet::new("a", 1)).await.unwrap_err();
    assert_eq!((error.attempts(), server.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_post_that_timed_out_is_not_sent_again() {
    let server = Wire::start(|_| Act::Stall(Vec::new())).await;
    let error = client(&server.base()).pets().create(&NewPet::new("a", 1)).await.unwrap_err();
    assert_eq!((error.attempts(), server.count()), (1, 1));
    assert!(error.is_timeout() && error.may_have_been_processed());
}

#[tokio::test(start_paused = true)]
async fn a_post_is_sent_again_after_a_429() {
    let refuse = || answer(429, &[("Retry-After", "2")], "");
    let server = failing_once(refuse, 201, REX).await;
    let pet = client(&server.base()).pets().create(&NewPet::new("Rex", 7)).await.unwrap();
    assert_eq!((pet.meta().attempts(), server.count()), (2, 2));
}

/// Returns a port of this machine on which nothing listens.
async fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn a_post_that_never_left_is_tried_again_and_cannot_have_been_processed() {
    let base = format!("http://127.0.0.1:{}/v1", closed_port().await);
    let error = client(&base).pets().create(&NewPet::new("a", 1)).await.unwrap_err();
    assert!(error.is_connect() && !error.is_timeout() && !error.may_have_been_processed());
    assert_eq!(error.attempts(), 4);
}

#[tokio::test]
async fn other_methods_follow_rfc_9110() {
    for (method, sent) in [
        (Method::GET, 2),
        (Method::HEAD, 2),
        (Method::OPTIONS, 2),
        (Method::PUT, 2),
        (Method::DELETE, 2),
        (Method::POST, 1),
        (Method::PATCH, 1),
    ] {
        let server = failing(500).await;
        let options = RequestOptions::new().max_attempts(2);
        let client = client(&server.base());
        client.request(method.clone(), "/x").options(&options).send().await.unwrap_err();
        assert_eq!(server.count(), sent, "{method}");
    }
}

#[tokio::test]
async fn stops_at_the_limit_of_attempts() {
    let server = failing(500).await;
    let error = client(&server.base()).pets().list().send().await.unwrap_err();
    assert_eq!((error.attempts(), server.count()), (4, 4));
    assert!(error.to_string().ends_with("(after 4 attempts)"), "{error}");
    for (limit, sent) in [(1, 1), (3, 3)] {
        let server = failing(500).await;
        let options = RequestOptions::new().max_attempts(limit);
        let error =
            client(&server.base()).pets().list().options(&options).send().await.unwrap_err();
        assert_eq!((error.attempts(), server.count()), (sent, sent as usize));
    }
}

#[tokio::test(start_paused = true)]
async fn all_clones_share_a_budget_that_calls_and_time_refill() {
    let server = Wire::start(|number| match number {
        100..200 => no_pets(),
        _ => answer(500, &[], ""),
    });
    let server = server.await;
    let budget = RetryBudget::new().ratio(0.1).min_per_second(1);
    let client = builder(&server.base()).retry_budget(budget).build().unwrap();
    let many = RequestOptions::new().max_attempts(100);
    let error = client.clone().pets().list().options(&many).send().await.unwrap_err();
    assert_eq!(error.attempts(), 1 + 11, "ten in ten seconds, and a tenth of a call begun");
    while server.count() < 100 {
        let error = client.pets().list().send().await.unwrap_err();
        assert!(error.attempts() <= 2, "a tenth of the calls may be repeated: {error}");
    }
    let retried = server.count();
    for _ in 0..100 {
        client.pets().list().send().await.unwrap();
    }
    assert_eq!(server.count(), retried + 100);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let error = client.clone().pets().list().options(&many).send().await.unwrap_err();
    assert_eq!(error.attempts(), 1 + 11, "what was spent is forgotten");
}

#[tokio::test]
async fn an_unlimited_budget_allows_every_retry() {
    let server = failing(500).await;
    let budget = RetryBudget::unlimited();
    let client = builder(&server.base()).retry_budget(budget).build().unwrap();
    let many = RequestOptions::new().max_attempts(300);
    let error = client.pets().list().options(&many).send().await.unwrap_err();
    assert_eq!(error.attempts(), 300);
}

#[tokio::test(start_paused = true)]
async fn backs_off_with_full_jitter_over_a_doubling_interval() {
    let mut longest = [Duration::ZERO; 3];
    for _ in 0..40 {
        let server = failing(500).await;
        let client = builder(&server.base());
        let client = client
            .backoff(Backoff::new().initial(Duration::from_secs(8)).max(Duration::from_secs(16)));
        let error = client.build().unwrap().pets().list().send().await.unwrap_err();
        let seen = server.seen();
        let mut waited = Duration::ZERO;
        for ((pair, longest), most) in seen.windows(2).zip(&mut longest).zip([8, 16, 16]) {
            let wait = pair[1].at - pair[0].at;
            assert!(wait <= Duration::from_secs(most) + Duration::from_millis(20), "{wait:?}");
            *longest = wait.max(*longest);
            waited += wait;
        }
        assert!(error.waited().abs_diff(waited) < Duration::from_millis(50));
    }
    // Of forty waits spread evenly over an interval, one lies in its upper third but for one
    // time in ten million.
    assert!(longest[0] > Duration::from_secs(5), "{longest:?}");
    assert!(longest[1] > Duration::from_secs(10), "{longest:?}");
}
