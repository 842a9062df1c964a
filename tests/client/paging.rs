//! Tests of pages. The client follows every valid `Link: …; rel="next"`. It follows no link to
//! another origin, and stops at pages that repeat or never end.

use std::fmt::Display;

use futures_util::TryStreamExt as _;
use petstore_client::{Error, ErrorKind, PetStatus, RequestOptions};

use super::kit::{answer, client, no_pets};
use super::wire::{Act, Wire, listen};

fn pets(ids: &[usize]) -> String {
    let one = |id: &usize| format!(r#"{{"id":{id},"name":"p{id}","categoryId":1}}"#);
    format!("[{}]", ids.iter().map(one).collect::<Vec<_>>().join(","))
}

fn page(ids: &[usize], link: &str) -> Act {
    answer(200, &[("Link", link)], pets(ids))
}

/// The last page of a list.
fn last(ids: &[usize]) -> Act {
    answer(200, &[], pets(ids))
}

#[tokio::test]
async fn follows_links_relative_to_the_page_and_whole_addresses_on_its_origin() {
    let listener = listen();
    let whole = format!(
        "<http://{}/v1/pets?c=5>; rel=next",
        listener.local_addr().unwrap()
    );
    let links = [
        "</v1/pets?limit=2&c=1>; rel=\"next\"",
        "<?c=2>; rel=next",
        "<../v1/pets?c=a%2Fb>; rel=next",
        "</a>; rel=prev, </v1/pets?c=4#fragment>; rel=next",
        &whole,
    ];
    let links = links.map(str::to_owned);
    let server = Wire::at(listener, move |number| {
        let link = links.get(number).map(|link| ("Link", &**link));
        answer(200, link.as_slice(), pets(&[number]))
    });
    let list = client(&server.base()).pets().list().limit(2).items();
    let ids: Vec<_> = list.map_ok(|pet| pet.id).try_collect().await.unwrap();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5]);
    let queries = ["limit=2", "limit=2&c=1", "c=2", "c=a%2Fb", "c=4", "c=5"];
    assert_eq!(
        server.targets(),
        queries.map(|query| format!("/v1/pets?{query}"))
    );
}

#[tokio::test]
async fn pages_say_whether_more_follow() {
    let server = Wire::of(vec![page(&[1, 2], "<?cursor=x>; rel=next"), last(&[])]);
    let client = client(&server.base());
    let list = client.pets().list().limit(2).status(PetStatus::Sold);
    let pages: Vec<_> = list.pages().try_collect().await.unwrap();
    let more = pages.iter().map(|page| (page.len(), page.has_more()));
    assert!(more.eq([(2, Some(true)), (0, Some(false))]));
    let targets = ["/v1/pets?limit=2&status=sold", "/v1/pets?cursor=x"];
    assert_eq!(server.targets(), targets);
}

#[tokio::test]
async fn a_full_page_without_a_link_says_that_there_may_be_more() {
    let twenty: Vec<_> = (1..=20).collect();
    let server = Wire::of(vec![last(&twenty)]);
    let client = client(&server.base());
    let list = client.pets().list();
    assert_eq!(list.clone().await.unwrap().has_more(), None);
    assert_eq!(list.clone().limit(20).await.unwrap().has_more(), None);
    assert_eq!(list.limit(21).await.unwrap().has_more(), Some(false));
}

