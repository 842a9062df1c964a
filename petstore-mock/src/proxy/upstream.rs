//! The connection to a real service: `http`, or `https` with the system's certificates. The key goes to
//! this origin only, because redirects are not followed.

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, stream};
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, Uri, Version,
    header::{
        ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
    uri::{Authority, PathAndQuery, Scheme},
};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName},
};
use tower_service::Service;

use crate::clock::real_time;

/// Longer bodies are passed on as they arrive, unchecked and without faults: 4 MiB.
const MAX_WHOLE: usize = 4 * 1024 * 1024;

/// A body that pauses for this long is passed on as it arrives, in real time.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Fields that belong to a connection (RFC 9110, section 7.6.1).
const OF_THE_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    EXPECT,
];

/// A real service. Clones share its connections.
#[derive(Clone)]
pub(crate) struct Upstream {
    scheme: Scheme,
    authority: Authority,
    /// The path of the base URL, without a slash at its end.
    path: String,
    timeout: Duration,
    client: Client<Connector, Body>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

/// The base URL is invalid, or the system has no certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseUpstreamError {
    #[error(
        "give the service's base URL, such as https://petstore.example/v1, without credentials"
    )]
    Url,
    #[error("this system has no certificate authorities: set SSL_CERT_FILE")]
    Certificates,
}

/// Why there is no response.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    #[error("the service at {0} cannot be reached, or closed the connection")]
    Unreachable(Authority),
    #[error("the service at {0} did not answer in time")]
    Timeout(Authority),
}

/// The response of the service.
pub(crate) struct Answer {
    /// The response with its whole body, or with the beginning of it.
    pub(crate) response: Response<Bytes>,
    /// The whole body as it arrives, if it is long or slow.
    pub(crate) stream: Option<Body>,
}

impl Upstream {
    /// Parses a base URL.
    pub(crate) fn new(url: &str, timeout: Duration) -> Result<Self, ParseUpstreamError> {
        let uri: Uri = url.parse().map_err(|_| ParseUpstreamError::Url)?;
        let (Some(scheme), Some(authority)) = (uri.scheme().cloned(), uri.authority().cloned())
        else {
            return Err(ParseUpstreamError::Url);
        };
        let is_http = scheme == Scheme::HTTP || scheme == Scheme::HTTPS;
        if !is_http || uri.query().is_some() || authority.as_str().contains('@') {
            return Err(ParseUpstreamError::Url);
        }
        let tls = if scheme == Scheme::HTTPS {
            Some(TlsConnector::from(Arc::new(trust_of_the_system()?)))
        } else {
            None
        };
        let connector = Connector { tls };
        Ok(Self {
            scheme,
            authority,
            path: uri.path().trim_end_matches('/').to_owned(),
            timeout,
            client: Client::builder(TokioExecutor::new()).build(connector),
        })
    }

    /// Sends a request for a path under `/v1`, and returns the response.
    pub(crate) async fn forward(&self, request: Request<Body>) -> Result<Answer, UpstreamError> {
        let request = self.rewritten(request)?;
        let response = tokio::select! {
            response = self.client.request(request) => {
                response.map_err(|_| UpstreamError::Unreachable(self.authority.clone()))?
            }
            () = real_time::sleep(self.timeout) => {
                return Err(UpstreamError::Timeout(self.authority.clone()));
            }
        };
        self.read(response).await
    }

    /// Returns the request as it is sent to the service: with the service's origin and path, and
    /// without the fields of the connection.
    fn rewritten(&self, request: Request<Body>) -> Result<Request<Body>, UpstreamError> {
        let (mut parts, body) = request.into_parts();
        let target = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let rest = target.strip_prefix("/v1").unwrap_or(target);
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(format!("{}{rest}", self.path));
        // A valid path is still valid with another prefix.
        parts.uri = uri
            .build()
            .map_err(|_| UpstreamError::Unreachable(self.authority.clone()))?;
        parts.version = Version::HTTP_11;
        remove_connection_fields(&mut parts.headers);
        for name in [HOST, HeaderName::from_static("x-mock-fault")] {
            parts.headers.remove(name);
        }
        // The mock checks the response's body, so it must not be compressed.
        let identity = HeaderValue::from_static("identity");
        parts.headers.insert(ACCEPT_ENCODING, identity);
        Ok(Request::from_parts(parts, body))
    }

