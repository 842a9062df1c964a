//! Tests of which requests faults hit, of their effects on responses, and of faults without a hit.
//! `socket_faults` tests effects on the socket.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use petstore_mock::{Effect, Fault, FaultGuard, HeaderField, Operation, RateFault, RetryAfter};
use reqwest::{
    Method,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde_json::json;

use super::support::{MINUTE_ENDS, Mock, NOW, REX, reply, start, start_with};

/// Lists pets `count` times, and returns the statuses.
async fn statuses(mock: &Mock, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        statuses.push(mock.get("/v1/pets").await.status);
    }
    statuses
}

#[tokio::test]
async fn a_fault_hits_its_operation_and_no_other() {
    let mock = start().await;
    let busy = mock.on(Operation::ListPets).status(503);
    assert_eq!(mock.get("/v1/pets/1").await.status, 200);
    assert_eq!(mock.post(REX).await.status, 201);
    assert_eq!(mock.get("/v1/pets").await.status, 503);
    assert_eq!((busy.matched(), busy.hits()), (1, 1));
    drop(busy);
    assert_eq!(mock.get("/v1/pets").await.status, 200);
}

#[tokio::test]
async fn a_fault_on_all_hits_the_service_but_not_the_administration() {
    let mock = start().await;
    let busy = mock.server.faults().on_all().status(503);
    for path in ["/v1/pets", "/v1/pets/1", "/v1/store/orders", "/v1/nowhere"] {
        mock.get(path)
            .await
            .expect_error(503, "service_unavailable");
    }
    assert_eq!(mock.get("/_mock/health").await.status, 200);
    assert_eq!(mock.get("/nowhere").await.status, 404);
    assert_eq!(busy.hits(), 4);
}

#[tokio::test]
async fn requests_are_counted_in_order_of_arrival() {
    let mock = start().await;
    let faults = mock.server.faults();
    let _first = faults.on(Operation::ListPets).first(2).status(500);
    let _nth = faults.on(Operation::ListPets).nth(4).status(502);
    let _after = faults.on(Operation::ListPets).after(5).status(504);
    assert_eq!(
        statuses(&mock, 7).await,
        [500, 500, 200, 502, 200, 504, 504]
    );
}

#[tokio::test]
async fn a_sequence_takes_its_steps_and_then_lets_go() {
    let mock = start().await;
    let steps = [Effect::status(503), Effect::bare_status(500)];
    let fault = mock.on(Operation::ListPets).sequence(steps);
    assert_eq!(statuses(&mock, 4).await, [503, 500, 200, 200]);
    assert_eq!((fault.matched(), fault.hits()), (4, 2));
}

#[tokio::test]
async fn a_status_prevents_processing_unless_set_otherwise() {
    let mock = start().await;
    for (processed, pets) in [(None, 25), (Some(true), 26), (Some(false), 26)] {
        let builder = mock.on(Operation::CreatePet);
        let builder = match processed {
            Some(processed) => builder.processed(processed),
            None => builder,
        };
        let _fault = builder.status(500);
        mock.post(REX)
            .await
            .expect_error(500, "internal_server_error");
        let all = mock.get("/v1/pets?limit=100").await.json();
        assert_eq!(all.as_array().unwrap().len(), pets, "{processed:?}");
    }
}

#[tokio::test]
async fn what_is_not_carried_out_is_503_where_no_status_is_set() {
    let mock = start().await;
    let fault = mock.on(Operation::CreatePet).processed(false);
    let fault = fault.apply(Effect::RetryAfter(RetryAfter::Seconds(9)));
    let refused = mock.post(REX).await;
    refused.expect_error(503, "service_unavailable");
    assert_eq!((refused.header("retry-after"), fault.hits()), ("9", 1));
    drop(fault);
    assert_eq!(mock.post(REX).await.json()["id"], 26);
}

