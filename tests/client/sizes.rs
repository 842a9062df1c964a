//! Bodies that are too large, announced or not.

use petstore_client::{Client, Error, ErrorKind, NewPet, RequestOptions};

use super::kit::{client, http, once};
use super::wire::{Act, Wire};

const MIB: usize = 1024 * 1024;

async fn list(client: &Client) -> Result<usize, Error> {
    Ok(client.pets().list().options(&once()).await?.len())
}

fn chunk(length: usize) -> Vec<u8> {
    let mut chunk = format!("{length:x}\r\n").into_bytes();
    chunk.resize(chunk.len() + length, b' ');
    chunk.extend_from_slice(b"\r\n");
    chunk
}

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

#[tokio::test]
async fn a_body_of_exactly_the_default_cap_is_read_and_one_byte_more_is_not() {
    for (extra, fits) in [(0, true), (1, false)] {
        let body = format!("[]{}", " ".repeat(10 * MIB - 2 + extra));
        let server = Wire::start(move |_| Act::Answer(http(200, &[], &body)));
        match list(&client(&server.base())).await {
            Ok(pets) => assert!(fits && pets == 0),
            Err(error) => {
                assert!(!fits && error.kind() == ErrorKind::BodyTooLarge, "{error}");
                assert_eq!(error.status().unwrap(), 200);
                assert!(error.to_string().contains("10485760 bytes"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn an_endless_chunked_body_ends_at_the_cap() {
    let server = Wire::start(|_| Act::Flood(CHUNKED.to_vec(), chunk(65_536)));
    let error = list(&client(&server.base())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BodyTooLarge, "{error}");
}

#[tokio::test]
async fn a_cap_of_ones_own_holds_for_one_call_or_for_all() {
    let small = RequestOptions::new().max_response_bytes(10);
    let server = Wire::start(|_| Act::Answer(http(200, &[], "[          ]")));
    let client = super::kit::builder(&server.base()).options(&small).build().unwrap();
    let error = client.pets().list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BodyTooLarge, "{error}");
    assert_eq!(error.attempts(), 1, "it would be too large again");
    let enough = RequestOptions::new().max_response_bytes(12);
    client.pets().list().options(&enough).await.unwrap();
    let error =
        client.pets().list().options(&small.max_response_bytes(0)).send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BodyTooLarge, "{error}");
}

#[tokio::test]
async fn a_created_pet_that_is_too_large_may_have_been_created() {
    let server = Wire::start(|_| Act::Answer(http(201, &[], " ".repeat(100))));
    let small = RequestOptions::new().max_response_bytes(10);
    let client = client(&server.base());
    let error = client.pets().create(&NewPet::new("a", 1)).options(&small).await.unwrap_err();
    assert!(error.kind() == ErrorKind::BodyTooLarge && error.may_have_been_processed(), "{error}");
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn an_announced_size_allocates_nothing() {
    for length in ["9223372036854775807", "18446744073709551615"] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n[]");
        let server = Wire::start(move |_| Act::Cut(head.clone().into_bytes()));
        let error = list(&client(&server.base())).await.unwrap_err();
        assert!(
            error.kind() == ErrorKind::Interrupted || error.kind() == ErrorKind::BodyTooLarge,
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_huge_error_body_is_cut_and_the_error_is_the_services() {
    for (head, more) in [
        (&b"HTTP/1.1 404 X\r\nTransfer-Encoding: chunked\r\n\r\n"[..], chunk(65_536)),
        (b"HTTP/1.1 404 X\r\n\r\n", vec![b'x'; 65_536]),
    ] {
        let server = Wire::start(move |_| Act::Flood(head.to_vec(), more.clone()));
        let error = list(&client(&server.base())).await.unwrap_err();
        assert!(error.is_not_found(), "{error}");
        assert_eq!(error.body().unwrap().len(), 64 * 1024);
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_of_an_error_is_awaited_than_is_kept() {
    let mut bytes = b"HTTP/1.1 500 X\r\nContent-Length: 999999\r\n\r\n".to_vec();
    bytes.resize(bytes.len() + 70_000, b'x');
    let server = Wire::start(move |_| Act::Stall(bytes.clone()));
    let start = tokio::time::Instant::now();
    let error = list(&client(&server.base())).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Server && !error.body().unwrap().is_empty(), "{error}");
    assert!(start.elapsed() < std::time::Duration::from_secs(1));
}

#[tokio::test]
async fn an_endless_head_is_given_up() {
    for more in ["X-A: aaaaaaaaaaaaaaaa\r\n", "aaaaaaaaaaaaaaaa"] {
        let server = Wire::start(move |_| {
            Act::Flood(b"HTTP/1.1 200 OK\r\nX-B: ".to_vec(), more.repeat(1_000).into_bytes())
        });
        let error = list(&client(&server.base())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
    }
}