#[tokio::test]
async fn each_page_is_retried_and_limited_like_any_call() {
    let server = Wire::of(vec![
        page(&[1, 2], "<?c=1>; rel=next"),
        answer(503, &[], ""),
        page(&[3, 4], "<?c=2>; rel=next"),
        answer(500, &[], ""),
    ]);
    let client = client(&server.base());
    let twice = RequestOptions::new().max_attempts(2);
    let mut pages = client.pets().list().limit(2).options(&twice).pages();
    assert_eq!(server.count(), 0, "a stream asks when it is polled");
    for requests in [1, 3] {
        assert_eq!(pages.try_next().await.unwrap().unwrap().len(), 2);
        assert_eq!(server.count(), requests);
    }
    let error = pages.try_next().await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Server, 2));
    assert_eq!(error.operation(), Some("listPets"));
    // The stream ends after its first error.
    assert!(pages.try_next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_list_goes_on_later_from_a_page_that_was_named_as_next() {
    let server = Wire::of(vec![
        page(&[1, 2], "</v1/pets?cursor=x>; rel=next"),
        page(&[3, 4], "</v1/pets?cursor=y>; rel=next"),
        last(&[5]),
    ]);
    let client = client(&server.base());
    let first = client.pets().list().limit(2).send().await.unwrap();
    let next = first.next_url.unwrap();
    let rest = client.pets().list().limit(2).from_page(next).items();
    let rest: Vec<_> = rest.map_ok(|pet| pet.id).try_collect().await.unwrap();
    assert_eq!(rest, [3, 4, 5]);
    let targets = ["/v1/pets?cursor=x", "/v1/pets?cursor=y"];
    assert_eq!(server.targets()[1..], targets);
    // Wherever a URL comes from, the key goes only to its origin.
    let elsewhere = "http://127.0.0.1:9/v1/pets".parse().unwrap();
    let error = client.pets().list().from_page(elsewhere).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
}

const FULL: &str = r#"[{"id":1,"name":"a","categoryId":1}]"#;

/// Answers with a full page and a link to the next one.
fn linking(link: impl Display) -> Act {
    answer(200, &[("Link", &format!("<{link}>; rel=next"))], FULL)
}

/// Returns the number of pages, and the error after them.
async fn pages(server: &Wire) -> (usize, Error) {
    let client = client(&server.base());
    let mut stream = client.pets().list().limit(1).pages();
    let mut count = 0;
    loop {
        match stream.try_next().await {
            Ok(page) => assert!(page.is_some() && count < 200, "no error comes"),
            Err(error) => return (count, error),
        }
        count += 1;
    }
}

#[tokio::test]
async fn the_key_never_goes_to_another_origin() {
    let thief = Wire::start(|_| no_pets());
    let thiefs = thief.origin()["http://".len()..].to_owned();
    let listener = listen();
    let own = listener.local_addr().unwrap();
    let targets = [
        thief.base(),
        format!("//{thiefs}/v1/pets"),
        format!("\\\\{thiefs}\\v1"),
        format!("///{thiefs}/v1"),
        format!("https:{thiefs}/v1"),
        "http://[::1".to_owned(),
        format!("http://me:pw@{own}/v1/pets?c=1"),
    ];
    let count = targets.len();
    let server = Wire::at(listener, move |number| linking(&targets[number]));
    for number in 1..=count {
        let (pages, error) = pages(&server).await;
        assert_eq!((error.kind(), pages), (ErrorKind::Paging, 1), "{error}");
        assert_eq!((error.operation(), error.attempts()), (Some("listPets"), 0));
        assert_eq!(server.count(), number);
    }
    assert_eq!(thief.count(), 0);
}

#[tokio::test]
async fn pages_that_lead_nowhere_end_the_stream() {
    type Script = fn(usize) -> Act;
    fn two_pages_that_name_each_other(number: usize) -> Act {
        let link = format!("<?limit=1&side={}>; rel=next", number % 2);
        page(&[number], &link)
    }
    let scripts: [(Script, usize, usize); 5] = [
        // The URL was requested before.
        (|_| linking("?limit=1"), 1, 1),
        (|_| linking("#x"), 1, 1),
        (two_pages_that_name_each_other, 3, 3),
        // These have the same content under different URLs, or endless empty pages.
        (|number| linking(format!("?c={number}")), 1, 2),
        (
            |number| page(&[], &format!("<?c={number}>; rel=next")),
            100,
            101,
        ),
    ];
    for (script, expected, requests) in scripts {
        let server = Wire::start(script);
        let (pages, error) = pages(&server).await;
        assert_eq!(error.kind(), ErrorKind::Paging, "{error}");
        assert_eq!((pages, server.count()), (expected, requests));
    }
}

#[tokio::test]
async fn empty_pages_are_no_reason_to_stop() {
    let server = Wire::start(|number| {
        let ids = if number == 60 { &[1][..] } else { &[] };
        match number {
            150 => last(&[]),
            _ => page(ids, &format!("<?c={number}>; rel=next")),
        }
    });
    let client = client(&server.base());
    let pages: Vec<_> = client.pets().list().pages().try_collect().await.unwrap();
    assert_eq!(pages.len(), 151);
}

#[tokio::test]
async fn odd_characters_in_an_address_are_never_sent_and_a_long_one_is_an_error() {
    for odd in ["?c=a b{}|\\^`", "?c=é\u{1F980}", "?c=%zz", "pets;x=[]?'\""] {
        let server = Wire::of(vec![linking(odd), no_pets()]);
        let list = client(&server.base()).pets().list().limit(1).items();
        let pets: Vec<_> = list.try_collect().await.unwrap();
        assert_eq!(pets.len(), 1);
        let targets = server.targets();
        assert!(targets.iter().all(|target| target.is_ascii()), "{odd}");
    }
    let server = Wire::of(vec![linking(format!("?c={}", "x".repeat(100_000)))]);
    let (count, error) = pages(&server).await;
    assert!(error.to_string().len() < 1_000);
    assert_eq!((count, server.count()), (1, 1));
}
