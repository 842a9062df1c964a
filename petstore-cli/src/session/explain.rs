//! Turns errors of requests into messages with hints for the command line.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::header::LOCATION;
use petstore_client::limits::{BlockReason, Blocked};
use petstore_client::{Error, ErrorKind, TimeoutKind};
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
    pub(super) fn client(&self, error: &Error) -> Failure {
        let mut failure = self.words(error);
        failure.fields = fields(error);
        failure
    }

    fn words(&self, error: &Error) -> Failure {
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
            ErrorKind::RateLimited if error.status().is_none() => self.waited_in_vain(error),
            ErrorKind::Config | ErrorKind::Credentials => other(Kind::Config, error),
            ErrorKind::InvalidRequest => other(Kind::Usage, error),
            ErrorKind::Paging => other(Kind::Service, error),
            _ if error.status().is_some() => self.refused(error),
            _ => other(Kind::Internal, error),
        }
    }

    fn unauthorized(&self, error: &Error) -> Failure {
        let key = self.service.key();
        let code = status_and_code(error);
        let from = key.from();
        let message = format!("the service refused the key ({code}{from})");
        Failure::new(Kind::Key, message).hint(key.fix())
    }

    fn timed_out(&self, error: &Error) -> Failure {
        if error.timeout_kind() == Some(TimeoutKind::Connect) {
            return self.not_connected_in_time();
        }
        let failure = self.no_response();
        self.or_lost(error, failure)
    }

    fn not_connected_in_time(&self) -> Failure {
        let host = self.service.host();
        let timeout = self.settings.values().timeout();
        let limit = timeout.min(super::CONNECT_TIMEOUT);
        let limit = time::duration(limit);
        let message = format!("cannot connect to {host} within {limit}");
        Failure::new(Kind::Timeout, message).hint("check the network and the firewall")
    }

    fn no_response(&self) -> Failure {
        let host = self.service.host();
        let timeout = self.settings.values().timeout();
        let limit = time::duration(timeout);
        let longer = timeout.saturating_mul(4);
        let longer = Seconds::<1>(longer);
        let message = format!("no response from {host} within {limit}");
        let hint = format!("`--timeout {longer}` waits longer");
        Failure::new(Kind::Timeout, message).hint(hint)
    }

    fn interrupted(&self, error: &Error) -> Failure {
        let host = self.service.host();
        let message = format!("{host} closed the connection before the response");
        let hint = self.check_base_url();
        let failure = Failure::new(Kind::Network, message).hint(hint);
        self.or_lost(error, failure)
    }

    fn check_base_url(&self) -> String {
        let source = self.service.base_url_source();
        format!("check that the base URL is the service's{source}")
    }

    fn too_large(&self) -> Failure {
        let limit = self.settings.values().max_response_size();
        let larger = limit.0.saturating_mul(8);
        let larger = Size(larger.next_multiple_of(1 << 10));
        let message = format!("the response is larger than {limit}");
        let hint = format!("`--max-response-size` allows larger ones, for example {larger}");
        Failure::new(Kind::TooLarge, message).hint(hint)
    }

    fn no_connection(&self, error: &Error) -> Failure {
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
        let mut message = format!("cannot connect to {host}");
        if let Some(problem) = io_error(error) {
            // The system's connection errors have numbers. Errors of the name look-up have none.
            if problem.raw_os_error().is_none() {
                let name = self.service.host_name();
                let message = format!("no host `{name}`");
                return Failure::new(Kind::Network, message).hint(correct);
            }
            let problem = os_text(problem);
            message += &format!(": {problem}");
        }
        let hint = format!("start the service, or {correct}");
        Failure::new(Kind::Network, message).hint(hint)
    }

    /// If the request may have been processed, adds that to the message, with a hint.
    fn or_lost(&self, error: &Error, mut failure: Failure) -> Failure {
        let Some(Loss { effect, advice }) = self.purpose.loss() else {
            return failure;
        };
        if !error.may_have_been_processed() {
            return failure;
        }
        failure.message = format!("{}; {effect}", failure.message);
        let hint = format!("{advice} before you try again");
        failure.hint(hint)
    }

    /// Describes an exhausted quota or a ban.
    fn blocked(&self, blocked: &Blocked) -> Failure {
        let failure = match blocked.reason {
            BlockReason::Ban => self.banned(blocked),
            reason => self.exhausted(reason, blocked),
        };
        let remaining = blocked.remaining;
        if remaining <= self.settings.values().max_wait() {
            return failure;
        }
        let longer = time::wait_option(remaining);
        let hint = if remaining.as_secs() < 3_600 {
            format!("`--max-wait {longer}` waits for it")
        } else {
            format!("run the command again then, or add `--max-wait {longer}`")
        };
        failure.hint(hint)
    }

    /// Describes a wait for other requests with the key.
    fn waited_in_vain(&self, error: &Error) -> Failure {
        /// A shorter wait may be in vain too.
        const MIN_LONGER: Duration = Duration::from_secs(60);

        let failure = other(Kind::RateLimited, error);
        let max_wait = self.settings.values().max_wait();
        if error.waited() < max_wait {
            return failure;
        }
        let longer = time::wait_option(max_wait.saturating_mul(4).max(MIN_LONGER));
        failure.hint(format!("`--max-wait {longer}` waits longer"))
    }

    fn banned(&self, blocked: &Blocked) -> Failure {
        let length = time::duration(blocked.remaining);
        let end = self.clock.instant(blocked.until);
        let message = format!("the service banned this key for {length} (until {end})");
        Failure::new(Kind::Banned, message)
    }

    fn exhausted(&self, reason: BlockReason, blocked: &Blocked) -> Failure {
        let what = exhausted(reason);
        let until = self.clock.until(blocked.until, blocked.remaining);
        let message = format!("{what}, resets {until}");
        Failure::new(Kind::RateLimited, message)
    }

    /// Describes a response with an error status.
    fn refused(&self, error: &Error) -> Failure {
        let answer = answer(error);
        match status_number(error) {
            300..=399 => redirected(error),
            404 => self.not_found(error, &answer),
            410 => self.gone(&answer),
            429 => refusal(Kind::RateLimited, "request", &answer),
            400..=499 => refusal(Kind::Refused, self.purpose.noun(), &answer),
            _ => self.failed(error),
        }
    }

    fn not_found(&self, error: &Error, answer: &str) -> Failure {
        if !is_code_of_resource(error.code()) {
            let message = format!("no such path {answer}");
            let hint = "check the path; the base URL must end with the version: /v1";
            return Failure::new(Kind::NotFound, message).hint(hint);
        }
        if self.purpose.deletes() && error.may_have_been_processed() {
            return perhaps_deleted(answer);
        }
        if let Some((message, hint)) = self.purpose.missing() {
            return Failure::new(Kind::NotFound, message).hint(hint);
        }
        Failure::new(Kind::NotFound, format!("not found {answer}"))
    }

    fn gone(&self, answer: &str) -> Failure {
        if let Some(retiring) = self.purpose.retiring() {
            let command = retiring.command;
            let message = format!("the service has removed `{command}` {answer}");
            return Failure::new(Kind::NotFound, message).hint(retiring.hint);
        }
        let message = format!("the service has removed this operation {answer}");
        Failure::new(Kind::NotFound, message)
    }

    fn failed(&self, error: &Error) -> Failure {
        let attempts = match error.attempts() {
            0 | 1 => String::new(),
            attempts => format!(" in {attempts} attempts"),
        };
        let code = status_and_code(error);
        let said = said(error);
        let message = format!("the service failed ({code}){attempts}{said}");
        let hint = "try again in a few minutes";
        let failure = Failure::new(Kind::Service, message).hint(hint);
        self.or_lost(error, failure)
    }

    fn undecodable(&self, error: &Error) -> Failure {
        let message = unexpected_body(error);
        let hint = self.check_base_url();
        let failure = Failure::new(Kind::Decode, message).hint(hint);
        self.or_lost(error, failure)
    }
}

