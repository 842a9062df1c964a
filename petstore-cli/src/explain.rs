//! Turns errors of requests into messages with hints for the command line.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use http::header::LOCATION;
use petstore_client::rate_limit::{BlockReason, Blocked, Quota, QuotaWindow};
use petstore_client::{Error as ClientError, ErrorKind, TimeoutKind, Url};
use serde_json::{Map, Value, json};

use crate::env::{Env, Signal};
use crate::error::{CliError, Failure, Kind, os_text};
use crate::escape;
use crate::settings::precedence::{Settings, is_local};
use crate::settings::{Seconds, Size};
use crate::time::{self, Clock};

/// The maximum length of the service's message that is shown.
const MAX_MESSAGE: usize = 300;
/// The client's time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The hint where a certificate is not trusted.
const TRUST: &str = "`--ca-file FILE` trusts an authority";

/// The purpose of a command's request, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    CreatePet,
    /// Any other change.
    Change,
}

/// Facts about the requests of a command, for messages.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) clock: Clock,
    /// The host and port of the service.
    pub(crate) host: String,
    /// The variable that names a proxy for the service, if any.
    proxy: Option<&'static str>,
    /// The source of the base URL, in brackets.
    base_url_source: String,
    /// The source of the key.
    pub(crate) key_source: String,
    /// The hint if the service refuses the key.
    pub(crate) key_fix: String,
    pub(crate) timeout: Duration,
    pub(crate) max_wait: Duration,
    pub(crate) max_response_size: Size,
    pub(crate) purpose: Purpose,
}

impl Facts {
    pub(crate) fn new(settings: &Settings, clock: Clock) -> Self {
        let timeout = settings.get(|values| &values.timeout);
        let max_wait = settings.get(|values| &values.max_wait);
        let max_size = settings.get(|values| &values.max_response_size);
        Self {
            clock,
            host: String::new(),
            proxy: None,
            base_url_source: settings.source("base_url"),
            key_source: String::new(),
            key_fix: String::new(),
            timeout: timeout.map_or(Duration::MAX, |time| time.0),
            max_wait: max_wait.map_or(Duration::ZERO, |time| time.0),
            max_response_size: max_size.unwrap_or(Size(usize::MAX)),
            purpose: Purpose::Read,
        }
    }

    pub(crate) fn set_host(&mut self, base_url: &Url, env: &Env) {
        let host = base_url.host_str().unwrap_or_default();
        self.host = base_url
            .port()
            .map_or(host.to_owned(), |port| format!("{host}:{port}"));
        let own = match base_url.scheme() {
            "https" => ["https_proxy", "HTTPS_PROXY"],
            _ => ["http_proxy", "HTTP_PROXY"],
        };
        let mut all = own.into_iter().chain(["all_proxy", "ALL_PROXY"]);
        // The client uses no proxy for this machine.
        self.proxy = all.find(|name| env.var(name).is_some() && !is_local(base_url));
    }

    /// Returns the message of an error, or an exit code if no message is needed.
    pub(crate) fn explain(&self, error: CliError) -> Result<Failure, u8> {
        match error {
            CliError::Failure(failure) => Ok(*failure),
            CliError::Client(error) => Ok(self.client(&error)),
            CliError::Silent(code) => Err(code),
        }
    }

    /// Returns the message of a request's error.
    pub(crate) fn client(&self, error: &ClientError) -> Failure {
        Failure {
            fields: fields(error),
            ..self.words(error)
        }
    }

