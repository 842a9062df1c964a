//! Tests of which requests faults hit, of their effects on responses, and of faults without a hit.
//! `socket_faults` tests effects on the socket.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use petstore_mock::{Effect, FaultGuard, Operation, RateFault, RetryAfter};
use reqwest::Method;

use super::support::{MINUTE_ENDS, Mock, REX, reply, start};

const HANG: Effect = Effect::Hang {
    after_body_bytes: None,
};

/// Lists pets `count` times, and returns the statuses.
async fn statuses(mock: &Mock, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        statuses.push(mock.get("/v1/pets").await.status);
    }
    statuses
}

/// An effect on a header.
fn set(name: &str, value: Option<&str>) -> Effect {
    Effect::SetHeader {
        name: name.to_owned(),
        value: value.map(str::to_owned),
    }
}

#[tokio::test]
async fn a_fault_on_all_hits_the_service_but_not_the_administration() {
    let mock = start().await;
    let busy = mock.server.faults().on(..).named("busy").status(503);
    for (path, left) in [("/v1/pets", 59), ("/v1/nowhere", 58)] {
        let answer = mock.get_as("free-key", path).await;
        answer.expect_error(503, "service_unavailable");
        // It was admitted like any other.
        assert_eq!(answer.rate(), (60, left, MINUTE_ENDS));
    }
    assert_eq!(mock.get("/_mock/health").await.status, 200);
    assert_eq!(mock.get("/nowhere").await.status, 404);
    assert_eq!(busy.hits(), 2);
    assert_eq!(mock.server.requests(..)[0].faults, ["busy"]);
}

#[tokio::test]
async fn a_fault_hits_an_operation_or_a_path_and_no_other() {
    let mock = start().await;
    let busy = mock.on(Operation::ListPets).status(503);
    let gone = mock.on((Method::GET, "/pets/{petId}")).status(410);
    assert_eq!(mock.get("/v1/pets/1").await.status, 410);
    assert_eq!(mock.post(REX).await.status, 201);
    assert_eq!(mock.get("/v1/pets").await.status, 503);
    for fault in [&busy, &gone] {
        assert_eq!((fault.matched(), fault.hits()), (1, 1));
    }
    drop(busy);
    assert_eq!(mock.get("/v1/pets").await.status, 200);
}

#[tokio::test]
async fn requests_are_counted_in_order_of_arrival() {
    let mock = start().await;
    let list = || mock.on(Operation::ListPets);
    let first = list().first(2).status(500);
    let nth = list().nth(4).status(502);
    let after = list().after(5).status(504);
    let expected = [500, 500, 200, 502, 200, 504, 504];
    assert_eq!(statuses(&mock, 7).await, expected);
    drop((first, nth, after));
    let steps = list().sequence([Effect::Status(503), Effect::Status(500)]);
    assert_eq!(statuses(&mock, 4).await, [503, 500, 200, 200]);
    assert_eq!((steps.matched(), steps.hits()), (4, 2));
}

#[tokio::test]
async fn a_status_prevents_processing_unless_set_otherwise() {
    let mock = start().await;
    let post = || mock.on(Operation::CreatePet);
    for (fault, pets) in [(post(), 25), (post().processed(true), 26)] {
        let _fault = fault.status(500);
        let failed = mock.post(REX).await;
        failed.expect_error(500, "internal_server_error");
        assert_eq!(mock.server.pets().len(), pets);
    }
    // Without a status, what was not carried out is 503.
    let fault = post().processed(false);
    let _fault = fault.apply(Effect::RetryAfter(RetryAfter::Seconds(9)));
    let refused = mock.post(REX).await;
    refused.expect_error(503, "service_unavailable");
    assert_eq!(refused.header("retry-after"), "9");
    assert_eq!(mock.server.pets().len(), 26);
}

#[tokio::test]
async fn a_status_with_and_without_a_body() {
    let mock = start().await;
    let text = |text: &str| Effect::Body {
        text: text.to_owned(),
    };
    for (effect, status, body) in [
        (Effect::All(vec![text(""), Effect::Status(502)]), 502, ""),
        (
            Effect::All(vec![text("<html>"), Effect::Status(502)]),
            502,
            "<html>",
        ),
        (
            Effect::All(vec![text("none"), Effect::Status(204)]),
            204,
            "",
        ),
    ] {
        let _fault = mock.on(Operation::ListPets).apply(effect);
        let answer = mock.get("/v1/pets?limit=1").await;
        assert_eq!((answer.status, &*answer.body), (status, body));
        assert_eq!(answer.header("link"), "-", "{status}");
    }
    let _shape = mock.on(Operation::ListPets).status(404);
    mock.get("/v1/pets").await.expect_error(404, "not_found");
}

#[tokio::test]
#[should_panic(expected = "cannot set Content-Length or Transfer-Encoding")]
async fn no_fault_sets_the_length_of_a_body() {
    let mock = start().await;
    mock.on(Operation::ListPets)
        .apply(set("Content-Length", None))
        .detach();
}

