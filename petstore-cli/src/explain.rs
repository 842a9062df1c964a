//! Puts the errors of requests into the words of the command line: what is wrong, and one thing to
//! do about it with the options, variables and settings that there are here.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use http::header::LOCATION;
use petstore_client::rate_limit::{BlockReason, Blocked, Quota};
use petstore_client::{Error as ClientError, ErrorKind, TimeoutKind};
use serde_json::{Map, Value};

use crate::error::{CliError, Failure, Kind, os_text};
use crate::escape;
use crate::settings::Size;
use crate::time::{self, Clock, Seconds};

/// The longest part of the service's own words that is shown.
const MAX_MESSAGE: usize = 300;
/// The client's limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What is known about the requests of a command.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) clock: Clock,
    /// Host and port of the service.
    pub(crate) host: String,
    /// Where the base URL comes from, in brackets.
    pub(crate) base_url_source: String,
    /// Where the key comes from, and what to do where it is refused.
    pub(crate) key_source: String,
    pub(crate) key_fix: String,
    pub(crate) timeout: Duration,
    pub(crate) max_wait: Duration,
    pub(crate) max_response_size: Size,
    /// What a request that changes something makes: `pet`, or `request`.
    pub(crate) noun: &'static str,
    pub(crate) changes: bool,
}

impl Facts {
    /// Returns an error in words; `None` where the command needs none.
    pub(crate) fn explain(&self, error: CliError) -> Result<Failure, u8> {
        match error {
            CliError::Failure(failure) => Ok(*failure),
            CliError::Client(error) => Ok(self.client(&error)),
            CliError::Silent(code) => Err(code),
        }
    }

    /// Returns an error of a request in words.
    pub(crate) fn client(&self, error: &ClientError) -> Failure {
        let mut failure = self.words(error);
        failure.fields = fields(error);
        failure
    }

    fn words(&self, error: &ClientError) -> Failure {
        if let Some(blocked) = error.blocked() {
            return self.blocked(blocked);
        }
        let (host, source) = (&self.host, &self.base_url_source);
        let (kind, message, hint) = match error.kind() {
            ErrorKind::Unauthorized => {
                let from = match self.key_source.starts_with("PETSTORE") {
                    true => format!("; from {}", self.key_source),
                    false => String::new(),
                };
                let message =
                    format!("the service refused the key ({}{from})", status_and_code(error));
                (Kind::Key, message, self.key_fix.clone())
            }
            ErrorKind::Tls => {
                let (problem, hint) = tls_problem(error, source);
                (Kind::Tls, format!("{host}: {problem}"), hint)
            }
            ErrorKind::Connect => self.no_connection(error),
            ErrorKind::Timeout if error.timeout() == Some(TimeoutKind::Connect) => {
                let limit = time::duration(CONNECT_TIMEOUT.min(self.timeout));
                let message = format!("cannot connect to {host} within {limit}");
                (Kind::Timeout, message, "check the network and the firewall".to_owned())
            }
            ErrorKind::Timeout => {
                let message =
                    format!("no response from {host} within {}", time::duration(self.timeout));
                match self.may_have_changed(error) {
                    Some((made, look)) => (Kind::Timeout, format!("{message}; {made}"), look),
                    None => {
                        let seconds = u32::try_from(self.timeout.as_secs()).unwrap_or(u32::MAX);
                        let more = Seconds(seconds.saturating_mul(4));
                        (Kind::Timeout, message, format!("`--timeout {more}` waits longer"))
                    }
                }
            }
            ErrorKind::Interrupted => match self.may_have_changed(error) {
                Some((made, look)) => {
                    (Kind::Network, format!("connection lost before the response; {made}"), look)
                }
                None => {
                    let message = format!("{host} closed the connection before the response");
                    let hint = format!("check that the base URL is the service's{source}");
                    (Kind::Network, message, hint)
                }
            },
            ErrorKind::BodyTooLarge => {
                let Size(limit) = self.max_response_size;
                let more = Size(limit.saturating_mul(8).next_multiple_of(1 << 10));
                let message = format!("the response is larger than {}", self.max_response_size);
                (Kind::TooLarge, message, format!("`--max-response-size {more}` accepts it"))
            }
            ErrorKind::Decode => return self.undecodable(error),
            ErrorKind::Config | ErrorKind::Credentials => return other(Kind::Config, error),
            ErrorKind::InvalidRequest => return other(Kind::Usage, error),
            ErrorKind::Paging => return other(Kind::Service, error),
            _ if error.status().is_some() => return self.refused(error),
            _ => return other(Kind::Internal, error),
        };
        Failure { hint: Some(hint).filter(|hint| !hint.is_empty()), ..Failure::new(kind, message) }
    }