    fn words(&self, error: &ClientError) -> Failure {
        if let Some(blocked) = error.blocked() {
            return self.blocked(blocked);
        }
        let (host, source) = (&self.host, &self.base_url_source);
        match error.kind() {
            ErrorKind::Unauthorized => {
                let is_variable = self.key_source.starts_with("PETSTORE");
                let from = if is_variable {
                    format!("; from {}", self.key_source)
                } else {
                    String::new()
                };
                let code = status_and_code(error);
                Failure::new(
                    Kind::Key,
                    format!("the service refused the key ({code}{from})"),
                )
                .hint(&*self.key_fix)
            }
            ErrorKind::Tls => self.no_tls(error),
            ErrorKind::Connect => self.no_connection(error),
            ErrorKind::Timeout if error.timeout() == Some(TimeoutKind::Connect) => {
                let limit = time::duration(CONNECT_TIMEOUT.min(self.timeout));
                let message = format!("cannot connect to {host} within {limit}");
                Failure::new(Kind::Timeout, message).hint("check the network and the firewall")
            }
            ErrorKind::Timeout => {
                let limit = time::duration(self.timeout);
                let longer = Seconds::<1>(self.timeout.saturating_mul(4));
                let message = format!("no response from {host} within {limit}");
                let failure = Failure::new(Kind::Timeout, message);
                self.or_lost(
                    error,
                    failure.hint(format!("`--timeout {longer}` waits longer")),
                )
            }
            ErrorKind::Interrupted => {
                let message = format!("{host} closed the connection before the response");
                let hint = format!("check that the base URL is the service's{source}");
                self.or_lost(error, Failure::new(Kind::Network, message).hint(hint))
            }
            ErrorKind::BodyTooLarge => {
                let limit = self.max_response_size;
                let larger = Size(limit.0.saturating_mul(8).next_multiple_of(1 << 10));
                let message = format!("the response is larger than {limit}");
                Failure::new(Kind::TooLarge, message)
                    .hint(format!("`--max-response-size {larger}` accepts it"))
            }
            ErrorKind::Decode => self.undecodable(error),
            ErrorKind::Config | ErrorKind::Credentials => other(Kind::Config, error),
            ErrorKind::InvalidRequest => other(Kind::Usage, error),
            ErrorKind::Paging => other(Kind::Service, error),
            _ if error.status().is_some() => self.refused(error),
            _ => other(Kind::Internal, error),
        }
    }

    fn no_connection(&self, error: &ClientError) -> Failure {
        let (host, correct) = (
            &self.host,
            format!("correct the base URL{}", self.base_url_source),
        );
        // The system's connection errors have numbers, unlike errors of host names.
        let problem = causes(error)
            .filter_map(|cause| cause.downcast_ref::<io::Error>())
            .last();
        if let Some(proxy) = self.proxy {
            let message = format!("cannot connect to {host}, or to its proxy");
            return Failure::new(Kind::Network, message)
                .hint(format!("check the proxy in {proxy}, or {correct}"));
        }
        if problem.is_some_and(|problem| problem.raw_os_error().is_none()) {
            let name = host.rsplit_once(':').map_or(&**host, |(name, _)| name);
            return Failure::new(Kind::Network, format!("no host `{name}`")).hint(correct);
        }
        let problem = problem.map(|problem| format!(": {}", os_text(problem)));
        let message = format!("cannot connect to {host}{}", problem.unwrap_or_default());
        Failure::new(Kind::Network, message).hint(format!("start the service, or {correct}"))
    }

    /// Adds to the message that the request may have been processed, if so, with a hint.
    fn or_lost(&self, error: &ClientError, failure: Failure) -> Failure {
        let (done, look) = match self.purpose {
            Purpose::Read => return failure,
            _ if !error.may_have_been_processed() => return failure,
            Purpose::CreatePet => (
                "the pet may have been created",
                "look in `petstore pets list --all`",
            ),
            Purpose::Change => ("the request may have been processed", "check the result"),
        };
        let message = format!("{}; {done}", failure.message);
        Failure { message, ..failure }.hint(format!("{look} before you try again"))
    }

    /// An exhausted quota, or a ban.
    fn blocked(&self, blocked: &Blocked) -> Failure {
        let Blocked {
            reason,
            until,
            remaining,
            ..
        } = blocked;
        let longer = time::wait_option(*remaining);
        let failure = match reason {
            BlockReason::Ban => {
                let (length, end) = (time::duration(*remaining), self.clock.instant(*until));
                let message = format!("the service banned this key for {length} (until {end})");
                Failure::new(Kind::Banned, message)
            }
            reason => {
                let until = self.clock.until(*until, *remaining);
                let message = format!("{}, resets {until}", exhausted(*reason));
                Failure::new(Kind::RateLimited, message)
            }
        };
        if *remaining <= self.max_wait {
            return failure;
        }
        match remaining.as_secs() < 3_600 {
            true => failure.hint(format!("`--max-wait {longer}` waits for it")),
            false => failure.hint(format!(
                "run the command again then, or add `--max-wait {longer}`"
            )),
        }
    }

