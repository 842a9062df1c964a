//! Tests of pages. The client follows every valid `Link: …; rel="next"`. It follows no link to
//! another origin, and stops at pages that repeat or never end.

use futures_util::{StreamExt as _, TryStreamExt as _};
use petstore_client::{Client, Error, ErrorKind, PetStatus, RequestOptions};

use super::kit::{answer, client, no_pets};
use super::wire::{Act, Wire, listen};

fn pets(ids: &[i64]) -> String {
    let one = |id: &i64| format!(r#"{{"id":{id},"name":"p{id}","categoryId":1}}"#);
    format!("[{}]", ids.iter().map(one).collect::<Vec<_>>().join(","))
}

fn page(ids: &[i64], links: &[&str]) -> Act {
    let links: Vec<_> = links.iter().map(|link| ("Link", *link)).collect();
    answer(200, &links, pets(ids))
}

async fn ids(client: &Client) -> Result<Vec<i64>, Error> {
    client
        .pets()
        .list()
        .limit(2)
        .items()
        .map_ok(|pet| pet.id)
        .try_collect()
        .await
}

#[tokio::test]
async fn follows_every_way_to_write_the_next_page() {
    for (link, target) in [
        (
            "</v1/pets?limit=2&cursor=x>; rel=\"next\"",
            "/v1/pets?limit=2&cursor=x",
        ),
        ("<?cursor=x>; rel=next", "/v1/pets?cursor=x"),
        (
            "<../v1/pets?cursor=a%2Fb>; rel=next",
            "/v1/pets?cursor=a%2Fb",
        ),
        (
            "</v1/pets?c=1,2;3>; title=\"a, b; rel=\\\"last\\\"\"; rel=\"next\"",
            "/v1/pets?c=1,2;3",
        ),
        ("</a>; rel=prev, </b#fragment>; rel=next", "/b"),
    ] {
        let server = Wire::of(vec![page(&[1, 2], &[link]), page(&[3], &[])]);
        assert_eq!(
            ids(&client(&server.base())).await.unwrap(),
            [1, 2, 3],
            "{link}"
        );
        assert_eq!(server.targets()[1], target);
    }
}

#[tokio::test]
async fn follows_a_whole_address_on_the_same_origin() {
    let listener = listen();
    let link = format!(
        "<http://{}/v1/pets?cursor=x>; rel=next",
        listener.local_addr().unwrap()
    );
    let server = Wire::at(listener, move |number| match number {
        0 => page(&[1, 2], &["</x>; rel=last", &link]),
        _ => page(&[3], &[]),
    });
    assert_eq!(ids(&client(&server.base())).await.unwrap(), [1, 2, 3]);
    assert_eq!(server.targets()[1], "/v1/pets?cursor=x");
}

#[tokio::test]
async fn the_first_page_is_asked_with_no_invented_parameter() {
    let server = Wire::of(vec![
        page(&[1, 2], &["<?cursor=x>; rel=next"]),
        page(&[], &[]),
    ]);
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
    let twenty: Vec<i64> = (1..=20).collect();
    let server = Wire::start(move |_| page(&twenty, &[]));
    let client = client(&server.base());
    let list = client.pets().list();
    assert_eq!(list.clone().await.unwrap().has_more(), None);
    assert_eq!(list.clone().limit(20).await.unwrap().has_more(), None);
    assert_eq!(list.limit(21).await.unwrap().has_more(), Some(false));
}

#[tokio::test]
async fn each_page_is_retried_and_limited_like_any_call() {
    let server = Wire::of(vec![
        page(&[1, 2], &["<?c=1>; rel=next"]),
        answer(503, &[], ""),
        page(&[3, 4], &["<?c=2>; rel=next"]),
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
        page(&[1, 2], &["</v1/pets?cursor=x>; rel=next"]),
        page(&[3, 4], &["</v1/pets?cursor=y>; rel=next"]),
        page(&[5], &[]),
    ]);
    let client = client(&server.base());
    let first = client.pets().list().limit(2).send().await.unwrap();
    let next = first.next_url.unwrap();
    let rest = client.pets().list().limit(2).from_page(next).items();
    let rest: Vec<_> = rest.map_ok(|pet| pet.id).try_collect().await.unwrap();
    assert_eq!(rest, [3, 4, 5]);
    assert_eq!(
        server.targets()[1..],
        ["/v1/pets?cursor=x", "/v1/pets?cursor=y"]
    );
    // Wherever a URL comes from, the key goes only to its origin.
    let elsewhere = "http://127.0.0.1:9/v1/pets".parse().unwrap();
    let error = client.pets().list().from_page(elsewhere).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
}

const FULL: &str = r#"[{"id":1,"name":"a","categoryId":1}]"#;

/// Returns the number of pages, and the error after them.
async fn pages(server: &Wire) -> (usize, Option<Error>) {
    let client = client(&server.base());
    let mut stream = client.pets().list().limit(1).pages();
    let mut count = 0;
    loop {
        match stream.next().await {
            Some(Ok(_)) => count += 1,
            Some(Err(error)) => {
                assert!(stream.next().await.is_none());
                return (count, Some(error));
            }
            None => return (count, None),
        }
    }
}

fn linking(link: String) -> Wire {
    Wire::start(move |_| answer(200, &[("Link", &link)], FULL))
}

#[tokio::test]
async fn the_key_never_goes_to_another_origin() {
    let thief = Wire::start(|_| no_pets());
    let port = thief.origin().rsplit(':').next().unwrap().to_owned();
    for target in [
        thief.base(),
        format!("//127.0.0.1:{port}/v1/pets"),
        format!("http://a:b@127.0.0.1:{port}/v1/pets"),
        format!("\\\\127.0.0.1:{port}\\v1"),
        format!("///127.0.0.1:{port}/v1"),
        format!("https:127.0.0.1:{port}/v1"),
        "file:///etc/passwd".to_owned(),
        "http://[::1".to_owned(),
    ] {
        let server = linking(format!("<{target}>; rel=next"));
        let (count, error) = pages(&server).await;
        let error = error.unwrap();
        assert!(
            error.kind() == ErrorKind::Paging && count == 1,
            "{target}: {error}"
        );
        assert_eq!((error.operation(), error.attempts()), (Some("listPets"), 0));
        assert_eq!(server.count(), 1);
    }
    assert_eq!(thief.count(), 0);
}

#[tokio::test]
async fn the_same_host_with_credentials_is_another_origin() {
    let listener = listen();
    let address = listener.local_addr().unwrap();
    let link = format!("<http://me:pw@{address}/v1/pets?c=1>; rel=next");
    let server = Wire::at(listener, move |_| answer(200, &[("Link", &link)], FULL));
    assert_eq!(pages(&server).await.1.unwrap().kind(), ErrorKind::Paging);
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn pages_that_lead_nowhere_end_the_stream() {
    type Script = fn(usize) -> Act;
    fn linked(link: &str, body: &str) -> Act {
        answer(200, &[("Link", &format!("<{link}>; rel=next"))], body)
    }
    fn two_pages_that_name_each_other(number: usize) -> Act {
        let pet = FULL.replace('1', &(number + 1).to_string());
        linked(&format!("?limit=1&side={}", number % 2), &pet)
    }
    let scripts: [(Script, usize, usize); 6] = [
        // The URL was requested before.
        (|_| linked("?limit=1", FULL), 1, 1),
        (|_| linked("", FULL), 1, 1),
        (|_| linked("#x", FULL), 1, 1),
        (two_pages_that_name_each_other, 3, 3),
        // These have the same content under different URLs, or endless empty pages.
        (|number| linked(&format!("?c={number}"), FULL), 1, 2),
        (|number| linked(&format!("?c={number}"), "[]"), 100, 101),
    ];
    for (script, expected, requests) in scripts {
        let server = Wire::start(script);
        let (pages, error) = pages(&server).await;
        assert_eq!(error.unwrap().kind(), ErrorKind::Paging);
        assert_eq!((pages, server.count()), (expected, requests));
    }
}

#[tokio::test]
async fn empty_pages_are_no_reason_to_stop() {
    let server = Wire::start(|number| {
        let link = format!("<?c={number}>; rel=next");
        match number {
            60 => answer(200, &[("Link", &link)], FULL),
            150 => no_pets(),
            _ => answer(200, &[("Link", &link)], "[]"),
        }
    });
    let (pages, error) = pages(&server).await;
    assert!(error.is_none() && pages == 151);
}

#[tokio::test]
async fn an_address_that_cannot_be_sent_is_an_error_and_no_panic() {
    let server = linking(format!("<?c={}>; rel=next", "x".repeat(100_000)));
    let (count, error) = pages(&server).await;
    assert!(error.unwrap().to_string().len() < 1_000);
    assert_eq!((count, server.count()), (1, 1));
}

#[tokio::test]
async fn odd_characters_in_an_address_are_sent_encoded_or_refused() {
    for odd in [
        "?c=a b",
        "?c={}|\\^`",
        "?c=é\u{1F980}",
        "?c=%",
        "?c=%zz",
        "pets;x=[]?'\"",
    ] {
        let bytes = format!("<{odd}>; rel=next");
        let server = Wire::of(vec![answer(200, &[("Link", &bytes)], FULL), no_pets()]);
        let list = client(&server.base());
        let list = list.pets().list().limit(1).items();
        let pets: Vec<_> = list.try_collect().await.unwrap();
        assert_eq!(pets.len(), 1);
        let targets = server.targets();
        assert!(
            targets.iter().all(|target| target.is_ascii()),
            "{targets:?}"
        );
    }
}