    fn no_connection(&self, error: &ClientError) -> (Kind, String, String) {
        let (host, correct) = (&self.host, format!("correct the base URL{}", self.base_url_source));
        // The system numbers its errors of connections, and not those of the names of hosts.
        let problem = causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).last();
        match problem {
            Some(problem) if problem.raw_os_error().is_none() => {
                let name = host.rsplit_once(':').map_or(&**host, |(name, _)| name);
                (Kind::Network, format!("no host `{name}`"), correct)
            }
            problem => {
                let problem = problem.map(|problem| format!(": {}", os_text(problem)));
                let message = format!("cannot connect to {host}{}", problem.unwrap_or_default());
                (Kind::Network, message, format!("start the service, or {correct}"))
            }
        }
    }

    /// Says what a request may have done although no response came, and where to look.
    fn may_have_changed(&self, error: &ClientError) -> Option<(&'static str, String)> {
        if !self.changes || !error.may_have_been_processed() {
            return None;
        }
        Some(match self.noun {
            "pet" => (
                "the pet may have been created",
                "look in `petstore pets list --all` before you try again".to_owned(),
            ),
            _ => {
                let look = "find out what became of it before you try again".to_owned();
                ("the request may have been carried out", look)
            }
        })
    }

    /// A quota that is used up, or a ban.
    pub(crate) fn blocked(&self, blocked: &Blocked) -> Failure {
        let Blocked { reason, until, remaining, .. } = blocked;
        let longer = wait_option(*remaining);
        let waits = *remaining <= self.max_wait;
        let (kind, message, hint) = match reason {
            BlockReason::Ban => {
                let (length, end) = (time::duration(*remaining), self.clock.instant(*until));
                let message = format!("the service banned this key for {length} (until {end})");
                (Kind::Banned, message, format!("`--max-wait {longer}` waits for it"))
            }
            reason => {
                let until = self.clock.until(*until, *remaining);
                let message = format!("{}, resets {until}", exhausted(*reason));
                let hint = match remaining.as_secs() < 3_600 {
                    true => format!("`--max-wait {longer}` waits for it"),
                    false => format!("run the command again then, or add `--max-wait {longer}`"),
                };
                (Kind::RateLimited, message, hint)
            }
        };
        Failure { hint: (!waits).then_some(hint), ..Failure::new(kind, message) }
    }

    /// A response with a status that is no success.
    fn refused(&self, error: &ClientError) -> Failure {
        let status = error.status().map_or(0, |status| status.as_u16());
        let code = status_and_code(error);
        let said = said(error);
        let (kind, message, hint) = match status {
            300..=399 => {
                let target = error.headers().and_then(|headers| headers.get(LOCATION));
                let target = target
                    .map(|to| escape::line(&String::from_utf8_lossy(to.as_bytes())).into_owned());
                let target = target.unwrap_or_else(|| "another address".to_owned());
                let hint = "if you trust it, set it as the base URL".to_owned();
                (
                    Kind::Refused,
                    format!("the service redirects to {target}; not followed"),
                    Some(hint),
                )
            }
            404 if error.code() == Some("route_not_found") || error.code().is_none() => {
                let hint = "check the path; the base URL must end with the version: /v1".to_owned();
                (Kind::NotFound, format!("no such path ({code}){said}"), Some(hint))
            }
            404 => (Kind::NotFound, format!("not found ({code}){said}"), None),
            410 => {
                (Kind::NotFound, format!("the service has removed this operation ({code})"), None)
            }
            429 => {
                (Kind::RateLimited, format!("the service refused the request ({code}){said}"), None)
            }
            400..=499 => (
                Kind::Refused,
                format!("the service refused the {} ({code}){said}", self.noun),
                None,
            ),
            _ if self.may_have_changed(error).is_some() => {
                let (made, look) = self.may_have_changed(error).unwrap_or_default();
                (Kind::Service, format!("the service failed ({code}){said}; {made}"), Some(look))
            }
            _ => {
                let attempts = match error.attempts() {
                    0 | 1 => String::new(),
                    attempts => format!(" in {attempts} attempts"),
                };
                let hint = "try again in a few minutes".to_owned();
                (Kind::Service, format!("the service failed ({code}){attempts}{said}"), Some(hint))
            }
        };
        Failure { hint, ..Failure::new(kind, message) }
    }

    fn undecodable(&self, error: &ClientError) -> Failure {
        let body = error.body().map(|body| String::from_utf8_lossy(body)).unwrap_or_default();
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&body).is_ok();
        let hint = format!("check that the base URL is the service's{}", self.base_url_source);
        let message = match error.decode_path() {
            Some(path) if is_json && path != "." => {
                format!("the response makes no sense at `{}`", escape::line(path))
            }
            _ => {
                let start: String = body.trim_start().chars().take(15).collect();
                let what = if is_json { "not what was asked for" } else { "not JSON" };
                format!("the response is {what}: it begins with `{}`", escape::line(&start))
            }
        };
        Failure { hint: Some(hint), ..Failure::new(Kind::Decode, message) }
    }
}

