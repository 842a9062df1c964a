//! The commands that ask a running mock: `health`, for containers and scripts without another client,
//! and `report`, for suites that run beside the mock.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use clap::Args;
use http::{
    Request, Response, Uri,
    header::AUTHORIZATION,
    uri::{Authority, Scheme},
};
use http_body_util::{BodyExt as _, Empty};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::time::timeout;
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use super::{
    assume::seconds,
    gate::GateArgs,
    outcome::{CliError, DONE, USAGE, print, variable},
};
use crate::{clock::real_time, report::Report};

/// The time limit for connecting, sending and reading together.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The port of a mock without `--port`.
pub(super) const DEFAULT_PORT: u16 = 4010;

/// A running mock.
#[derive(Args)]
struct TargetArgs {
    /// URL of the mock, with or without http://; only its scheme, host and port matter (default:
    /// http://127.0.0.1:4010, or with the port in PETSTORE_MOCK_PORT).
    #[arg(value_name = "URL", value_parser = origin)]
    url: Option<Uri>,

    /// File with the certificate authority to trust (PEM), for https.
    ///
    /// The flag of the same name of `serve` writes this file. SSL_CERT_FILE works too.
    #[arg(long, value_name = "FILE")]
    tls_ca_file: Option<PathBuf>,
}

/// The client of one mock.
struct AdminClient {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    origin: Uri,
    token: Option<String>,
}

impl AdminClient {
    /// Creates the client. It sends a token, if there is one, to the administration.
    fn new(target: &TargetArgs, token: Option<String>) -> Result<Self, CliError> {
        let origin = target.url.clone().unwrap_or_else(of_this_machine);
        let connector = match origin.scheme() == Some(&Scheme::HTTPS) {
            true => connector(Some(&target.authority()?))?,
            false => connector(None)?,
        };
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            origin,
            token,
        })
    }

    /// Sends a GET for a path of the administration.
    async fn get(&self, path: &str) -> Result<Response<Bytes>, CliError> {
        let problem = match timeout(TIMEOUT, self.ask(path)).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => innermost(&*error).to_string(),
            Err(_) => format!("no response within {} seconds", TIMEOUT.as_secs()),
        };
        let place = self.place();
        Err(CliError::new(format!(
            "no mock answers at {place}: {problem}"
        )))
    }

    async fn ask(&self, path: &str) -> Result<Response<Bytes>, Box<dyn Error + Send + Sync>> {
        let target = format!("{}{path}", self.origin.to_string().trim_end_matches('/'));
        let mut request = Request::get(target);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let response = self.client.request(request.body(Empty::new())?).await?;
        let (head, body) = response.into_parts();
        Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    }

    /// Returns the host and port.
    fn place(&self) -> &str {
        self.origin.authority().map_or("", Authority::as_str)
    }
}

impl TargetArgs {
    /// Returns the file with the certificate authority to trust.
    fn authority(&self) -> Result<PathBuf, CliError> {
        let given = self.tls_ca_file.clone();
        given
            .or_else(|| variable("SSL_CERT_FILE").map(PathBuf::from))
            .ok_or_else(|| {
                CliError::usage("https needs --tls-ca-file FILE, the file that the mock wrote")
            })
    }
}

/// Parses a URL. Ignores its path, so that a base URL works.
fn origin(url: &str) -> Result<Uri, String> {
    let with_scheme = match url.contains("://") {
        true => url.to_owned(),
        false => format!("http://{url}"),
    };
    let known = [Scheme::HTTP, Scheme::HTTPS];
    let uri = with_scheme.parse::<Uri>().map(Uri::into_parts);
    if let Ok(mut parts) = uri
        && parts.scheme.as_ref().is_some_and(|it| known.contains(it))
    {
        parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
        if let Ok(origin) = Uri::from_parts(parts) {
            return Ok(origin);
        }
    }
    Err("give a URL such as http://127.0.0.1:4010".to_owned())
}

/// Returns the default: this machine, with the port of the variable of `serve`.
fn of_this_machine() -> Uri {
    let port = variable("PETSTORE_MOCK_PORT").and_then(|port| port.to_str()?.parse().ok());
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port.unwrap_or(DEFAULT_PORT)));
    origin(&address.to_string()).unwrap_or_default()
}

