//! Tests of the inspector on a phone, on a small desk, and with only a keyboard.

use super::driver::open;

#[tokio::test(flavor = "multi_thread")]
async fn fits_a_phone() {
    let browser = open().await;
    browser.page.set_window_size(500, 900).await.unwrap();
    assert_eq!(browser.get("/pets?limit=100&status=available").await, 200);
    browser.sees("#rows", "/v1/pets").await;
    let too_wide =
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.script(too_wide).await, 0);
    // Phones are narrower than the browser's smallest window.
    let wider_than_a_phone = "document.body.style.width = '360px';
        return [...document.querySelectorAll('section > *, section label, section select')]
            .filter((one) => !one.closest('.scroll') && one.getBoundingClientRect().right > 360)
            .map((one) => one.outerHTML.slice(0, 60))";
    let wider = browser.script(wider_than_a_phone).await;
    assert_eq!(wider, serde_json::json!([]));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_control_has_a_name_and_that_of_the_clock_has_its_time() {
    let browser = open().await;
    let nameless = "return [...document.querySelectorAll('button, input, select')].filter((one) =>
        !(one.textContent.trim() || one.getAttribute('aria-label') || one.labels?.length))
        .map((one) => one.outerHTML)";
    assert_eq!(browser.script(nameless).await, serde_json::json!([]));
    browser.sees("#now", "2026-01-01 00:00:10 UTC").await;
    let name = "const clock = document.querySelector('#clock summary');
        return clock.getAttribute('aria-label') ?? clock.textContent";
    let name = browser.script(name).await;
    assert_eq!(name, "Clock 2026-01-01 00:00:10 UTC frozen");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_columns_fit_a_small_desk_and_a_phone_is_told_of_others() {
    for (width, fits) in [(1_280, true), (500, false)] {
        let browser = open().await;
        browser.page.set_window_size(width, 900).await.unwrap();
        let path = "/pets?limit=100&status=available&more=0123456789012345678901234567890123456789";
        assert_eq!(browser.get(path).await, 200);
        browser.sees("#rows", "/v1/pets").await;
        let columns = "const table = document.querySelector('#requests .scroll');
            return [table.scrollWidth <= table.clientWidth, document.querySelector('#hint').hidden]";
        assert_eq!(
            browser.script(columns).await,
            serde_json::json!([fits, fits]),
            "{width}"
        );
        browser.close().await;
    }
}