#[tokio::test]
async fn what_is_hit_uses_quota_and_has_rate_headers() {
    let mock = start().await;
    let _fault = mock.server.faults().on_all().first(2).status(503);
    for left in [59, 58, 57] {
        let answer = mock.get_as("free-key", "/v1/pets").await;
        assert_eq!(answer.rate(), (60, left, MINUTE_ENDS));
        assert_eq!(answer.header("date"), "Thu, 01 Jan 2026 00:00:10 GMT");
    }
}

#[tokio::test]
async fn a_status_with_and_without_a_body() {
    let mock = start().await;
    let list = || mock.on(Operation::ListPets).first(1);
    let _shape = list().status(404);
    mock.get("/v1/pets").await.expect_error(404, "not_found");
    let _bare = list().apply(Effect::bare_status(502));
    let bare = mock.get("/v1/pets?limit=1").await;
    assert_eq!(
        (bare.status, &*bare.body, bare.header("link")),
        (502, "", "-")
    );
    let page = Effect::All(vec![
        Effect::Body {
            text: "<html>".to_owned(),
        },
        Effect::status(502),
    ]);
    let _page = list().apply(page);
    assert_eq!(mock.get("/v1/pets").await.body, "<html>");
    for status in [204, 205, 304] {
        let text = Effect::Body {
            text: "none".to_owned(),
        };
        let _none = list().apply(Effect::All(vec![Effect::status(status), text]));
        let none = mock.get("/v1/pets").await;
        assert_eq!((none.status, &*none.body), (status, ""));
        let journal = mock.server.requests(Operation::ListPets);
        assert_eq!(journal.last().unwrap().reply_body_length, 0);
    }
}

#[tokio::test]
#[should_panic(expected = "cannot set Content-Length or Transfer-Encoding")]
async fn no_fault_sets_the_length_of_a_body() {
    let mock = start().await;
    let field = HeaderField::new(HeaderName::from_static("content-length"), None);
    mock.on(Operation::ListPets)
        .apply(Effect::SetHeader(field))
        .detach();
}

#[tokio::test]
async fn a_delay_passes_on_the_mocks_clock() {
    let mock = start().await;
    let slow = mock.on(Operation::ListPets).delay(Duration::from_secs(30));
    let move_on = async {
        while slow.matched() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            mock.get("/v1/pets/1").await.status,
            200,
            "others need not wait"
        );
        assert_eq!(slow.hits(), 1, "the hit counts when the delay begins");
        mock.advance(30);
    };
    let (answer, ()) = tokio::join!(mock.get("/v1/pets"), move_on);
    assert_eq!((answer.status, slow.hits()), (200, 1));
    assert_eq!(answer.header("date"), "Thu, 01 Jan 2026 00:00:40 GMT");
}

#[tokio::test]
async fn a_wrong_content_type() {
    let mock = start().await;
    let right = mock.get("/v1/pets?limit=2").await;
    let list = || mock.on(Operation::ListPets);

    let html = HeaderValue::from_static("text/html");
    let fault = list().apply(Effect::SetHeader(HeaderField::new(CONTENT_TYPE, html)));
    let wrong = mock.get("/v1/pets?limit=2").await;
    assert_eq!(
        (wrong.header(CONTENT_TYPE.as_str()), &wrong.body),
        ("text/html", &right.body)
    );
    drop(fault);

    let _fault = list().apply(Effect::SetHeader(HeaderField::new(CONTENT_TYPE, None)));
    assert_eq!(
        mock.get("/v1/pets?limit=2").await.header("content-type"),
        "-"
    );
}

#[tokio::test]
async fn rate_headers_that_are_missing_garbage_or_wrong() {
    let mock = start().await;
    let rate = async |fault| {
        let _fault = mock
            .server
            .faults()
            .on_all()
            .apply(Effect::RateHeaders(fault));
        let answer = mock.get_as("free-key", "/v1/pets").await;
        let header = |name| answer.header(name).to_owned();
        [
            "x-ratelimit-limit",
            "x-ratelimit-remaining",
            "x-ratelimit-reset",
        ]
        .map(header)
    };
    assert_eq!(rate(RateFault::Missing).await, ["-", "-", "-"]);
    assert_eq!(rate(RateFault::Garbage).await, ["1e999", "-1", "tomorrow"]);
    let wrong = RateFault::Wrong {
        limit: None,
        remaining: Some(1_000),
        reset: Some(7),
    };
    assert_eq!(rate(wrong).await, ["60", "1000", "7"]);
}

