//! The transports of the tests: the built-in one, wrappers around it, and custom ones, with and
//! without the mark that says whether a request was sent.

#![cfg(target_os = "linux")]

use ::http as http_types;
use http_types::header::CONTENT_LENGTH;
use petstore_client::ClientBuilder;
use petstore_client::bytes::Bytes;
use petstore_client::http::StatusCode;
use petstore_client::transport::{Builtin, SendMark, Transport, TransportError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(super) type HttpRequest = http_types::Request<Bytes>;
pub(super) type HttpResult = Result<http_types::Response<Bytes>, TransportError>;

/// The transport of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Builtin,
    /// A transport that hands requests on to the built-in one.
    Wrapped,
    /// A transport that sets the mark before it sends.
    Marking,
    /// A transport that ignores the mark.
    Unmarked,
    /// A transport that hands requests on to the built-in one without their mark.
    WrappedUnmarked,
}

pub(super) const ROUTES: &[Route] = &[
    Route::Builtin,
    Route::Wrapped,
    Route::Marking,
    Route::Unmarked,
    Route::WrappedUnmarked,
];

impl Route {
    pub(super) fn passes_the_mark(self) -> bool {
        match self {
            Self::Builtin | Self::Wrapped | Self::Marking => true,
            Self::Unmarked | Self::WrappedUnmarked => false,
        }
    }

    /// Returns whether the settings of the built-in transport apply.
    pub(super) fn has_builtin(self) -> bool {
        match self {
            Self::Builtin | Self::Wrapped | Self::WrappedUnmarked => true,
            Self::Marking | Self::Unmarked => false,
        }
    }

    pub(super) fn apply(self, builder: ClientBuilder) -> ClientBuilder {
        match self {
            Self::Builtin => builder,
            Self::Wrapped => builder.wrap_transport(|builtin| Wrapper {
                builtin,
                removes_mark: false,
            }),
            Self::WrappedUnmarked => builder.wrap_transport(|builtin| Wrapper {
                builtin,
                removes_mark: true,
            }),
            Self::Marking => builder.transport(Own { marks: true }),
            Self::Unmarked => builder.transport(Own { marks: false }),
        }
    }
}

/// Hands requests on to the built-in transport.
struct Wrapper {
    builtin: Builtin,
    removes_mark: bool,
}

impl Transport for Wrapper {
    async fn send(&self, request: HttpRequest) -> HttpResult {
        if !self.removes_mark {
            return self.builtin.send(request).await;
        }
        let (head, body) = request.into_parts();
        let mut other = HttpRequest::new(body);
        *other.method_mut() = head.method;
        *other.uri_mut() = head.uri;
        *other.headers_mut() = head.headers;
        self.builtin.send(other).await
    }
}

/// A small HTTP client: one connection per request.
struct Own {
    marks: bool,
}

impl Transport for Own {
    async fn send(&self, mut request: HttpRequest) -> HttpResult {
        let mark = self.marks.then(|| SendMark::take(&mut request));
        let authority = request.uri().authority().unwrap().as_str();
        let mut stream = TcpStream::connect(authority)
            .await
            .map_err(TransportError::connect)?;
        if request.uri().scheme_str() == Some("https") {
            return Err(refuse_tls(request.uri().to_string()).await);
        }
        if let Some(mark) = mark {
            mark.sent();
        }
        let sent = stream.write_all(&written(&request)).await;
        sent.map_err(TransportError::interrupted)?;
        read(&mut stream).await.map_err(TransportError::interrupted)
    }
}

/// Fails the handshake, as every server with TLS does here.
async fn refuse_tls(url: String) -> TransportError {
    let error = reqwest::Client::new().get(url).send().await.unwrap_err();
    TransportError::tls(error)
}

fn written(request: &HttpRequest) -> Vec<u8> {
    let path = request.uri().path();
    let length = request.body().len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), request.body()].concat()
}

/// Reads a response with a length.
async fn read(stream: &mut TcpStream) -> Result<http_types::Response<Bytes>, String> {
    let mut bytes = Vec::new();
    loop {
        if let Some(response) = parsed(&bytes)? {
            return Ok(response);
        }
        match stream.read_buf(&mut bytes).await {
            Ok(0) => return Err("the connection was closed".to_owned()),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Parses a response, if it is complete.
fn parsed(bytes: &[u8]) -> Result<Option<http_types::Response<Bytes>>, String> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.lines();
    let line = lines.next().unwrap_or_default();
    let Some(status) = line.strip_prefix("HTTP/1.1 ") else {
        return Err("no HTTP".to_owned());
    };
    let mut response = http_types::Response::new(Bytes::copy_from_slice(&bytes[end + 4..]));
    *response.status_mut() = StatusCode::from_bytes(&status.as_bytes()[..3]).unwrap();
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        let name: http_types::HeaderName = name.parse().unwrap();
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    let length: usize = match response.headers().get(CONTENT_LENGTH) {
        Some(length) => length.to_str().unwrap().parse().unwrap(),
        None => 0,
    };
    if response.body().len() < length && !response.status().is_client_error() {
        return Ok(None);
    }
    Ok(Some(response))
}
