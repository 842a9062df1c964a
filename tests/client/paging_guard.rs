//! Tests of invalid links between pages: other origins, circles and endless lists.

use futures_util::{StreamExt as _, TryStreamExt as _};
use petstore_client::{Error, ErrorKind, More};

use super::kit::{answer, client, no_pets};
use super::wire::{Act, Wire, listen};

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
        format!("http://localhost:{port}/v1/pets"),
        format!("http://a:b@127.0.0.1:{port}/v1/pets"),
        format!("\\\\127.0.0.1:{port}\\v1"),
        format!("/\\127.0.0.1:{port}/v1"),
        format!("///127.0.0.1:{port}/v1"),
        format!("https:127.0.0.1:{port}/v1"),
        "file:///etc/passwd".to_owned(),
        "data:application/json,[]".to_owned(),
        "http://[::1".to_owned(),
    ] {
        let server = linking(format!("<{target}>; rel=next"));
        let (count, error) = pages(&server).await;
        let error = error.unwrap();
        assert!(error.kind() == ErrorKind::Paging && count == 1, "{target}: {error}");
        assert_eq!((error.operation(), error.attempts()), (Some("listPets"), 0));
        assert_eq!(server.count(), 1);
    }
    assert_eq!(thief.count(), 0);
}

#[tokio::test]
async fn the_same_host_with_credentials_is_another_origin() {
    for user in ["me", "me:pw", ":pw"] {
        let listener = listen();
        let address = listener.local_addr().unwrap();
        let link = format!("<http://{user}@{address}/v1/pets?c=1>; rel=next");
        let server = Wire::at(listener, move |_| answer(200, &[("Link", &link)], FULL));
        assert_eq!(pages(&server).await.1.unwrap().kind(), ErrorKind::Paging);
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test]
async fn a_page_that_is_refused_was_still_read() {
    let server = linking("<http://evil.example/>; rel=next".to_owned());
    let page = client(&server.base()).pets().list().await.unwrap();
    assert_eq!((page.len(), page.more()), (1, More::Yes));
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
        // The same content under different URLs, and endless empty pages.
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
async fn many_empty_pages_with_a_full_one_between_them_are_no_reason_to_stop() {
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
    let long = format!("<?c={}>; rel=next", "x".repeat(100_000));
    let server = linking(long);
    let (count, error) = pages(&server).await;
    let error = error.unwrap();
    assert!(matches!(error.kind(), ErrorKind::Paging | ErrorKind::InvalidRequest), "{error:?}");
    assert!(error.to_string().len() < 1_000);
    assert_eq!((count, server.count()), (1, 1));
}

#[tokio::test]
async fn odd_characters_in_an_address_are_sent_encoded_or_refused() {
    for odd in ["?c=a b", "?c={}|\\^`", "?c=é\u{1F980}", "?c=%", "?c=%zz", "pets;x=[]?'\""] {
        let bytes = format!("<{odd}>; rel=next");
        let server = Wire::of(vec![answer(200, &[("Link", &bytes)], FULL), no_pets()]);
        let list = client(&server.base());
        let list = list.pets().list().limit(1).items();
        let pets: Vec<_> = list.try_collect().await.unwrap();
        assert_eq!(pets.len(), 1);
        let targets = server.targets();
        assert!(targets.iter().all(|target| target.is_ascii()), "{targets:?}");
    }
}
