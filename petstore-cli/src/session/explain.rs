//! Turns errors of requests into messages: the client's sentence, and a hint by the kind of error.

use std::time::Duration;

use petstore_client::limits::{BlockReason, Blocked};
use petstore_client::{Error, ErrorKind, TimeoutKind};
use serde_json::{Map, Value, json};

use super::Purpose;
use super::words::exhausted;
use crate::error::{Failure, Kind};
use crate::settings::credentials::KeySource;
use crate::settings::{Seconds, Settings, Size};
use crate::time::{self, Clock};

/// Describes the error of a request: `purpose` and `key` are those of its client.
pub(crate) fn failure(
    error: &Error,
    settings: &Settings,
    clock: &Clock,
    purpose: Purpose,
    key: &KeySource,
) -> Failure {
    let message = match error.blocked() {
        Some(blocked) => block(blocked, clock),
        None => sentence(error),
    };
    let mut failure = Failure::new(kind(error), message);
    failure.hint = hint(error, settings, purpose, key);
    failure.fields = fields(error);
    failure
}

/// Describes an exhausted quota or a ban.
fn block(blocked: &Blocked, clock: &Clock) -> String {
    match blocked.reason {
        BlockReason::Ban => {
            let length = time::duration(blocked.remaining);
            let end = clock.instant(blocked.until);
            format!("the service banned this key for {length} (until {end})")
        }
        reason => {
            let end = clock.until(blocked.until, blocked.remaining);
            format!("{}, resets {end}", exhausted(reason))
        }
    }
}

fn hint(error: &Error, settings: &Settings, purpose: Purpose, key: &KeySource) -> Option<String> {
    if error.may_have_been_processed()
        && let Some(hint) = purpose.hint_after_loss(settings)
    {
        return Some(hint);
    }
    let source = settings.source("base_url");
    let hint = match error.kind() {
        ErrorKind::Unauthorized => key.fix(),
        ErrorKind::Connect => {
            format!("check the service and any proxy, or correct the base URL{source}")
        }
        ErrorKind::Tls => {
            let trust = "trust the authority with `--ca-file FILE`";
            format!("{trust}, or correct the base URL{source}")
        }
        ErrorKind::Timeout if error.timeout_kind() == Some(TimeoutKind::Connect) => {
            format!("check the network, or correct the base URL{source}")
        }
        ErrorKind::Timeout => {
            let longer = settings.values().timeout().saturating_mul(4);
            format!("`--timeout {}` waits longer", Seconds::<1>(longer))
        }
        ErrorKind::Interrupted | ErrorKind::Decode => {
            format!("check that the base URL is the service's{source}")
        }
        ErrorKind::BodyTooLarge => {
            let Size(limit) = settings.values().max_response_size();
            let larger = Size(limit.saturating_mul(8).next_multiple_of(1 << 10));
            format!("`--max-response-size {larger}` allows larger ones")
        }
        ErrorKind::RateLimited => return longer_wait(error, settings.values().max_wait()),
        ErrorKind::NotFound => match purpose {
            Purpose::GetPet(_) => {
                let list = settings.command("pets list --all");
                format!("{list} lists all pets")
            }
            _ => format!("check the base URL{source}: it ends with /v1, and a path follows it"),
        },
        ErrorKind::Gone => match purpose {
            Purpose::GetPet(id) => {
                let search = settings.command(&format!("pets list --id {id}"));
                format!("{search} searches for the pet")
            }
            _ => return None,
        },
        ErrorKind::Rejected if error.status().is_some_and(|it| it.is_redirection()) => {
            "redirects are not followed; if you trust this one, set it as the base URL".to_owned()
        }
        ErrorKind::Server => "try again in a few minutes".to_owned(),
        _ => return None,
    };
    Some(hint)
}

/// Returns the hint for a wait that `--max-wait` does not allow.
fn longer_wait(error: &Error, max_wait: Duration) -> Option<String> {
    let Some(blocked) = error.blocked() else {
        // A wait for other requests, which has no known end.
        let longer = time::wait_option(max_wait.saturating_mul(4).max(time::MINUTE));
        let has_waited = error.waited() >= max_wait;
        return has_waited.then(|| format!("`--max-wait {longer}` waits longer"));
    };
    if blocked.remaining <= max_wait {
        return None;
    }
    let longer = time::wait_option(blocked.remaining);
    Some(match blocked.remaining.as_secs() {
        ..3_600 => format!("`--max-wait {longer}` waits for it"),
        _ => format!("run the command again then, or add `--max-wait {longer}`"),
    })
}

/// Returns the client's sentence, and how many attempts failed.
fn sentence(error: &Error) -> String {
    // The sentence of the `key_command`.
    if error.kind() == ErrorKind::Credentials
        && let Some(cause) = std::error::Error::source(error)
    {
        return cause.to_string();
    }
    let problem = error.problem();
    match error.attempts() {
        0 | 1 => problem.to_owned(),
        attempts => format!("{problem} (after {attempts} attempts)"),
    }
}

fn kind(error: &Error) -> Kind {
    match error.kind() {
        ErrorKind::Unauthorized | ErrorKind::Credentials => Kind::Key,
        ErrorKind::Config => Kind::Config,
        ErrorKind::InvalidRequest => Kind::Usage,
        ErrorKind::Tls => Kind::Tls,
        ErrorKind::Connect | ErrorKind::Interrupted => Kind::Network,
        ErrorKind::Timeout => Kind::Timeout,
        ErrorKind::BodyTooLarge => Kind::TooLarge,
        ErrorKind::Decode => Kind::Decode,
        ErrorKind::RateLimited => match error.blocked().map(|blocked| blocked.reason) {
            Some(BlockReason::Ban) => Kind::Banned,
            _ => Kind::RateLimited,
        },
        ErrorKind::Server | ErrorKind::Paging => Kind::Service,
        ErrorKind::NotFound | ErrorKind::Gone => Kind::NotFound,
        ErrorKind::Rejected => Kind::Refused,
        _ => Kind::Internal,
    }
}