/// Returns the last I/O error among the causes.
fn io_error(error: &Error) -> Option<&io::Error> {
    let mut last = None;
    for cause in causes(error) {
        if let Some(problem) = cause.downcast_ref() {
            last = Some(problem);
        }
    }
    last
}

fn status_number(error: &Error) -> u16 {
    match error.status() {
        Some(status) => status.as_u16(),
        None => 0,
    }
}

fn refusal(kind: Kind, noun: &str, answer: &str) -> Failure {
    let message = format!("the service refused the {noun} {answer}");
    Failure::new(kind, message)
}

/// Describes a 404 to a deletion that may have been done by an earlier attempt.
fn perhaps_deleted(answer: &str) -> Failure {
    let why = "an earlier attempt may have deleted it";
    let message = format!("not found {answer}; {why}");
    let hint = "the response to an earlier attempt was lost: look whether it is gone";
    Failure::new(Kind::NotFound, message).hint(hint)
}

/// Returns whether the code of a 404 is about a resource, and not about the path.
fn is_code_of_resource(code: Option<&str>) -> bool {
    match code {
        Some(code) => code != "route_not_found",
        None => false,
    }
}

/// Describes a body that is not the expected one.
fn unexpected_body(error: &Error) -> String {
    let body: &[u8] = match error.response() {
        Some(response) => response.body(),
        None => &[],
    };
    if body.is_empty() {
        return "the response has no body".to_owned();
    }
    match serde_json::from_slice::<IgnoredAny>(body) {
        Err(problem) if problem.is_syntax() => {
            let text = String::from_utf8_lossy(body);
            let start: String = text.trim_start().chars().take(MAX_START).collect();
            let start = escape::line(&start);
            format!("the response is not JSON: it begins with `{start}`")
        }
        // The client keeps only the beginning of a long body.
        Ok(_) | Err(_) => error.problem().into_owned(),
    }
}