/// Returns the connector, which trusts the authorities in a file.
fn connector(authorities: Option<&Path>) -> Result<HttpsConnector<HttpConnector>, CliError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = authorities {
        let text = fs::read(path)
            .map_err(|error| CliError::file("read the certificate authority", path, &error))?;
        let certificates = CertificateDer::pem_slice_iter(&text).flatten();
        if roots.add_parsable_certificates(certificates).0 == 0 {
            let message = format!("{} contains no PEM certificate", path.display());
            return Err(CliError::new(message));
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| CliError::new(format!("cannot use TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .build())
}

/// Returns the cause that says most.
fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    match error.source() {
        Some(source) => innermost(source),
        None => error,
    }
}

/// Returns the token of the administration: from a file, or else from its variable.
pub(super) fn admin_token(file: Option<&Path>) -> Result<Option<String>, CliError> {
    let Some(path) = file else {
        let token = variable("PETSTORE_MOCK_ADMIN_TOKEN");
        // A token that is not Unicode becomes invalid here. It is refused without being shown.
        return Ok(token.map(|token| token.to_string_lossy().into_owned()));
    };
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned())),
        Err(error) => Err(CliError::file("read the admin token", path, &error)),
    }
}

/// The wait between two checks of `health --wait`.
const STEP: Duration = Duration::from_millis(50);

#[derive(Args)]
pub(super) struct HealthArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Seconds to wait for the mock to be ready (default: asks once).
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    wait: Option<Duration>,
}

#[derive(Args)]
#[command(after_help = "Example:\n  petstore-mock report http://petstore:4010 --fail-on warnings")]
pub(super) struct ReportArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// File with the token of the mock's administration, if it runs on another machine.
    ///
    /// The variable PETSTORE_MOCK_ADMIN_TOKEN also sets it.
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<PathBuf>,

    #[command(flatten)]
    gate: GateArgs,
}

/// Checks whether a mock is ready, until it is or the time is over.
pub(super) async fn health(args: &HealthArgs) -> Result<u8, CliError> {
    let start = real_time::now();
    loop {
        match check(&args.target).await {
            Ok(()) => {
                print("ok\n")?;
                return Ok(DONE);
            }
            Err(error) if error.status() == USAGE => return Err(error),
            Err(error) if start.elapsed() >= args.wait.unwrap_or_default() => return Err(error),
            Err(_) => real_time::sleep(STEP).await,
        }
    }
}

async fn check(target: &TargetArgs) -> Result<(), CliError> {
    let client = AdminClient::new(target, None)?;
    let response = client.get("/_mock/health").await?;
    let place = client.place();
    Err(CliError::new(match response.status().as_u16() {
        200 if *response.body() == r#"{"status":"ok"}"# => return Ok(()),
        507 => format!("the mock at {place} is not ready: its data file cannot be written"),
        _ => format!("the server at {place} is not a mock that is ready"),
    }))
}

/// Prints and judges the compliance report of a running mock.
pub(super) async fn report(args: &ReportArgs) -> Result<u8, CliError> {
    let token = admin_token(args.admin_token_file.as_deref())?;
    let client = AdminClient::new(&args.target, token)?;
    let response = client.get("/_mock/report.json").await?;
    let problem = match response.status().as_u16() {
        200 => match serde_json::from_slice::<Report>(response.body()) {
            Ok(report) => {
                print(&report.to_text())?;
                return args
                    .gate
                    .judge(&report, "check the base URL and the key of the client");
            }
            Err(_) => "the response is not a report of this version of petstore-mock",
        },
        401 => "it needs the token of its administration: set --admin-token-file",
        404 => {
            "it shows its report to its own machine only, or it is no mock: start it with \
             --admin-token-file, and give the file here too"
        }
        _ => "the response is not a report",
    };
    let place = client.place();
    Err(CliError::new(format!("no report from {place}: {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_any_url_of_the_mock() {
        for (url, expected) in [
            ("http://127.0.0.1:4010", "http://127.0.0.1:4010/"),
            ("http://[::1]:4010/v1", "http://[::1]:4010/"),
            ("http://localhost/_mock/health?x", "http://localhost/"),
            ("127.0.0.1:4010", "http://127.0.0.1:4010/"),
            ("[::1]:4010", "http://[::1]:4010/"),
            ("localhost/v1", "http://localhost/"),
            ("https://localhost:4010/v1", "https://localhost:4010/"),
        ] {
            assert_eq!(origin(url).unwrap().to_string(), expected, "{url}");
        }
        for url in ["", "ftp://localhost:4010", "/v1", "http://"] {
            assert!(origin(url).is_err(), "{url}");
        }
    }
}