    /// Reads a body to its end, unless it is long or slow.
    async fn read(&self, response: Response<Incoming>) -> Result<Answer, UpstreamError> {
        let (mut parts, mut body) = response.into_parts();
        remove_connection_fields(&mut parts.headers);
        let mut start = BytesMut::new();
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = real_time::sleep(MAX_PAUSE) => break,
            };
            match frame {
                None => {
                    // A fault may change the body, so its length is removed. The response to HEAD
                    // announces the length of another body, so that stays.
                    if !start.is_empty() {
                        parts.headers.remove(CONTENT_LENGTH);
                    }
                    let response = Response::from_parts(parts, start.freeze());
                    return Ok(Answer {
                        response,
                        stream: None,
                    });
                }
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        start.extend_from_slice(data);
                    }
                    if start.len() > MAX_WHOLE {
                        break;
                    }
                }
                Some(Err(_)) => return Err(UpstreamError::Unreachable(self.authority.clone())),
            }
        }
        // Without the length, the server notices the end of the body, and counts the request as
        // answered.
        parts.headers.remove(CONTENT_LENGTH);
        let start = start.freeze();
        let first = stream::iter([Ok(start.clone())]);
        let rest = body
            .into_data_stream()
            .map(|data| data.map_err(io::Error::other));
        Ok(Answer {
            response: Response::from_parts(parts, start),
            stream: Some(Body::from_stream(first.chain(rest))),
        })
    }
}

fn remove_connection_fields(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.into_iter().chain(OF_THE_CONNECTION) {
        headers.remove(name);
    }
}

fn trust_of_the_system() -> Result<ClientConfig, ParseUpstreamError> {
    let mut roots = RootCertStore::empty();
    // If one of many certificates is unreadable, the others are still trusted.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(ParseUpstreamError::Certificates);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| ParseUpstreamError::Certificates)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Connects to the service.
#[derive(Clone)]
struct Connector {
    /// `None` for plain HTTP.
    tls: Option<TlsConnector>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection, with or without TLS.
struct Link(Box<dyn Stream>);

impl Service<Uri> for Connector {
    type Response = TokioIo<Link>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let tls = self.tls.clone();
        Box::pin(async move {
            let host = uri.host().unwrap_or_default();
            let host = host
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned();
            let default = if tls.is_some() { 443 } else { 80 };
            let port = uri.port_u16().unwrap_or(default);
            let stream = TcpStream::connect((&*host, port)).await?;
            // If the option cannot be set, the connection is slower, but works.
            let _ = stream.set_nodelay(true);
            let stream: Box<dyn Stream> = match tls {
                None => Box::new(stream),
                Some(tls) => {
                    let name = ServerName::try_from(host).map_err(io::Error::other)?;
                    Box::new(tls.connect(name, stream).await?)
                }
            };
            Ok(TokioIo::new(Link(stream)))
        })
    }
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Link {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Link {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(url: &str) -> Result<Upstream, ParseUpstreamError> {
        Upstream::new(url, Duration::from_secs(1))
    }

    #[test]
    fn takes_base_urls_only() {
        for url in [
            "",
            "petstore.example/v1",
            "ftp://x/v1",
            "http://u:p@x/v1",
            "http://x/v1?a=1",
        ] {
            assert_eq!(upstream(url).unwrap_err(), ParseUpstreamError::Url, "{url}");
        }
    }

    #[test]
    fn a_request_keeps_its_path_and_loses_connection_fields() {
        let upstream = upstream("http://127.0.0.1:9/base/v2/").unwrap();
        let request = Request::get("http://mock/v1/pets?limit=5")
            .header("host", "mock")
            .header("connection", "close, x-hop")
            .header("x-hop", "1")
            .header("accept-encoding", "gzip")
            .header("authorization", "Bearer k")
            .body(Body::empty())
            .unwrap();
        let request = upstream.rewritten(request).unwrap();
        assert_eq!(request.uri(), "http://127.0.0.1:9/base/v2/pets?limit=5");
        let mut names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept-encoding", "authorization"]);
        assert_eq!(request.headers()["accept-encoding"], "identity");
    }
}