    /// A response with an error status.
    fn refused(&self, error: &ClientError) -> Failure {
        let code = status_and_code(error);
        let said = said(error);
        match error.status().map_or(0, |status| status.as_u16()) {
            300..=399 => {
                let target = error.headers().and_then(|headers| headers.get(LOCATION));
                let target = target.map(|to| String::from_utf8_lossy(to.as_bytes()));
                let target = target
                    .as_deref()
                    .map_or("another address".into(), escape::line);
                let message = format!("the service redirects to {target}; not followed");
                Failure::new(Kind::Refused, message).hint("if you trust it, set it as the base URL")
            }
            404 if error.code().is_none_or(|code| code == "route_not_found") => {
                Failure::new(Kind::NotFound, format!("no such path ({code}){said}"))
                    .hint("check the path; the base URL must end with the version: /v1")
            }
            404 => Failure::new(Kind::NotFound, format!("not found ({code}){said}")),
            410 => {
                let message = format!("the service has removed this operation ({code})");
                Failure::new(Kind::NotFound, message)
            }
            status @ 400..=499 => {
                let kind = if status == 429 {
                    Kind::RateLimited
                } else {
                    Kind::Refused
                };
                let is_pet = self.purpose == Purpose::CreatePet;
                let noun = if is_pet { "pet" } else { "request" };
                Failure::new(
                    kind,
                    format!("the service refused the {noun} ({code}){said}"),
                )
            }
            _ => {
                let attempts = match error.attempts() {
                    0 | 1 => String::new(),
                    attempts => format!(" in {attempts} attempts"),
                };
                let message = format!("the service failed ({code}){attempts}{said}");
                let failure = Failure::new(Kind::Service, message);
                self.or_lost(error, failure.hint("try again in a few minutes"))
            }
        }
    }

    fn undecodable(&self, error: &ClientError) -> Failure {
        let body = error
            .body()
            .map(|body| String::from_utf8_lossy(body))
            .unwrap_or_default();
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&body).is_ok();
        let message = match error.decode_path() {
            Some(path) if is_json && path != "." => {
                format!("the response is invalid at `{}`", escape::line(path))
            }
            _ if body.is_empty() => "the response has no body".to_owned(),
            _ => {
                let start: String = body.trim_start().chars().take(15).collect();
                let what = if is_json {
                    "not the expected JSON"
                } else {
                    "not JSON"
                };
                format!(
                    "the response is {what}: it begins with `{}`",
                    escape::line(&start)
                )
            }
        };
        let source = &self.base_url_source;
        let failure = Failure::new(Kind::Decode, message);
        self.or_lost(
            error,
            failure.hint(format!("check that the base URL is the service's{source}")),
        )
    }

    fn no_tls(&self, error: &ClientError) -> Failure {
        #[cfg(feature = "rustls")]
        if let Some(failure) = tls_error(error).and_then(|problem| self.tls_problem(problem)) {
            return failure;
        }
        let root = causes(error)
            .last()
            .map(ToString::to_string)
            .unwrap_or_default();
        let message = format!("{}: no secure connection: {root}", self.host);
        Failure::new(Kind::Tls, message).hint(TRUST)
    }

    /// Returns the message of a known problem of a TLS connection.
    #[cfg(feature = "rustls")]
    fn tls_problem(&self, problem: &rustls::Error) -> Option<Failure> {
        use rustls::{CertificateError as Bad, Error as TlsError};

        let host = &self.host;
        let failure = |problem| Failure::new(Kind::Tls, format!("{host}{problem}"));
        Some(match problem {
            TlsError::InvalidCertificate(Bad::UnknownIssuer) => {
                failure(": certificate from an unknown authority").hint(TRUST)
            }
            TlsError::InvalidCertificate(
                Bad::NotValidForName | Bad::NotValidForNameContext { .. },
            ) => failure(": the certificate is for another host")
                .hint(format!("correct the base URL{}", self.base_url_source)),
            TlsError::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
                failure(": the certificate has expired").hint("check the clock of this machine")
            }
            TlsError::InvalidMessage(_) => failure(" does not speak TLS")
                .hint(format!("for a local service use http://{host}/v1")),
            _ => return None,
        })
    }
}

