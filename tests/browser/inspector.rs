//! Tests of what the inspector shows and changes.

use std::time::{Duration, UNIX_EPOCH};

use fantoccini::key::Key;
use serde_json::json;

use super::driver::{NOW, open, open_with};

#[tokio::test(flavor = "multi_thread")]
async fn shows_requests_as_they_come_and_filters_them() {
    let browser = open().await;
    browser.sees("#empty", "No request yet").await;
    assert_eq!(browser.get("/pets?limit=3").await, 200);
    browser.sees("#rows", "GET /v1/pets?limit=3").await;
    assert_eq!(browser.get("/dogs").await, 404);
    browser.sees("#rows tr:first-child", "GET /v1/dogs").await;

    browser.sees("#filter [name=operation]", "listPets").await;
    browser
        .find("#filter [name=operation]")
        .await
        .select_by_label("listPets")
        .await
        .unwrap();
    browser.sees_no("#rows", "/v1/dogs").await;
    browser.sees("#rows", "GET /v1/pets?limit=3").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opens_a_request_and_closes_it_with_keys_alone() {
    let browser = open().await;
    assert_eq!(browser.get("/pets?limit=3").await, 200);
    browser.sees("#rows", "GET /v1/pets?limit=3").await;
    browser
        .script("document.querySelector('#rows button').focus()")
        .await;
    let enter = Key::Enter.to_string();
    browser
        .find("#rows button")
        .await
        .send_keys(&enter)
        .await
        .unwrap();
    browser.sees("#exchange", "x-ratelimit-remaining: 59").await;
    browser.sees("#exchange", "Bearer ***").await;
    browser
        .find("#exchange")
        .await
        .send_keys(&Key::Escape.to_string())
        .await
        .unwrap();
    browser.sees_no("#exchange", "x-ratelimit-remaining").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gauges_a_quota_and_counts_a_ban_down() {
    let browser = open().await;
    let mut sender = browser.sender();
    for _ in 0..60 {
        assert_eq!(sender.get("/pets?limit=1"), 200);
    }
    browser.sees("#key-list", "60 of 60 this minute").await;
    browser.sees("#key-list", "resets in 0:50").await;
    for _ in 0..12 {
        assert_eq!(sender.get("/pets?limit=1"), 429);
    }
    browser.sees("#key-list", "banned for 5:00").await;
    browser.sees("#chart-text", "free-key: 72 requests").await;
    browser
        .sees("#chart-text", "12 refused; at most 60 of 60 in one minute")
        .await;
    let key = browser.find("#timeline-key").await;
    key.select_by_label("pro-key").await.unwrap();
    browser.sees("#chart-text", "pro-key: 0 requests").await;
    browser.sees("#verdict", "violation").await;
    browser.click("#findings summary").await;
    browser.sees("#findings", "#62").await;
    // A finding leads to its requests.
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
    let seconds = browser.find("#advance input").await;
    seconds.clear().await.unwrap();
    seconds.send_keys("20").await.unwrap();
    browser.click("#advance button").await;
    browser.sees("#now", "2026-01-01 00:01:30 UTC").await;
    assert_eq!(browser.server().clock().now(), at(80));
    // The page also shows changes of the clock by others.
    browser.server().clock().advance(Duration::from_secs(10));
    assert_eq!(browser.get("/pets").await, 200);
    browser.click("#freeze").await;
    browser.sees_no("#freeze", "Resume").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_a_fault_shows_its_hits_and_clears_it() {
    let browser = open().await;
    browser
        .find("#fault [name=kind]")
        .await
        .select_by_label("status")
        .await
        .unwrap();
    browser
        .find("#fault [name=value]")
        .await
        .send_keys("503")
        .await
        .unwrap();
    browser.sees("#fault [name=operation]", "listPets").await;
    browser
        .find("#fault [name=operation]")
        .await
        .select_by_label("listPets")
        .await
        .unwrap();
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
async fn shows_the_pets_and_resets_them() {
    let browser = open().await;
    browser.sees("#pet-count", "25 of 25").await;
    for field in ["id", "name", "categoryId", "status"] {
        browser.sees("#pet-fields", field).await;
    }
    let rex = json!({"name": "Rex", "categoryId": 7});
    assert_eq!(browser.request("POST", "/pets", Some(rex)).await, 201);
    browser.sees("#pet-rows", "Rex").await;
    browser.sees("#pet-count", "26 of 26").await;
    browser.script("window.confirm = () => true").await;
    browser.click("#reset").await;
    browser.sees("#pet-count", "25 of 25").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn adds_bans_and_removes_a_key() {
    let browser = open().await;
    let name = browser.find("#new-key [name=name]").await;
    name.send_keys("mine").await.unwrap();
    browser.click("#new-key button").await;
    browser.sees("#new-key-text", "The new key is ").await;
    browser.sees("#key-list [data-key='5']", "mine").await;
    // A script finds and clicks a button in one step, because an event may redraw it in between.
    let click = |name: &str| format!("document.querySelector('[data-focus={name}-5]').click()");
    browser.script(&click("ban")).await;
    browser
        .sees("#key-list [data-key='5']", "banned for 5:00")
        .await;
    browser.sees("[data-focus='ban-5']", "Unban").await;
    browser.script(&click("ban")).await;
    browser.sees_no("#key-list", "banned for").await;
    browser.script("window.confirm = () => true").await;
    browser.script(&click("remove")).await;
    browser.sees_no("#key-list", "mine").await;
    assert_eq!(browser.server().keys().all().len(), 4);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn adds_and_removes_pets() {
    let browser = open().await;
    let name = browser.find("#new-pet [name=name]").await;
    name.send_keys("Rex").await.unwrap();
    browser.click("#new-pet button").await;
    browser.sees("#pet-count", "26 of 26").await;
    browser
        .script(
            "const remove = document.querySelector('[aria-label=\"Remove pet 26\"]');
             remove.focus();
             remove.click()",
        )
        .await;
    browser.sees("#pet-count", "25 of 25").await;
    // The focus stays with the pets.
    let focused = browser.script("return document.activeElement.id").await;
    assert_eq!(focused, json!("pets"));
    browser.script("window.confirm = () => true").await;
    browser.click("#clear-pets").await;
    browser.sees("#pet-count", "0 of 0").await;
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
    browser
        .script("document.querySelector('#findings .evidence button').focus()")
        .await;
    assert_eq!(browser.get("/pets?api_key=free-key").await, 200);
    browser.sees("#findings .evidence", "#3").await;
    let focused = browser
        .script("return document.activeElement.textContent")
        .await;
    assert_eq!(focused, json!("#1"));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_sends_never_becomes_part_of_the_page() {
    let browser = open().await;
    let name = "<img src=x onerror=\"window.caught = 1\"><script>window.caught = 1</script>";
    let pet = json!({"name": name, "categoryId": 7});
    assert_eq!(browser.request("POST", "/pets", Some(pet)).await, 201);
    browser.sees("#pet-rows", "<img src=x").await;
    browser.click("#rows button").await;
    browser.sees("#exchange", "<script>").await;
    assert!(
        browser
            .script("return window.caught ?? null")
            .await
            .is_null()
    );
    let tags = "return document.querySelectorAll('main img, main script, dialog img').length";
    assert_eq!(browser.script(tags).await, 0);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn says_so_when_the_mock_is_gone() {
    let mut browser = open().await;
    browser.stop_server();
    browser.sees("#link", "the mock does not answer").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn loads_nothing_from_elsewhere() {
    let browser = open().await;
    let elsewhere = "return performance.getEntriesByType('resource').map((one) => one.name)\
                     .filter((name) => !name.startsWith(location.origin))";
    assert_eq!(browser.script(elsewhere).await, json!([]));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_the_mock_over_tls() {
    let ignore_authority = ["--ignore-certificate-errors"];
    let browser = open_with(petstore_mock::Builder::tls, &ignore_authority).await;
    let protocol = "return performance.getEntriesByType('navigation')[0].nextHopProtocol";
    assert_eq!(browser.script(protocol).await, json!("h2"));
    browser.click("#clock summary").await;
    browser.click("[data-advance='60']").await;
    browser.sees("#now", "2026-01-01 00:01:10 UTC").await;
    browser.click("#fault button").await;
    browser.sees("#fault-list", "hit 0 times").await;
    assert_eq!(browser.get("/pets").await, 503);
    browser.click("#clear-faults").await;
    browser.sees_no("#fault-list", "hit").await;
    browser.sees("#rows", "GET /v1/pets").await;
    // A script finds and clicks the row in one step, because an event may redraw the row in
    // between.
    browser
        .script("document.querySelector('#rows button').click()")
        .await;
    browser.click("#copy-curl").await;
    browser
        .sees(
            "#curl",
            "curl --insecure -H \"Authorization: Bearer $PETSTORE_API_KEY\"",
        )
        .await;
    browser.sees_no("#curl", "free-key").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shows_names_and_numbers_as_a_person_reads_them() {
    let set = |builder: petstore_mock::Builder| {
        let large = petstore_mock::Plan::enterprise(1_000_000, 2_000_000);
        builder
            .key("unnamed", large)
            .named_key("ci", "another", petstore_mock::Plan::Free)
    };
    let browser = open_with(set, &[]).await;
    browser.sees("#key-list", "key 1").await;
    browser.sees("#key-list", "1,000,000/min").await;
    browser.sees("#key-list", "ci").await;
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
        browser.page.refresh().await.unwrap();
        browser.sees("#link", "live").await;
        let tops = "return ['#requests', '#report'].map((one) => document.querySelector(one).getBoundingClientRect().top)";
        let tops = browser.script(tops).await;
        for (place, most) in most.into_iter().enumerate() {
            let top = tops[place].as_f64().unwrap();
            assert!(top < f64::from(most), "{width}: {tops}");
        }
        browser.close().await;
    }
}
