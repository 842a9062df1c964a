//! Tests of the effects of faults on the socket, byte by byte.

use std::{
    io::ErrorKind::{ConnectionReset, WouldBlock},
    time::Duration,
};

use petstore_mock::{Effect, MockServer, Operation};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::support::{Mock, REX, post_head, start};

const LIST: &str =
    "GET /v1/pets?limit=3 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer pro-key\r\n\r\n";

/// A connection on which one request after the other is sent.
struct Wire(TcpStream);

impl Wire {
    async fn open(server: &MockServer) -> Self {
        Self(TcpStream::connect(server.addr()).await.unwrap())
    }

    /// Opens a connection that asks for the pets.
    async fn listing(mock: &Mock) -> Self {
        let mut wire = Self::open(&mock.server).await;
        wire.send(LIST).await;
        wire
    }

    async fn send(&mut self, request: &str) {
        self.0.write_all(request.as_bytes()).await.unwrap();
    }

    /// Reads exactly this many bytes.
    async fn read(&mut self, count: usize) -> String {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).await.unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Reads a head to its end, and returns it and the length it promises.
    async fn head(&mut self) -> (String, usize) {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head.push_str(&self.read(1).await);
        }
        let (_, length) = head.split_once("content-length: ").unwrap();
        let length = length.lines().next().unwrap().parse().unwrap();
        (head, length)
    }

    /// Reads a whole answer.
    async fn answer(&mut self) -> String {
        let (head, length) = self.head().await;
        head + &self.read(length).await
    }

    /// Reads to the end of the connection. Returns the text, and whether it ended with a reset.
    async fn rest(&mut self) -> (String, bool) {
        let mut bytes = Vec::new();
        let end = self.0.read_to_end(&mut bytes).await;
        if let Err(error) = &end {
            assert_eq!(error.kind(), ConnectionReset);
        }
        (String::from_utf8(bytes).unwrap(), end.is_err())
    }

    /// Panics if bytes or the end of the connection arrive while the mock serves other requests.
    async fn expect_silence(&mut self, mock: &Mock) {
        for _ in 0..3 {
            assert_eq!(mock.get("/_mock/health").await.status, 200);
        }
        let mut byte = [0];
        assert_eq!(
            self.0.try_read(&mut byte).map_err(|error| error.kind()),
            Err(WouldBlock)
        );
    }
}

