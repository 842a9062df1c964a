//! Turns errors of requests into messages with hints for the command line.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::header::LOCATION;
use petstore_client::rate_limit::{BlockReason, Blocked};
use petstore_client::{Error as ClientError, ErrorKind, TimeoutKind};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::purpose::{Loss, Purpose};
use super::service::Service;
use super::tls;
use super::words::{causes, exhausted, shortened};
use crate::error::{Failure, Kind, os_text};
use crate::escape;
use crate::settings::{Seconds, Settings, Size};
use crate::time::{self, Clock};

/// The client's time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many characters of an unexpected response are shown.
const MAX_START: usize = 15;

/// Turns the errors of a client into messages.
#[derive(Debug, Clone)]
pub(super) struct Explainer {
    settings: Arc<Settings>,
    clock: Clock,
    service: Service,
    purpose: Purpose,
}

impl Explainer {
    pub(super) fn new(settings: Arc<Settings>, clock: Clock, service: Service) -> Self {
        Self {
            settings,
            clock,
            service,
            purpose: Purpose::Read,
        }
    }

    /// Sets the service and the purpose of the requests that follow.
    pub(super) fn begin(&mut self, service: Service, purpose: Purpose) {
        self.service = service;
        self.purpose = purpose;
    }

    pub(super) fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Returns the message of a request's error.
    pub(super) fn client(&self, error: &ClientError) -> Failure {
        let mut failure = self.words(error);
        failure.fields = fields(error);
        failure
    }

    fn words(&self, error: &ClientError) -> Failure {
        if let Some(blocked) = error.blocked() {
            return self.blocked(blocked);
        }
        match error.kind() {
            ErrorKind::Unauthorized => self.unauthorized(error),
            ErrorKind::Tls => tls::explain(error, &self.service),
            ErrorKind::Connect => self.no_connection(error),
            ErrorKind::Timeout => self.timed_out(error),
            ErrorKind::Interrupted => self.interrupted(error),
            ErrorKind::BodyTooLarge => self.too_large(),
            ErrorKind::Decode => self.undecodable(error),
            ErrorKind::Config | ErrorKind::Credentials => other(Kind::Config, error),
            ErrorKind::InvalidRequest => other(Kind::Usage, error),
            ErrorKind::Paging => other(Kind::Service, error),
            _ if error.status().is_some() => self.refused(error),
            _ => other(Kind::Internal, error),
        }
    }

    fn unauthorized(&self, error: &ClientError) -> Failure {
        let code = status_and_code(error);
        let from = self.service.key().from();
        let message = format!("the service refused the key ({code}{from})");
        Failure::new(Kind::Key, message).hint(self.service.key().fix())
    }

    fn timed_out(&self, error: &ClientError) -> Failure {
        match error.timeout() {
            Some(TimeoutKind::Connect) => self.not_connected_in_time(),
            _ => self.or_lost(error, self.no_response()),
        }
    }

    fn not_connected_in_time(&self) -> Failure {
        let host = self.service.host();
        let limit = CONNECT_TIMEOUT.min(self.settings.values().timeout());
        let message = format!("cannot connect to {host} within {}", time::duration(limit));
        Failure::new(Kind::Timeout, message).hint("check the network and the firewall")
    }

    fn no_response(&self) -> Failure {
        let host = self.service.host();
        let timeout = self.settings.values().timeout();
        let limit = time::duration(timeout);
        let longer = Seconds::<1>(timeout.saturating_mul(4));
        let message = format!("no response from {host} within {limit}");
        let hint = format!("`--timeout {longer}` waits longer");
        Failure::new(Kind::Timeout, message).hint(hint)
    }

    fn interrupted(&self, error: &ClientError) -> Failure {
        let host = self.service.host();
        let message = format!("{host} closed the connection before the response");
        let failure = Failure::new(Kind::Network, message).hint(self.check_base_url());
        self.or_lost(error, failure)
    }

    fn check_base_url(&self) -> String {
        let source = self.service.base_url_source();
        format!("check that the base URL is the service's{source}")
    }