fn fields(error: &Error) -> Map<String, Value> {
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
        "attempts": error.attempts(),
        "mayHaveBeenProcessed": error.may_have_been_processed(),
    });
    let Value::Object(mut fields) = all else {
        return Map::new();
    };
    fields.retain(|_, value| !value.is_null());
    fields
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use http::StatusCode;
    use petstore_client::test_util::ErrorBuilder;

    use super::*;
    use crate::env::{Dirs, System};
    use crate::settings::Values;

    /// Sunday 22 November 2026, 06:44:19 UTC.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_329_859)
    }

    /// Returns the failure of a command with these variables.
    fn failure(vars: &[(&str, &str)], purpose: Purpose, error: &Error) -> Failure {
        let base_url = [("PETSTORE_BASE_URL", "https://petstore.example/v1")];
        let vars = base_url.iter().chain(vars);
        let vars = vars.map(|(name, value)| ((*name).to_owned(), value.into()));
        let system = System::new(vars.collect(), Dirs::default(), now, None);
        let (settings, problem) = Settings::resolve(None, &Values::default(), &system, false);
        assert!(problem.is_none(), "{problem:?}");
        let clock = Clock::new(now);
        super::failure(error, &settings, &clock, purpose, &KeySource::Variable)
    }

    fn status(status: u16) -> Error {
        ErrorBuilder::response(StatusCode::from_u16(status).unwrap(), "").build()
    }

    fn unprocessed(kind: ErrorKind) -> Error {
        let error = ErrorBuilder::new(kind).may_have_been_processed(false);
        error.build()
    }

    #[test]
    fn each_kind_has_its_code_and_its_hint() {
        for (error, code, hint) in [
            (status(401), 3, "set PETSTORE_API_KEY to a valid key"),
            (status(404), 9, "check the base URL (from "),
            (
                status(307),
                4,
                "redirects are not followed; if you trust this one, ",
            ),
            (status(500), 5, "try again in a few minutes"),
            (
                unprocessed(ErrorKind::Connect),
                6,
                "check the service and any proxy, or correct ",
            ),
            (
                unprocessed(ErrorKind::Tls),
                6,
                "trust the authority with `--ca-file FILE`, or ",
            ),
            (
                unprocessed(ErrorKind::Timeout),
                6,
                "`--timeout 2m` waits longer",
            ),
            (
                unprocessed(ErrorKind::Interrupted),
                6,
                "check that the base URL is the service's",
            ),
            (
                unprocessed(ErrorKind::Decode),
                5,
                "check that the base URL is the service's",
            ),
            (
                unprocessed(ErrorKind::BodyTooLarge),
                5,
                "`--max-response-size 80MiB` allows ",
            ),
            (status(400), 4, ""),
            (status(410), 9, ""),
            (unprocessed(ErrorKind::Config), 3, ""),
            (unprocessed(ErrorKind::InvalidRequest), 2, ""),
            (unprocessed(ErrorKind::Paging), 5, ""),
            (unprocessed(ErrorKind::Runtime), 1, ""),
        ] {
            let failure = failure(&[], Purpose::Read, &error);
            assert_eq!(failure.kind.code(), code, "{error}");
            let found = failure.hint.unwrap_or_default();
            assert!(found.starts_with(hint), "{error}: {found}");
            assert_eq!(found.is_empty(), hint.is_empty(), "{error}: {found}");
        }
    }

    #[test]
    fn a_purpose_decides_what_a_lost_request_may_have_done() {
        let lost = ErrorBuilder::new(ErrorKind::Interrupted).build();
        let unsent = unprocessed(ErrorKind::Interrupted);
        for (purpose, error, hint) in [
            (Purpose::CreatePet, &lost, "the pet may have been created: "),
            (
                Purpose::Change,
                &lost,
                "the request may have been processed: ",
            ),
            (Purpose::Read, &lost, "check that the base URL"),
            (Purpose::CreatePet, &unsent, "check that the base URL"),
        ] {
            let found = failure(&[], purpose, error).hint.unwrap();
            assert!(found.starts_with(hint), "{purpose:?}: {found}");
        }
    }

    #[test]
    fn a_wait_beyond_max_wait_names_the_option_that_waits() {
        let max_wait = [("PETSTORE_MAX_WAIT", "5")];
        let error = ErrorBuilder::new(ErrorKind::RateLimited).build();
        let hint = failure(&max_wait, Purpose::Read, &error).hint;
        assert_eq!(hint.as_deref(), Some("`--max-wait 1m` waits for it"));
    }

    #[test]
    fn programs_get_the_fields_that_have_a_value() {
        let body = json!({"code": "invalid_body", "message": "said\nso"}).to_string();
        let error = ErrorBuilder::response(StatusCode::BAD_REQUEST, body)
            .attempts(2)
            .build();
        let expected = json!({
            "status": 400, "code": "invalid_body", "serviceMessage": "said\nso", "attempts": 2,
            "mayHaveBeenProcessed": false,
        });
        assert_eq!(Value::Object(fields(&error)), expected);
    }
}