/// Returns a response without a fault.
async fn untouched(mock: &Mock) -> String {
    let answer = Wire::listing(mock).await.answer().await;
    // The rate headers differ from one request to the next, but not in length.
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[tokio::test]
async fn a_response_ends_after_the_exact_number_of_bytes() {
    let mock = start().await;
    let whole = untouched(&mock).await;
    let length = u64::try_from(body(&whole).len()).unwrap();
    let cut = |after| Effect::Cut {
        after_body_bytes: after,
    };
    let reset = |after| Effect::Reset {
        after_body_bytes: after,
    };
    for (effect, bytes, is_reset) in [
        (Effect::EmptyReply {}, None, false),
        (reset(None), None, true),
        (reset(Some(0)), Some(0), true),
        (reset(Some(60)), Some(60), true),
        (cut(0), Some(0), false),
        (cut(1), Some(1), false),
        (cut(length - 1), Some(length - 1), false),
    ] {
        let fault = mock.on(Operation::ListPets).apply(effect);
        let (answer, was_reset) = Wire::listing(&mock).await.rest().await;
        assert_eq!(was_reset, is_reset, "{bytes:?}");
        match bytes {
            None => assert_eq!(answer, ""),
            Some(bytes) => {
                let bytes = usize::try_from(bytes).unwrap();
                assert_eq!(body(&answer), &body(&whole)[..bytes]);
                assert!(answer.contains(&format!("content-length: {length}\r\n")));
            }
        }
        assert_eq!(fault.hits(), 1);
        let requests = mock.server.requests(Operation::ListPets);
        assert!(!requests.last().unwrap().answered);
    }
    // A body that is shorter than the cut is complete, also one that a fault sets.
    let text = "abc".to_owned();
    let short = Effect::All(vec![cut(4), Effect::Body { text }]);
    let fault = mock.on(Operation::ListPets).apply(short);
    assert_eq!(body(&Wire::listing(&mock).await.answer().await), "abc");
    let requests = mock.server.requests(Operation::ListPets);
    assert!(requests.last().unwrap().answered);
    drop(fault);
    let fault = mock.on(Operation::ListPets).apply(cut(length));
    let mut wire = Wire::open(&mock.server).await;
    for _ in 0..2 {
        wire.send(LIST).await;
        assert_eq!(body(&wire.answer().await), body(&whole));
    }
    assert_eq!((fault.matched(), fault.optional().hits()), (2, 0));
}

#[tokio::test]
async fn a_hang_lasts_until_the_client_leaves_and_does_not_delay_the_stop() {
    let mock = start().await;
    let hang = |after_body_bytes| Effect::Hang { after_body_bytes };
    let _within = mock.on(Operation::ListPets).first(1).apply(hang(Some(0)));
    let mut within = Wire::listing(&mock).await;
    within.head().await;
    let before = mock.on(Operation::ListPets).apply(hang(None));
    let mut silent = Wire::listing(&mock).await;
    while before.hits() == 0 {
        tokio::task::yield_now().await;
    }
    mock.advance(86_400);
    within.expect_silence(&mock).await;
    silent.expect_silence(&mock).await;
    mock.stop().await;
    assert_eq!(silent.rest().await.0, "");
}

#[tokio::test]
async fn a_trickle_sends_its_bytes_at_each_tick_of_the_mocks_clock() {
    let mock = start().await;
    let whole = untouched(&mock).await;
    let trickle = Effect::Trickle {
        bytes: 100,
        every_seconds: Duration::from_secs(10),
    };
    let cut = Effect::Cut {
        after_body_bytes: 7,
    };
    let effects = Effect::All(vec![trickle, cut]);
    let _fault = mock.on(Operation::ListPets).apply(effects);
    let mut wire = Wire::listing(&mock).await;
    let length = whole.len() - body(&whole).len() + 7;
    let mut answer = String::new();
    while answer.len() < length {
        let step = (length - answer.len()).min(100);
        answer.push_str(&wire.read(step).await);
        if answer.len() < length {
            wire.expect_silence(&mock).await;
        }
        mock.advance(10);
    }
    assert_eq!(wire.rest().await, (String::new(), false));
    assert_eq!(body(&answer), &body(&whole)[..7]);
}

#[tokio::test]
async fn a_pet_whose_response_is_lost_is_created_unless_set_otherwise() {
    let mock = start().await;
    let post = || mock.on(Operation::CreatePet);
    for (fault, pets) in [(post(), 26), (post().processed(false), 26)] {
        let _fault = fault.reset();
        let mut wire = Wire::open(&mock.server).await;
        wire.send(&(post_head("Content-Length: 32") + REX)).await;
        assert_eq!(wire.rest().await, (String::new(), true));
        assert_eq!(mock.server.pets().len(), pets);
    }
}

/// Sends a request over HTTP/2. Returns the status, the length of the received body, and whether it
/// was complete. It may only be complete if the connection accepts another request.
async fn http_2(mock: &Mock) -> (Option<u16>, usize, bool) {
    let stream = TcpStream::connect(mock.server.addr()).await.unwrap();
    let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("http://x/v1/pets?limit=3");
    let request = request
        .header("authorization", "Bearer pro-key")
        .body(())
        .unwrap();
    let (answer, _) = requests.send_request(request, true).unwrap();
    let (mut status, mut length, mut is_whole) = (None, 0, false);
    if let Ok(answer) = answer.await {
        status = Some(answer.status().as_u16());
        let mut body = answer.into_body();
        while let Some(Ok(data)) = body.data().await {
            length += data.len();
            body.flow_control().release_capacity(data.len()).unwrap();
        }
        is_whole = body.is_end_stream();
    }
    assert_eq!(requests.ready().await.is_ok(), is_whole);
    (status, length, is_whole)
}

#[tokio::test]
async fn over_http_2_the_whole_connection_ends() {
    let mock = start().await;
    let length = body(&untouched(&mock).await).len();
    assert_eq!(http_2(&mock).await, (Some(200), length, true));
    let list = || mock.on(Operation::ListPets).first(1);
    let _reset = list().reset();
    assert_eq!(http_2(&mock).await, (None, 0, false));
    let _cut = list().apply(Effect::Cut {
        after_body_bytes: 9,
    });
    assert_eq!(http_2(&mock).await, (Some(200), 9, false));
    assert_eq!(http_2(&mock).await, (Some(200), length, true));
}