/// Returns the library's own error of a TLS connection.
#[cfg(feature = "rustls")]
fn tls_error(error: &ClientError) -> Option<&rustls::Error> {
    let found = causes(error).filter_map(|cause| {
        // It stands in an error of input or output, and that in another.
        let mut outer = cause.downcast_ref::<io::Error>()?;
        while let Some(inner) = outer.get_ref().and_then(|inner| inner.downcast_ref()) {
            outer = inner;
        }
        outer.get_ref()?.downcast_ref()
    });
    found.last()
}

/// The error of a command that a signal stopped.
impl From<Signal> for CliError {
    fn from(signal: Signal) -> Self {
        let kind = match signal {
            Signal::Interrupt => Kind::Interrupted,
            Signal::Terminate => Kind::Terminated,
        };
        Self::new(kind, signal.to_string())
    }
}

/// Describes an exhausted limit: `minute quota used up`.
pub(crate) fn exhausted(reason: BlockReason) -> String {
    match reason {
        BlockReason::Ban => "key banned".to_owned(),
        reason => format!("{} used up", limit_name(reason)),
    }
}

/// Describes a limit: `minute quota`.
pub(crate) fn limit_name(reason: BlockReason) -> &'static str {
    match reason {
        BlockReason::Quota(Quota::Minute) => "minute quota",
        BlockReason::Quota(Quota::Day) => "day quota",
        BlockReason::Ban => "end of the ban",
        _ => "rate limit",
    }
}

/// Returns the remaining requests: `56 of 60 left this minute`.
pub(crate) fn quota_left(window: &QuotaWindow) -> String {
    let period = match window.quota {
        Quota::Minute => " this minute",
        Quota::Day => " today",
        _ => "",
    };
    format!(
        "{} of {} left{period}",
        time::count(window.remaining),
        time::count(window.limit)
    )
}

fn status_and_code(error: &ClientError) -> String {
    match (error.status(), error.code()) {
        (Some(status), Some(code)) => format!("{} {}", status.as_u16(), escape::line(code)),
        (Some(status), None) => status.to_string(),
        (None, _) => String::new(),
    }
}

/// Returns the service's message, after a colon.
fn said(error: &ClientError) -> String {
    let Some(message) = error.message() else {
        return String::new();
    };
    let short: String = message.chars().take(MAX_MESSAGE).collect();
    let rest = if short.len() < message.len() {
        "…"
    } else {
        ""
    };
    format!(": {}{rest}", escape::line(&short))
}

fn causes(error: &ClientError) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let first: &(dyn StdError + 'static) = error;
    std::iter::successors(Some(first), |cause| (**cause).source())
}

/// Returns the client's message, without the name of the operation.
fn other(kind: Kind, error: &ClientError) -> Failure {
    let text = error.to_string();
    let name = error
        .operation()
        .map(|operation| format!("{operation} failed: "));
    let text = name
        .as_ref()
        .and_then(|name| text.strip_prefix(name))
        .unwrap_or(&text);
    Failure::new(kind, text)
}

/// Returns the fields of an error for programs.
fn fields(error: &ClientError) -> Map<String, Value> {
    let quota = error.blocked().and_then(|blocked| match blocked.reason {
        BlockReason::Quota(quota) => Some(quota),
        _ => None,
    });
    let fields = [
        ("quota", json!(quota)),
        ("retryAt", json!(error.retry_at().map(time::instant))),
        (
            "retryAfterSeconds",
            json!(error.retry_after().map(time::seconds)),
        ),
        (
            "status",
            json!(error.status().map(|status| status.as_u16())),
        ),
        ("code", json!(error.code())),
        ("serviceMessage", json!(error.message())),
        ("path", json!(error.decode_path())),
        ("attempts", json!(error.attempts())),
        (
            "mayHaveBeenProcessed",
            json!(error.may_have_been_processed()),
        ),
    ];
    let known = fields.into_iter().filter(|(_, value)| !value.is_null());
    known
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