    fn too_large(&self) -> Failure {
        let limit = self.settings.values().max_response_size();
        let larger = Size(limit.0.saturating_mul(8).next_multiple_of(1 << 10));
        let message = format!("the response is larger than {limit}");
        let hint = format!("`--max-response-size {larger}` accepts it");
        Failure::new(Kind::TooLarge, message).hint(hint)
    }

    fn no_connection(&self, error: &ClientError) -> Failure {
        if let Some(failure) = tls::explain_native(error, &self.service) {
            return failure;
        }
        let host = self.service.host();
        let source = self.service.base_url_source();
        let correct = format!("correct the base URL{source}");
        if let Some(proxy) = self.service.proxy() {
            let message = format!("cannot connect to {host}, or to its proxy");
            let hint = format!("check the proxy in {proxy}, or {correct}");
            return Failure::new(Kind::Network, message).hint(hint);
        }
        let problem = causes(error)
            .filter_map(|cause| cause.downcast_ref::<io::Error>())
            .last();
        let message = match problem {
            // The system's connection errors have numbers. Errors of the name look-up have none.
            Some(problem) if problem.raw_os_error().is_none() => {
                let message = format!("no host `{}`", self.service.host_name());
                return Failure::new(Kind::Network, message).hint(correct);
            }
            Some(problem) => format!("cannot connect to {host}: {}", os_text(problem)),
            None => format!("cannot connect to {host}"),
        };
        let hint = format!("start the service, or {correct}");
        Failure::new(Kind::Network, message).hint(hint)
    }

    /// If the request may have been processed, adds that to the message, with a hint.
    fn or_lost(&self, error: &ClientError, mut failure: Failure) -> Failure {
        let Some(Loss { effect, advice }) = self.purpose.loss() else {
            return failure;
        };
        if !error.may_have_been_processed() {
            return failure;
        }
        failure.message = format!("{}; {effect}", failure.message);
        failure.hint(format!("{advice} before you try again"))
    }

    /// Describes an exhausted quota or a ban.
    fn blocked(&self, blocked: &Blocked) -> Failure {
        let failure = match blocked.reason {
            BlockReason::Ban => {
                let length = time::duration(blocked.remaining);
                let end = self.clock.instant(blocked.until);
                let message = format!("the service banned this key for {length} (until {end})");
                Failure::new(Kind::Banned, message)
            }
            reason => {
                let until = self.clock.until(blocked.until, blocked.remaining);
                let message = format!("{}, resets {until}", exhausted(reason));
                Failure::new(Kind::RateLimited, message)
            }
        };
        if blocked.remaining <= self.settings.values().max_wait() {
            return failure;
        }
        let longer = time::wait_option(blocked.remaining);
        match blocked.remaining.as_secs() {
            ..3_600 => failure.hint(format!("`--max-wait {longer}` waits for it")),
            _ => {
                let hint = format!("run the command again then, or add `--max-wait {longer}`");
                failure.hint(hint)
            }
        }
    }

    /// Describes a response with an error status.
    fn refused(&self, error: &ClientError) -> Failure {
        let answer = answer(error);
        match error.status().map_or(0, |status| status.as_u16()) {
            300..=399 => redirected(error),
            404 => self.not_found(error, &answer),
            410 => self.gone(&answer),
            429 => {
                let message = format!("the service refused the request {answer}");
                Failure::new(Kind::RateLimited, message)
            }
            400..=499 => {
                let noun = match self.purpose {
                    Purpose::CreatePet => "pet",
                    Purpose::Read | Purpose::GetPet(_) | Purpose::Delete | Purpose::Change => {
                        "request"
                    }
                };
                let message = format!("the service refused the {noun} {answer}");
                Failure::new(Kind::Refused, message)
            }
            _ => self.failed(error),
        }
    }