#[tokio::test]
async fn a_delay_passes_on_the_mocks_clock() {
    let mock = start().await;
    let slow = mock.on(Operation::ListPets).delay(Duration::from_secs(30));
    let move_on = async {
        while slow.hits() == 0 {
            tokio::task::yield_now().await;
        }
        let other = mock.get("/v1/pets/1").await;
        assert_eq!(other.status, 200, "others need not wait");
        mock.advance(30);
    };
    let (answer, ()) = tokio::join!(mock.get("/v1/pets"), move_on);
    assert_eq!(answer.header("date"), "Thu, 01 Jan 2026 00:00:40 GMT");
    let note = mock.server.requests(Operation::ListPets)[0].note;
    assert!(note.is_some_and(|note| note.contains("frozen")), "{note:?}");
}

#[tokio::test]
async fn headers_that_are_missing_garbage_or_wrong() {
    let mock = start().await;
    let wrong = RateFault::Wrong {
        limit: None,
        remaining: Some(1_000),
        reset: Some(7),
    };
    let rate = [
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ];
    let rest = ["content-type", "link", "x-a"];
    let page = mock.get("/v1/pets?limit=25").await;
    let json = "application/json";
    for (effect, names, values) in [
        (
            Effect::RateHeaders(RateFault::Missing),
            rate,
            ["-", "-", "-"],
        ),
        (
            Effect::RateHeaders(RateFault::Garbage),
            rate,
            ["1e999", "-1", "tomorrow"],
        ),
        (Effect::RateHeaders(wrong), rate, ["60", "1000", "7"]),
        (set("content-type", None), rest, ["-", "-", "-"]),
        (set("content-type", Some("a/b")), rest, ["a/b", "-", "-"]),
        (set("x-a", Some("b")), rest, [json, "-", "b"]),
    ] {
        let _fault = mock.server.faults().on(..).apply(effect);
        let answer = mock.get_as("free-key", "/v1/pets?limit=25").await;
        assert_eq!(names.map(|name| answer.header(name)), values);
        assert_eq!(answer.body, page.body);
    }
}

#[tokio::test]
async fn an_injected_429_looks_like_the_mocks_own() {
    let mock = start().await;
    let _exhausted = mock.on(Operation::ListPets).status(429);
    let told = mock.get_as("free-key", "/v1/pets").await;
    told.expect_error(429, "rate_limit_exceeded");
    assert_eq!(told.rate(), (60, 0, MINUTE_ENDS));
    assert_eq!(told.header("retry-after"), "50");
    let unless = mock.on(Operation::ListPets);
    let _unless = unless.apply(set("Retry-After", None));
    let told = mock.get_as("free-key", "/v1/pets").await;
    assert_eq!(told.header("retry-after"), "-", "the fault says otherwise");
}

#[tokio::test]
async fn a_fault_that_changed_nothing_has_not_hit() {
    let mock = start().await;
    let text = "{".to_owned();
    let broken = mock.server.faults().on(..).apply(Effect::Body { text });
    let head = mock.request(Method::HEAD, "/v1/pets");
    // A response to HEAD has no body.
    reply(head.bearer_auth("free-key")).await.expect_status(200);
    assert_eq!((broken.matched(), broken.hits()), (1, 0));
    assert_eq!(mock.get("/v1/pets").await.body, "{");
    assert_eq!(broken.hits(), 1);
}

/// Drops a guard, and returns the message if it panics.
fn complaint(guard: FaultGuard) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(guard))).err()?;
    Some(*panic.downcast::<String>().unwrap())
}

#[tokio::test]
async fn a_guard_that_was_never_hit_says_so_and_why() {
    let mock = start().await;
    let faults = mock.server.faults();
    let early = complaint(faults.on(Operation::GetPet).status(500)).unwrap();
    let says = "the fault `status on getPet` was never hit: no request";
    assert!(early.starts_with(says), "{early}");
    let others = faults.on(Operation::GetPet).status(500);
    let late = faults
        .on(Operation::ListPets)
        .nth(2)
        .named("the second list");
    let late = late.reset();
    assert_eq!(mock.get("/v1/pets").await.status, 200);
    let others = complaint(others).unwrap();
    assert!(others.contains("1 requests came, none matched"), "{others}");
    let late = complaint(late).unwrap();
    for part in [
        "`the second list on listPets`",
        "1 matched, none triggered the fault",
    ] {
        assert!(late.contains(part), "{late}");
    }
    assert_eq!(complaint(faults.on(..).apply(HANG).optional()), None);
    assert!(faults.list().is_empty(), "each is removed all the same");
}

#[tokio::test]
async fn a_guard_does_not_make_a_failing_test_abort() {
    let mock = start().await;
    let failing = AssertUnwindSafe(|| {
        let _guard = mock.server.faults().on(..).apply(HANG);
        panic!("the test itself");
    });
    let panic = catch_unwind(failing).unwrap_err();
    assert_eq!(*panic.downcast::<&str>().unwrap(), "the test itself");
}