#[tokio::test]
async fn an_injected_429_looks_like_the_mocks_own() {
    let mock = start().await;
    let exhausted = mock.on(Operation::ListPets).first(2).status(429);
    let told = mock.get_as("free-key", "/v1/pets").await;
    told.expect_error(429, "rate_limit_exceeded");
    assert_eq!(told.rate(), (60, 0, MINUTE_ENDS));
    assert_eq!(told.header("retry-after"), "50");
    let other = Effect::All(vec![
        Effect::RetryAfter(RetryAfter::Missing),
        Effect::RateHeaders(RateFault::Missing),
    ]);
    let _other = mock.on(Operation::ListPets).apply(other);
    let told = mock.get_as("free-key", "/v1/pets").await;
    assert_eq!(
        (told.header("retry-after"), told.header("x-ratelimit-limit")),
        ("-", "-"),
        "the fault says otherwise"
    );
    drop(exhausted);
}

#[tokio::test]
async fn waits_that_are_off() {
    let mock = start().await;
    for (form, value) in [
        (RetryAfter::Seconds(2), "2".to_owned()),
        (
            RetryAfter::HttpDate(2),
            "Thu, 01 Jan 2026 00:00:12 GMT".to_owned(),
        ),
        (
            RetryAfter::Rfc850(2),
            "Thursday, 01-Jan-26 00:00:12 GMT".to_owned(),
        ),
        (
            RetryAfter::Asctime(2),
            "Thu Jan  1 00:00:12 2026".to_owned(),
        ),
        (RetryAfter::Epoch(2), (NOW + 2).to_string()),
        (RetryAfter::Text(String::new()), String::new()),
        (RetryAfter::Text("soon".to_owned()), "soon".to_owned()),
    ] {
        let _fault = mock
            .server
            .faults()
            .on_all()
            .apply(Effect::RetryAfter(form));
        assert_eq!(mock.get("/v1/pets").await.header("retry-after"), value);
    }
}

#[tokio::test]
async fn any_header_is_set_or_removed() {
    let mock = start().await;
    let set = |name, value: Option<HeaderValue>| {
        Effect::SetHeader(HeaderField::new(HeaderName::from_static(name), value))
    };
    let b = Some(HeaderValue::from_static("b"));
    let _fault = mock.on(Operation::ListPets).apply(Effect::All(vec![
        set("x-a", b.clone()),
        set("x-ratelimit-limit", b),
        set("link", None),
    ]));
    let page = mock.get("/v1/pets?limit=3").await;
    let names = ["x-a", "x-ratelimit-limit", "link"];
    assert_eq!(names.map(|name| page.header(name)), ["b", "b", "-"]);
}

#[tokio::test]
async fn a_fault_that_changed_nothing_has_not_hit() {
    let mock = start().await;
    let text = "{".to_owned();
    let broken = mock.server.faults().on_all().apply(Effect::Body { text });
    let head = mock
        .request(Method::HEAD, "/v1/pets")
        .bearer_auth("free-key");
    assert_eq!(reply(head).await.status, 200);
    assert_eq!(
        (broken.matched(), broken.hits()),
        (1, 0),
        "an answer to HEAD has no body"
    );
    assert_eq!(mock.get("/v1/pets").await.body, "{");
    assert_eq!(broken.hits(), 1);
}

#[tokio::test]
async fn a_fault_hits_a_method_and_a_path() {
    let mock = start().await;
    let gone = mock.on((Method::GET, "/pets/{petId}")).status(410);
    assert_eq!(statuses(&mock, 1).await, [200]);
    assert_eq!(mock.get("/v1/pets/1").await.status, 410);
    assert_eq!((gone.matched(), gone.hits()), (1, 1));
}

