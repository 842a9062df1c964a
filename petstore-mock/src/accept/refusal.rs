//! What hyper refuses by itself, it refuses without a body. This puts the service's Error shape, and
//! what every answer has, in its place.

use bytes::Bytes;

use crate::{
    error::{ApiError, ErrorCode},
    router::Front,
};

/// hyper's answers to what it can't read, to the letter, and what is said instead.
const OF_HYPER: [(&[u8], ErrorCode); 3] = [
    (b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", ErrorCode::BadRequest),
    (b"HTTP/1.1 414 URI Too Long\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", ErrorCode::UriTooLong),
    (
        b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        ErrorCode::HeadersTooLarge,
    ),
];

/// Returns where in `bytes` such an answer begins, and what to say instead; nothing where they end with
/// none. No answer of the mock's own looks like this: it has a `Date`.
pub(super) fn of_hyper(bytes: &[u8]) -> Option<(usize, ErrorCode)> {
    if !bytes.ends_with(b"\r\ncontent-length: 0\r\n\r\n") {
        return None;
    }
    let found = OF_HYPER.iter().find(|(answer, _)| bytes.ends_with(answer));
    found.map(|(answer, code)| (bytes.len() - answer.len(), *code))
}

/// Returns a whole answer to what hyper refuses.
pub(super) fn answer(front: &Front, code: ErrorCode) -> Bytes {
    let message = match code {
        ErrorCode::UriTooLong => "the target of the request is longer than 65534 bytes",
        ErrorCode::HeadersTooLarge => {
            "the request has more than 500 header fields, or more than 1 MiB of them: send fewer"
        }
        ErrorCode::RequestTimeout => "the head of the request took too long to arrive",
        _ => "this is no HTTP request that can be read",
    };
    written(front, ApiError::new(code, message))
}

/// Returns a whole answer, after which the connection is closed.
pub(super) fn written(front: &Front, error: ApiError) -> Bytes {
    let (head, body) = front.refuse(error).into_parts();
    let mut answer = format!("HTTP/1.1 {}\r\nconnection: close\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        answer.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    answer.extend(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    answer.extend(body);
    answer.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_hypers_own_answers_also_after_others() {
        let (answer, _) = OF_HYPER[1];
        assert_eq!(of_hyper(answer), Some((0, ErrorCode::UriTooLong)));
        let two = [b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n7", answer].concat();
        assert_eq!(of_hyper(&two), Some((39, ErrorCode::UriTooLong)));
        assert_eq!(of_hyper(b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n"), None);
        assert_eq!(of_hyper(b""), None);
    }
}
