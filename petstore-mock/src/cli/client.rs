//! A small client for the administration of a running mock.

use std::{fs, io, path::Path, path::PathBuf, time::Duration};

use clap::Args;
use http::Uri;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::outcome::{CliError, Io};

/// The time limit for connecting, sending and reading together.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Larger than any report.
const MAX_RESPONSE_BYTES: u64 = 256 * 1024 * 1024;

/// A running mock.
#[derive(Args, Clone)]
pub(super) struct TargetArgs {
    /// URL of the mock, with or without http://; only its scheme, host and port matter.
    #[arg(
        value_name = "URL",
        env = "PETSTORE_MOCK_URL",
        hide_env = true,
        default_value = "http://127.0.0.1:4010"
    )]
    url: String,

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
        let address = Address::parse(&target.url)
            .ok_or_else(|| CliError::usage("the URL must be such as http://127.0.0.1:4010"))?;
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

    async fn ask(&self, path: &str) -> io::Result<Response> {
        let Address { is_tls, host, port } = &self.address;
        let authorization = match &self.token {
            Some(token) => format!("Authorization: Bearer {token}\r\n"),
            None => String::new(),
        };
        // With HTTP/1.0, the response ends with the connection.
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n{authorization}\r\n");
        let stream = TcpStream::connect((&**host, *port)).await?;
        let answer = if *is_tls {
            let stream = secure(stream, host, self.trusted.as_deref()).await?;
            exchange(stream, &request).await?
        } else {
            exchange(stream, &request).await?
        };
        parse(&answer).ok_or_else(|| io::Error::other("the response is no whole HTTP response"))
    }
}

async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &str,
) -> io::Result<Vec<u8>> {
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    let mut limited = stream.take(MAX_RESPONSE_BYTES);
    limited.read_to_end(&mut answer).await?;
    Ok(answer)
}

/// Parses a response that ends with the connection; `None` if it is malformed or incomplete.
fn parse(answer: &[u8]) -> Option<Response> {
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n")?;
    let (head, body) = (str::from_utf8(&answer[..end]).ok()?, &answer[end + 4..]);
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.strip_prefix("HTTP/1.")?.split(' ');
    let status = words.nth(1)?.parse().ok()?;
    for line in lines {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") && value.trim().parse() != Ok(body.len()) {
            return None;
        }
    }
    Some(Response {
        status,
        body: body.to_vec(),
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
) -> io::Result<impl AsyncRead + AsyncWrite + Unpin> {
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

    #[test]
    fn takes_whole_responses_only() {
        let whole = b"HTTP/1.0 404 Not Found\r\nContent-Length: 2\r\n\r\nno";
        let response = parse(whole).unwrap();
        assert_eq!((response.status, &*response.body), (404, &b"no"[..]));
        for broken in [
            &whole[..whole.len() - 1],
            b"HTTP/1.1 200 OK\r\n",
            b"",
            b"HTTP/2 200 OK\r\n\r\n",
            b"220 mail ready\r\n\r\n",
        ] {
            assert!(parse(broken).is_none(), "{}", broken.escape_ascii());
        }
    }
}
