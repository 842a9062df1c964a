//! A small client for the administration of a running mock.

use std::{fs, io, path::Path, path::PathBuf, time::Duration};

use axum::BoxError;
use bytes::Bytes;
use clap::Args;
use http::{
    Request, Uri,
    header::{AUTHORIZATION, HOST},
};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};

use super::outcome::{CliError, Io};

/// The time limit for connecting, sending and reading together.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Larger than any report.
const MAX_RESPONSE_BYTES: usize = 256 * 1024 * 1024;

/// The port of a mock without `--port`.
pub(super) const DEFAULT_PORT: u16 = 4010;

/// A running mock.
#[derive(Args, Clone)]
pub(super) struct TargetArgs {
    /// URL of the mock, with or without http://; only its scheme, host and port matter (default:
    /// http://127.0.0.1:4010, or with the port in PETSTORE_MOCK_PORT).
    #[arg(value_name = "URL", env = "PETSTORE_MOCK_URL", hide_env = true)]
    url: Option<String>,

    /// File with the certificate authority to trust (PEM), for https.
    ///
    /// The flag of the same name of `serve` writes this file. SSL_CERT_FILE works too.
    #[arg(
        long,
        env = "PETSTORE_MOCK_TLS_CA_FILE",
        hide_env = true,
        value_name = "FILE"
    )]
    tls_ca_file: Option<PathBuf>,
}

/// The client of one mock.
#[derive(Debug)]
pub(super) struct AdminClient {
    address: Address,
    trusted: Option<PathBuf>,
    token: Option<String>,
}

/// A response.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl AdminClient {
    pub(super) fn new(target: &TargetArgs, io: &Io<'_>) -> Result<Self, CliError> {
        let address = match &target.url {
            Some(url) => Address::parse(url)
                .ok_or_else(|| CliError::usage("the URL must be such as http://127.0.0.1:4010"))?,
            None => Address::of_this_machine(io),
        };
        let trusted = target.tls_ca_file.clone();
        Ok(Self {
            address,
            trusted: trusted.or_else(|| (io.variable)("SSL_CERT_FILE").map(PathBuf::from)),
            token: None,
        })
    }

    /// Returns the client with a token for the administration.
    pub(super) fn with_token(self, token: Option<String>) -> Self {
        Self { token, ..self }
    }

    /// Returns the host and port.
    pub(super) fn place(&self) -> String {
        let Address { host, port, .. } = &self.address;
        format!("{host}:{port}")
    }

    /// Sends a GET.
    pub(super) async fn get(&self, path: &str) -> Result<Response, String> {
        match timeout(TIMEOUT, self.ask(path)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no response within {} seconds", TIMEOUT.as_secs())),
        }
    }

    async fn ask(&self, path: &str) -> Result<Response, BoxError> {
        let Address { is_tls, host, port } = &self.address;
        let mut request = Request::get(path).header(HOST, "localhost");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Empty::new())?;
        let stream = TcpStream::connect((&**host, *port)).await?;
        if *is_tls {
            let stream = secure(stream, host, self.trusted.as_deref()).await?;
            exchange(stream, request).await
        } else {
            exchange(stream, request).await
        }
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Empty<Bytes>>,
) -> Result<Response, BoxError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Its errors reach the request, too.
    let connection = tokio::spawn(connection);
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await?;
    connection.abort();
    Ok(Response {
        status: head.status.as_u16(),
        body: body.to_bytes().into(),
    })
}

/// The address to connect to.
#[derive(Debug, PartialEq, Eq)]
struct Address {
    is_tls: bool,
    host: String,
    port: u16,
}

impl Address {
    /// Returns the default: this machine, with the port of the variable of `serve`.
    fn of_this_machine(io: &Io<'_>) -> Self {
        let port = (io.variable)("PETSTORE_MOCK_PORT");
        let port = port.and_then(|port| port.to_str()?.parse().ok());
        Self {
            is_tls: false,
            host: "127.0.0.1".to_owned(),
            port: port.unwrap_or(DEFAULT_PORT),
        }
    }

    /// Parses a URL. Ignores its path, so that a base URL works.
    fn parse(url: &str) -> Option<Self> {
        let uri: Uri = if url.contains("://") {
            url.parse()
        } else {
            format!("http://{url}").parse()
        }
        .ok()?;
        let is_tls = match uri.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let host = uri
            .host()?
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Some(Self { is_tls, host, port })
    }
}

#[cfg(feature = "tls")]
async fn secure(
    stream: TcpStream,
    host: &str,
    trusted: Option<&Path>,
) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let trusted = trusted.ok_or_else(|| {
        io::Error::other("https needs --tls-ca-file FILE, the file that the mock wrote")
    })?;
    let authorities = fs::read(trusted)
        .map_err(|error| io::Error::other(format!("{}: {error}", trusted.display())))?;
    crate::server::connect_tls(stream, host, &authorities).await
}

#[cfg(not(feature = "tls"))]
async fn secure(_: TcpStream, _: &str, _: Option<&Path>) -> io::Result<TcpStream> {
    Err(io::Error::other("this petstore-mock was built without TLS"))
}

/// Returns the token of the administration: from a file, or else from its variable.
pub(super) fn admin_token(file: Option<&Path>, io: &Io<'_>) -> Result<Option<String>, CliError> {
    let Some(path) = file else {
        let token = (io.variable)("PETSTORE_MOCK_ADMIN_TOKEN");
        // A token that is not Unicode becomes invalid here. It is refused without being shown.
        return Ok(token.map(|token| token.to_string_lossy().into_owned()));
    };
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned())),
        Err(error) => Err(CliError::file("read the admin token", path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_any_url_of_the_mock() {
        for (url, is_tls, host, port) in [
            ("http://127.0.0.1:4010", false, "127.0.0.1", 4010),
            ("http://[::1]:4010/v1", false, "::1", 4010),
            ("http://localhost/_mock/health", false, "localhost", 80),
            ("127.0.0.1:4010", false, "127.0.0.1", 4010),
            ("[::1]:4010", false, "::1", 4010),
            ("localhost/v1", false, "localhost", 80),
            ("https://localhost:4010/v1", true, "localhost", 4010),
            ("https://localhost", true, "localhost", 443),
        ] {
            let host = host.to_owned();
            assert_eq!(
                Address::parse(url),
                Some(Address { is_tls, host, port }),
                "{url}"
            );
        }
        for url in ["", "ftp://localhost:4010", "/v1", "http://"] {
            assert_eq!(Address::parse(url), None, "{url}");
        }
    }
}