    fn not_found(&self, error: &ClientError, answer: &str) -> Failure {
        let failure = |message| Failure::new(Kind::NotFound, message);
        if error.code().is_none_or(|code| code == "route_not_found") {
            return failure(format!("no such path {answer}"))
                .hint("check the path; the base URL must end with the version: /v1");
        }
        match self.purpose {
            Purpose::GetPet(id) => {
                let failure = failure(format!("no pet {id}"));
                failure.hint("`petstore pets list --all` lists all pets")
            }
            Purpose::Delete if error.may_have_been_processed() => {
                let why = "an earlier attempt may have deleted it";
                failure(format!("not found {answer}; {why}"))
                    .hint("the response to an earlier attempt was lost: look whether it is gone")
            }
            Purpose::Read | Purpose::CreatePet | Purpose::Delete | Purpose::Change => {
                failure(format!("not found {answer}"))
            }
        }
    }

    fn gone(&self, answer: &str) -> Failure {
        let failure = |what| {
            let message = format!("the service has removed {what} {answer}");
            Failure::new(Kind::NotFound, message)
        };
        match self.purpose {
            Purpose::GetPet(id) => failure("`pets get`").hint(format!(
                "`petstore pets list --id {id}` searches for the pet"
            )),
            Purpose::Read | Purpose::CreatePet | Purpose::Delete | Purpose::Change => {
                failure("this operation")
            }
        }
    }

    fn failed(&self, error: &ClientError) -> Failure {
        let attempts = match error.attempts() {
            0 | 1 => String::new(),
            attempts => format!(" in {attempts} attempts"),
        };
        let code = status_and_code(error);
        let said = said(error);
        let message = format!("the service failed ({code}){attempts}{said}");
        let failure = Failure::new(Kind::Service, message).hint("try again in a few minutes");
        self.or_lost(error, failure)
    }

    fn undecodable(&self, error: &ClientError) -> Failure {
        let body = error.body().map(|body| String::from_utf8_lossy(body));
        let body = body.unwrap_or_default();
        let is_json = serde_json::from_str::<IgnoredAny>(&body).is_ok();
        let message = match error.decode_path() {
            Some(path) if is_json && path != "." => {
                format!("the response is invalid at `{}`", escape::line(path))
            }
            _ if body.is_empty() => "the response has no body".to_owned(),
            _ => {
                let start: String = body.trim_start().chars().take(MAX_START).collect();
                let start = escape::line(&start);
                let what = match is_json {
                    true => "not the expected JSON",
                    false => "not JSON",
                };
                format!("the response is {what}: it begins with `{start}`")
            }
        };
        let failure = Failure::new(Kind::Decode, message).hint(self.check_base_url());
        self.or_lost(error, failure)
    }
}

fn redirected(error: &ClientError) -> Failure {
    let target = error.headers().and_then(|headers| headers.get(LOCATION));
    let target = target.map(|target| String::from_utf8_lossy(target.as_bytes()));
    let target = match &target {
        Some(target) => escape::line(target),
        None => "another address".into(),
    };
    let message = format!("the service redirects to {target}; not followed");
    Failure::new(Kind::Refused, message).hint("if you trust it, set it as the base URL")
}

/// Returns the status, the code and the message of a response: `(404 pet_not_found): no pet`.
fn answer(error: &ClientError) -> String {
    format!("({}){}", status_and_code(error), said(error))
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
    match error.message() {
        Some(message) => format!(": {}", shortened(message)),
        None => String::new(),
    }
}

/// Returns the client's message, without the name of the operation.
fn other(kind: Kind, error: &ClientError) -> Failure {
    Failure::new(kind, error.problem().into_owned())
}

/// Returns the fields of an error for programs.
fn fields(error: &ClientError) -> Map<String, Value> {
    let quota = match error.blocked().map(|blocked| blocked.reason) {
        Some(BlockReason::Quota(quota)) => Some(quota),
        _ => None,
    };
    let all = json!({
        "quota": quota,
        "retryAt": error.retry_at().map(time::instant),
        "retryAfterSeconds": error.retry_after().map(time::seconds),
        "status": error.status().map(|status| status.as_u16()),
        "code": error.code(),
        "serviceMessage": error.message(),
        "path": error.decode_path(),
        "attempts": error.attempts(),
        "mayHaveBeenProcessed": error.may_have_been_processed(),
    });
    let mut fields = Map::new();
    if let Value::Object(all) = all {
        fields.extend(all.into_iter().filter(|(_, value)| !value.is_null()));
    }
    fields
}
