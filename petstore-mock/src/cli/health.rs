//! `health`: checks whether a mock is ready, for containers and scripts without another client.

use std::{io, path::Path, time::Duration};

use http::Uri;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{
    args::HealthArgs,
    outcome::{CliError, DONE, Io},
};

/// The time limit for connecting, sending and reading together.
const TIMEOUT: Duration = Duration::from_secs(5);

const REQUEST: &[u8] = b"GET /_mock/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Far more than the size of the response.
const MAX_RESPONSE_BYTES: u64 = 16 * 1024;

pub(super) async fn run(args: &HealthArgs, io: &mut Io<'_>) -> Result<u8, CliError> {
    let address = Address::parse(&args.url)
        .ok_or_else(|| CliError::usage("the URL must be such as http://127.0.0.1:4010"))?;
    let trusted = args.tls_ca_file.as_deref().or(io.trusted.as_deref());
    let problem = match timeout(TIMEOUT, ask(&address, trusted)).await {
        Ok(Ok(response)) if is_ready(&response) => {
            let _ = writeln!(io.out, "ok");
            return Ok(DONE);
        }
        Ok(Ok(_)) => "this is not a mock that is ready".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no response within 5 seconds".to_owned(),
    };
    let Address { host, port, .. } = address;
    Err(CliError::new(format!(
        "no healthy mock at {host}:{port}: {problem}"
    )))
}

fn is_ready(response: &[u8]) -> bool {
    response.starts_with(b"HTTP/1.1 200 ") && response.ends_with(br#"{"status":"ok"}"#)
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

async fn ask(address: &Address, trusted: Option<&Path>) -> io::Result<Vec<u8>> {
    let stream = TcpStream::connect((&*address.host, address.port)).await?;
    if address.is_tls {
        return exchange(secure(stream, &address.host, trusted).await?).await;
    }
    exchange(stream).await
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<Vec<u8>> {
    stream.write_all(REQUEST).await?;
    let mut answer = Vec::new();
    stream
        .take(MAX_RESPONSE_BYTES)
        .read_to_end(&mut answer)
        .await?;
    Ok(answer)
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
    crate::server::connect_tls(stream, host, &std::fs::read(trusted)?).await
}

#[cfg(not(feature = "tls"))]
async fn secure(_: TcpStream, _: &str, _: Option<&Path>) -> io::Result<TcpStream> {
    Err(io::Error::other("this petstore-mock was built without TLS"))
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