#[tokio::test]
#[should_panic(expected = "requests are counted from 1")]
async fn a_fault_that_can_never_hit_is_refused() {
    let mock = start().await;
    mock.on(Operation::ListPets).first(0).reset().detach();
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
    assert!(
        early.starts_with("the fault `status on getPet` was never hit: no request"),
        "{early}"
    );
    let others = faults.on(Operation::GetPet).status(500);
    let late = faults
        .on(Operation::ListPets)
        .nth(2)
        .named("the second list")
        .reset();
    assert_eq!(mock.get("/v1/pets").await.status, 200);
    let others = complaint(others).unwrap();
    assert!(others.contains("1 requests came, none matched"), "{others}");
    let late = complaint(late).unwrap();
    assert!(late.contains("`the second list on listPets`"), "{late}");
    assert!(
        late.contains("1 matched, none triggered the fault"),
        "{late}"
    );
    assert_eq!(
        complaint(
            faults
                .on_all()
                .apply(Effect::Hang {
                    after_body_bytes: None
                })
                .optional()
        ),
        None
    );
    assert!(faults.list().is_empty(), "each is removed all the same");
}

#[tokio::test]
async fn a_guard_does_not_make_a_failing_test_abort() {
    let mock = start().await;
    let failing = AssertUnwindSafe(|| {
        let _guard = mock.server.faults().on_all().apply(Effect::Hang {
            after_body_bytes: None,
        });
        panic!("the test itself");
    });
    let panic = catch_unwind(failing).unwrap_err();
    assert_eq!(*panic.downcast::<&str>().unwrap(), "the test itself");
}

#[tokio::test]
async fn faults_are_listed_with_their_hits_and_can_be_removed() {
    let mock = start().await;
    let faults = mock.server.faults().clone();
    let one = faults
        .on(Operation::ListPets)
        .key("free-key")
        .status(500)
        .detach();
    let two = faults.on_all().seed(7).delay(Duration::ZERO).detach();
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.status, 500);
    assert_eq!(
        serde_json::to_value(faults.list()).unwrap(),
        json!([
            {
                "id": one, "operation": "listPets", "key": "[hidden]", "when": "always", "seed": 0,
                "effect": {"status": {"status": 500}}, "seen": 1, "matched": 1, "hits": 1
            },
            {
                "id": two, "when": "always", "seed": 7,
                "effect": {"delay": {"seconds": 0.0}}, "seen": 1, "matched": 1, "hits": 1
            },
        ])
    );
    assert!(faults.remove(one));
    assert!(!faults.remove(one));
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.status, 200);
    faults.clear();
    assert!(faults.list().is_empty());
}

#[tokio::test]
async fn a_fault_of_the_builder_is_active_from_the_first_request() {
    let text = r#"{"when": {"first": 1}, "effect": {"status": {"status": 418, "code": "tea"}}}"#;
    let fault: Fault = serde_json::from_str(text).unwrap();
    let mock = start_with(|builder| builder.fault(fault)).await;
    mock.get("/v1/pets").await.expect_error(418, "tea");
    assert_eq!(mock.get("/v1/pets").await.status, 200);
}

#[tokio::test]
async fn the_journal_names_the_faults_that_hit() {
    let mock = start().await;
    let faults = mock.server.faults();
    let _busy = faults.on_all().named("busy").status(503);
    let _slow = faults.on_all().apply(Effect::All(vec![
        Effect::Delay(Duration::ZERO.into()),
        Effect::RetryAfter(RetryAfter::Seconds(1)),
    ]));
    let _never = faults
        .on_all()
        .apply(Effect::Cut {
            after_body_bytes: 1_000_000,
        })
        .optional();
    mock.get("/v1/pets").await;
    let exchange = &mock.server.requests(Operation::ListPets)[0];
    let named: Vec<_> = exchange.faults.iter().map(AsRef::<str>::as_ref).collect();
    assert_eq!(named, ["delay + retryAfter", "busy"]);
    assert_eq!(exchange.status, Some(503));
}