/// Returns what is used up: `minute quota used up`.
pub(crate) fn exhausted(reason: BlockReason) -> &'static str {
    match reason {
        BlockReason::Quota(Quota::Minute) => "minute quota used up",
        BlockReason::Quota(Quota::Day) => "day quota used up",
        BlockReason::Ban => "key banned",
        _ => "rate limit reached",
    }
}

/// Returns the value of `--max-wait` that waits for so long.
pub(crate) fn wait_option(wait: Duration) -> String {
    match time::seconds(wait) {
        seconds @ ..3_600 => format!("{}m", seconds.div_ceil(60)),
        seconds => format!("{}h", seconds.div_ceil(3_600)),
    }
}

fn status_and_code(error: &ClientError) -> String {
    let status = error.status().map_or(0, |status| status.as_u16());
    match error.code() {
        Some(code) => format!("{status} {}", escape::line(code)),
        None => error.status().map_or_else(String::new, |status| status.to_string()),
    }
}

/// Returns what the service said, after a colon.
fn said(error: &ClientError) -> String {
    let Some(message) = error.message() else { return String::new() };
    let short: String = message.chars().take(MAX_MESSAGE).collect();
    let rest = if short.len() < message.len() { "…" } else { "" };
    format!(": {}{rest}", escape::line(&short))
}

fn causes(error: &ClientError) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let first: &(dyn StdError + 'static) = error;
    std::iter::successors(Some(first), |cause| (**cause).source())
}

/// Returns an error in the client's words, without the name of the operation.
fn other(kind: Kind, error: &ClientError) -> Failure {
    let text = error.to_string();
    let name = error.operation().map(|operation| format!("{operation} failed: "));
    let text = name.as_ref().and_then(|name| text.strip_prefix(name)).unwrap_or(&text);
    Failure::new(kind, text)
}

fn tls_problem(error: &ClientError, source: &str) -> (String, String) {
    let root = causes(error).last().map(ToString::to_string).unwrap_or_default();
    let trust = "`--ca-file FILE` trusts an authority".to_owned();
    #[cfg(feature = "rustls")]
    {
        use rustls::{CertificateError, Error as TlsError};

        let inner = causes(error).filter_map(|cause| {
            let wrapped = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            let wrapped = wrapped.and_then(|inner| inner.downcast_ref::<TlsError>());
            wrapped.or_else(|| cause.downcast_ref::<TlsError>())
        });
        let correct = format!("correct the base URL{source}");
        match inner.last() {
            Some(TlsError::InvalidCertificate(CertificateError::UnknownIssuer)) => {
                return ("certificate from an unknown authority".to_owned(), trust);
            }
            Some(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => return ("the certificate is for another host".to_owned(), correct),
            Some(TlsError::InvalidMessage(_)) => {
                let hint = "for a local service use http://127.0.0.1:PORT/v1".to_owned();
                return ("it does not speak TLS".to_owned(), hint);
            }
            _ => {}
        }
    }
    let _ = source;
    (format!("no secure connection: {root}"), trust)
}

/// Returns what programs may read of an error.
fn fields(error: &ClientError) -> Map<String, Value> {
    let quota = error.blocked().and_then(|blocked| match blocked.reason {
        BlockReason::Quota(quota) => serde_json::to_value(quota).ok(),
        _ => None,
    });
    let fields = [
        ("quota", quota),
        ("retryAt", error.retry_at().map(|at| time::instant(at).into())),
        ("retryAfterSeconds", error.retry_after().map(|wait| time::seconds(wait).into())),
        ("status", error.status().map(|status| status.as_u16().into())),
        ("code", error.code().map(Value::from)),
        ("serviceMessage", error.message().map(Value::from)),
        ("path", error.decode_path().map(Value::from)),
        ("attempts", Some(error.attempts().into())),
        ("mayHaveBeenProcessed", Some(error.may_have_been_processed().into())),
    ];
    let present = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
    fields.into_iter().filter_map(present).collect()
}
