//! Tests of what the inspector shows and changes.

use std::time::{Duration, UNIX_EPOCH};

use fantoccini::key::Key;
use petstore_mock::{Builder, Plan};
use serde_json::json;

use super::driver::{NOW, open, open_with};

#[tokio::test(flavor = "multi_thread")]
async fn shows_requests_as_they_come_filters_them_and_opens_one_with_keys_alone() {
    let browser = open().await;
    browser.sees("#empty", "No request yet").await;
    assert_eq!(browser.get("/pets?limit=3").await, 200);
    browser.sees("#rows", "GET /v1/pets?limit=3").await;
    assert_eq!(browser.get("/dogs").await, 404);
    browser.sees("#rows tr:first-child", "GET /v1/dogs").await;
    browser.select("#filter [name=operation]", "listPets").await;
    browser.sees_no("#rows", "/v1/dogs").await;
    browser.sees("#rows", "GET /v1/pets?limit=3").await;

    browser
        .script("document.querySelector('#rows button').focus()")
        .await;
    browser.fill("#rows button", &Key::Enter.to_string()).await;
    browser.sees("#exchange", "x-ratelimit-remaining: 59").await;
    browser.sees("#exchange", "Bearer ***").await;
    browser.fill("#exchange", &Key::Escape.to_string()).await;
    browser.sees_no("#exchange", "x-ratelimit-remaining").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gauges_a_quota_counts_a_ban_down_and_leads_to_requests() {
    let browser = open().await;
    for _ in 0..60 {
        assert_eq!(browser.get("/pets?limit=1").await, 200);
    }
    browser.sees("#key-list", "60 of 60 this minute").await;
    browser.sees("#key-list", "resets in 0:50").await;
    for _ in 0..12 {
        assert_eq!(browser.get("/pets?limit=1").await, 429);
    }
    browser.sees("#key-list", "banned for 5:00").await;
    browser.sees("#chart-text", "free-key: 72 requests").await;
    let refused = "12 refused; at most 60 of 60 in one minute";
    browser.sees("#chart-text", refused).await;
    // Another plan changes the label of a key, and its requests stay.
    let key = browser.server().keys().get("free-key").unwrap();
    key.set_plan(Plan::Pro);
    browser.sees("#chart-text", "at most 60 of 300").await;
    browser.select("#timeline-key", "pro-key").await;
    browser.sees("#chart-text", "pro-key: 0 requests").await;
    browser.sees("#verdict", "violation").await;
    browser.click("#findings summary").await;
    browser.sees("#findings", "#62").await;
    browser.click("#findings .evidence button").await;
    browser.sees("#exchange", "GET /v1/pets?limit=1").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn moves_freezes_and_resumes_the_clock() {
    let browser = open().await;
    let at = |seconds| UNIX_EPOCH + Duration::from_secs(NOW + seconds);
    browser.sees("#now", "2026-01-01 00:00:10 UTC").await;
    browser.click("#clock summary").await;
    browser.click("[data-advance='60']").await;
    browser.sees("#now", "2026-01-01 00:01:10 UTC").await;
    assert_eq!(browser.server().clock().now(), at(60));
    browser.find("#advance input").await.clear().await.unwrap();
    browser.fill("#advance input", "20").await;
    browser.click("#advance button").await;
    browser.sees("#now", "2026-01-01 00:01:30 UTC").await;
    assert_eq!(browser.server().clock().now(), at(80));
    // The page also shows changes of the clock by others.
    browser.server().clock().advance(Duration::from_secs(10));
    browser.sees("#now", "2026-01-01 00:01:40 UTC").await;
    browser.click("#freeze").await;
    browser.sees_no("#freeze", "Resume").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_a_fault_shows_its_hits_and_clears_it() {
    let browser = open().await;
    browser.select("#fault [name=kind]", "status").await;
    browser.fill("#fault [name=value]", "503").await;
    browser.select("#fault [name=operation]", "listPets").await;
    browser.click("#fault button").await;
    browser.sees("#fault-list", "hit 0 times").await;
    assert_eq!(browser.get("/pets").await, 503);
    assert_eq!(browser.get("/store/orders").await, 200);
    browser.sees("#fault-list", "hit 1 time").await;
    browser.click("#clear-faults").await;
    browser.sees_no("#fault-list", "hit").await;
    assert_eq!(browser.get("/pets").await, 200);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_adds_removes_and_resets_the_pets() {
    let browser = open().await;
    for field in ["id", "name", "categoryId", "status"] {
        browser.sees("#pet-fields", field).await;
    }
    assert_eq!(browser.create("Rex").await, 201);
    browser.sees("#pet-rows", "Rex").await;
    browser.sees("#pet-count", "26 of 26").await;
    browser.fill("#new-pet [name=name]", "Tom").await;
    browser.click("#new-pet button").await;
    browser.sees("#pet-count", "27 of 27").await;
    let remove = "const remove = document.querySelector('[aria-label=\"Remove pet 27\"]');
        remove.focus();
        remove.click()";
    browser.script(remove).await;
    browser.sees("#pet-count", "26 of 26").await;
    // The focus stays with the pets.
    let focused = browser.script("return document.activeElement.id").await;
    assert_eq!(focused, json!("pets"));
    browser.confirm().await;
    browser.click("#clear-pets").await;
    browser.sees("#pet-count", "0 of 0").await;
    browser.click("#reset").await;
    browser.sees("#pet-count", "25 of 25").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn adds_changes_bans_and_removes_a_key() {
    let browser = open().await;
    browser.fill("#new-key [name=name]", "mine").await;
    browser.click("#new-key button").await;
    browser.sees("#new-key-text", "The new key is ").await;
    let key = "#key-list [data-key='5']";
    browser.sees(key, "mine").await;
    // A script finds and clicks a button in one step, because an event may redraw it in between.
    let click = |name: &str| format!("document.querySelector('[data-focus={name}-5]').click()");
    for (name, value, shown) in [("plan", "pro", "0 of 300"), ("senders", "8", "8 senders")] {
        let answer = format!("window.prompt = () => '{value}'");
        browser.script(&answer).await;
        browser.script(&click(name)).await;
        browser.sees(key, shown).await;
    }
    browser.script(&click("ban")).await;
    browser.sees(key, "banned for 5:00").await;
    browser.sees("[data-focus='ban-5']", "Unban").await;
    browser.script(&click("ban")).await;
    browser.sees_no("#key-list", "banned for").await;
    browser.confirm().await;
    browser.script(&click("remove")).await;
    browser.sees_no("#key-list", "mine").await;
    assert_eq!(browser.server().keys().all().len(), 4);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finding_stays_open_and_focused_while_requests_come() {
    let browser = open().await;
    for _ in 0..2 {
        assert_eq!(browser.get("/pets?api_key=free-key").await, 200);
    }
    browser.sees("#findings", "violation").await;
    browser.click("#findings summary").await;
    let focus = "document.querySelector('#findings .evidence button').focus()";
    browser.script(focus).await;
    assert_eq!(browser.get("/pets?api_key=free-key").await, 200);
    browser.sees("#findings .evidence", "#3").await;
    let focused = browser.script("return document.activeElement.textContent");
    assert_eq!(focused.await, json!("#1"));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_sends_never_becomes_part_of_the_page() {
    let browser = open().await;
    let name = "<img src=x onerror=\"window.caught = 1\"><script>window.caught = 1</script>";
    assert_eq!(browser.create(name).await, 201);
    browser.sees("#pet-rows", "<img src=x").await;
    browser.click("#rows button").await;
    browser.sees("#exchange", "<script>").await;
    let caught = browser.script("return window.caught ?? null").await;
    assert!(caught.is_null());
    let tags = "return document.querySelectorAll('main img, main script, dialog img').length";
    assert_eq!(browser.script(tags).await, 0);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_nothing_from_elsewhere_and_says_so_when_the_mock_is_gone() {
    let mut browser = open().await;
    let elsewhere = "return performance.getEntriesByType('resource').map((one) => one.name)\
                     .filter((name) => !name.startsWith(location.origin))";
    assert_eq!(browser.script(elsewhere).await, json!([]));
    browser.stop_server();
    browser.sees("#link", "the mock does not answer").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_the_mock_over_tls() {
    let browser = open_with(Builder::tls, &["--ignore-certificate-errors"]).await;
    let protocol = "return performance.getEntriesByType('navigation')[0].nextHopProtocol";
    assert_eq!(browser.script(protocol).await, json!("h2"));
    browser.click("#clock summary").await;
    browser.click("[data-advance='60']").await;
    browser.sees("#now", "2026-01-01 00:01:10 UTC").await;
    assert_eq!(browser.get("/pets").await, 200);
    browser.sees("#rows", "GET /v1/pets").await;
    // A script finds and clicks the row in one step, because an event may redraw the row in
    // between.
    browser
        .script("document.querySelector('#rows button').click()")
        .await;
    browser.click("#copy-curl").await;
    let curl = "curl --insecure -H \"Authorization: Bearer $PETSTORE_API_KEY\"";
    browser.sees("#curl", curl).await;
    browser.sees_no("#curl", "free-key").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_names_and_numbers_as_a_person_reads_them() {
    let set = |builder: Builder| {
        let large = Plan::enterprise(1_000_000, 2_000_000);
        builder
            .key("unnamed", large)
            .named_key("ci", "another", Plan::Free)
    };
    let browser = open_with(set, &[]).await;
    for part in ["key 1", "1,000,000/min", "ci"] {
        browser.sees("#key-list", part).await;
    }
    browser.sees("#verdict", "nothing found").await;
    let broken = "return [...document.querySelectorAll('.whole')].filter((one) => one.getClientRects().length > 1).length";
    assert_eq!(browser.script(broken).await, json!(0));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_findings_come_first_on_a_desk_and_on_a_phone() {
    for (width, most) in [(1_280, [250, 350]), (500, [320, 800])] {
        let browser = open().await;
        browser.page.set_window_size(width, 900).await.unwrap();
        let tops = "return ['#requests', '#report'].map((one) => Math.ceil(document.querySelector(one).getBoundingClientRect().top))";
        let tops = browser.script(tops).await;
        for (place, most) in most.into_iter().enumerate() {
            let top = tops[place].as_i64().unwrap();
            assert!(top < most, "{width}: {tops}");
        }
        browser.close().await;
    }
}