fn redirected(error: &Error) -> Failure {
    let target = location(error);
    let message = format!("the service redirects to {target}; not followed");
    let hint = "if you trust it, set it as the base URL";
    Failure::new(Kind::Refused, message).hint(hint)
}

/// Returns the address to which a response redirects.
fn location(error: &Error) -> String {
    if let Some(response) = error.response()
        && let Some(target) = response.headers().get(LOCATION)
    {
        let target = String::from_utf8_lossy(target.as_bytes());
        return escape::line(&target).into_owned();
    }
    "another address".to_owned()
}

/// Returns the status, the code and the message of a response: `(404 pet_not_found): no pet`.
fn answer(error: &Error) -> String {
    let code = status_and_code(error);
    let said = said(error);
    format!("({code}){said}")
}

fn status_and_code(error: &Error) -> String {
    match (error.status(), error.code()) {
        (Some(status), Some(code)) => {
            let status = status.as_u16();
            let code = escape::line(code);
            format!("{status} {code}")
        }
        (Some(status), None) => status.to_string(),
        (None, _) => String::new(),
    }
}

/// Returns the service's message, after a colon.
fn said(error: &Error) -> String {
    match error.message() {
        Some(message) => {
            let message = shortened(message);
            format!(": {message}")
        }
        None => String::new(),
    }
}

/// Returns the client's message, without the name of the operation.
fn other(kind: Kind, error: &Error) -> Failure {
    Failure::new(kind, error.problem().into_owned())
}

/// Returns the fields of an error for programs.
fn fields(error: &Error) -> Map<String, Value> {
    let mut quota = None;
    if let Some(blocked) = error.blocked()
        && let BlockReason::Quota(exhausted) = blocked.reason
    {
        quota = Some(exhausted);
    }
    let status = error.status();
    let all = json!({
        "quota": quota,
        "retryAt": error.retry_at().map(time::instant),
        "retryAfterSeconds": error.retry_after().map(time::seconds),
        "status": status.map(|status| status.as_u16()),
        "code": error.code(),
        "serviceMessage": error.message(),
        "attempts": error.attempts(),
        "mayHaveBeenProcessed": error.may_have_been_processed(),
    });
    let Value::Object(mut fields) = all else {
        return Map::new();
    };
    fields.retain(|_, value| !value.is_null());
    fields
}
