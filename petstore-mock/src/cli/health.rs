//! `health`: asks a mock whether it serves, for containers and scripts that have no other client.

use std::time::Duration;

use http::Uri;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{Io, command::HealthArgs, exit};

/// For everything together.
const LIMIT: Duration = Duration::from_secs(5);

pub(super) async fn run(args: &HealthArgs, io: &mut Io<'_>) -> u8 {
    let Some((host, port)) = address(&args.url) else {
        let _ = writeln!(
            io.err,
            "petstore-mock: the URL must be such as http://127.0.0.1:4010; https is not spoken here"
        );
        return exit::USAGE;
    };
    let answer = match timeout(LIMIT, ask(&host, port)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return unhealthy(io, &host, port, &error.to_string()),
        Err(_) => return unhealthy(io, &host, port, "no answer within 5 seconds"),
    };
    if answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(br#"{"status":"ok"}"#) {
        let _ = writeln!(io.out, "ok");
        return exit::DONE;
    }
    unhealthy(io, &host, port, "the answer is not that of a mock that serves")
}

fn unhealthy(io: &mut Io<'_>, host: &str, port: u16, why: &str) -> u8 {
    let _ = writeln!(io.err, "petstore-mock: no healthy mock at {host}:{port}: {why}");
    exit::FAILED
}

/// Returns what to connect to; the path does not matter, so that a base URL will do.
fn address(url: &str) -> Option<(String, u16)> {
    let uri: Uri =
        if url.contains("://") { url.parse() } else { format!("http://{url}").parse() }.ok()?;
    if uri.scheme_str() != Some("http") {
        return None;
    }
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    Some((host.to_owned(), uri.port_u16().unwrap_or(80)))
}

async fn ask(host: &str, port: u16) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect((host, port)).await?;
    let request = "GET /_mock/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // Far more than the answer is long.
    stream.take(16 * 1024).read_to_end(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_any_url_of_the_mock() {
        for (url, host, port) in [
            ("http://127.0.0.1:4010", "127.0.0.1", 4010),
            ("http://[::1]:4010/v1", "::1", 4010),
            ("http://localhost/_mock/health", "localhost", 80),
            ("127.0.0.1:4010", "127.0.0.1", 4010),
            ("[::1]:4010", "::1", 4010),
            ("localhost/v1", "localhost", 80),
        ] {
            assert_eq!(address(url), Some((host.to_owned(), port)));
        }
        for url in ["", "https://localhost:4010", "/v1", "http://"] {
            assert_eq!(address(url), None, "{url}");
        }
    }
}
