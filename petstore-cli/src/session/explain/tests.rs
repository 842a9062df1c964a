//! Tests of the explanations, each with the error that causes it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{Response, StatusCode};
use petstore_client::RequestOptions;
use petstore_client::bytes::Bytes;
use petstore_client::limits::Quota;
use petstore_client::test_util::{self, ErrorBuilder};
use petstore_client::transport::TransportError;
use petstore_client::url::Url;

use super::*;
use crate::env::{Dirs, System};
use crate::settings::Values;
use crate::settings::credentials::KeySource;

/// Sunday 22 November 2026, 06:44:19 UTC.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_329_859)
}

/// An explainer with these variables.
fn with_vars(vars: &[(&str, &str)], key: KeySource, purpose: Purpose) -> Explainer {
    let base_url = "https://petstore.example/v1";
    let mut all: HashMap<_, _> = [("PETSTORE_BASE_URL".to_owned(), base_url.into())].into();
    all.extend(
        vars.iter()
            .map(|(name, value)| ((*name).to_owned(), value.into())),
    );
    let system = System::new(all, Dirs::default(), now, None);
    let (settings, problem) = Settings::resolve(None, &Values::default(), &system, false);
    assert!(problem.is_none(), "{problem:?}");
    let url = Url::parse(base_url).unwrap();
    let service = Service::new(&url, key, &settings, &system);
    let settings = Arc::new(settings);
    let nothing = Service::none(&settings);
    let mut explainer = Explainer::new(settings, Clock::new(now), nothing);
    explainer.begin(service, purpose);
    explainer
}

fn for_purpose(purpose: Purpose) -> Explainer {
    with_vars(&[], KeySource::Variable, purpose)
}

/// Returns the exit code, the message and the hint.
fn shown(failure: &Failure) -> String {
    let code = failure.kind.code();
    let hint = failure.hint.as_deref().unwrap_or("-");
    format!("{code} | {} | {hint}", failure.message)
}

fn explained(purpose: Purpose, error: &Error) -> String {
    shown(&for_purpose(purpose).client(error))
}

/// The error of a response with an Error object.
fn refusal(status: u16, code: &str) -> ErrorBuilder {
    let status = StatusCode::from_u16(status).unwrap();
    let body = json!({"code": code, "message": "said\nso", "status": status.as_u16()});
    ErrorBuilder::response(status, body.to_string())
}

/// The error of a request whose only attempt ends like this.
async fn error_of(
    end: impl Fn() -> Result<Response<Bytes>, TransportError> + Send + Sync + 'static,
) -> Error {
    let client = test_util::client(move |_| end());
    let once = RequestOptions::new().max_attempts(1);
    client
        .pets()
        .list()
        .options(&once)
        .send()
        .await
        .unwrap_err()
}

async fn error_of_body(body: &'static str) -> Error {
    error_of(move || Ok(Response::new(Bytes::from_static(body.as_bytes())))).await
}

#[test]
fn a_refused_key_names_its_source_and_the_way_to_replace_it() {
    let error = refusal(401, "unauthorized").build();
    let explained = |key| shown(&with_vars(&[], key, Purpose::Read).client(&error));
    let stored = KeySource::Stored {
        path: "~/keys/a".to_owned(),
        option: " --profile a".to_owned(),
    };
    assert_eq!(
        [
            explained(KeySource::Variable),
            explained(KeySource::File("~/key".to_owned())),
            explained(stored),
            explained(KeySource::Typed),
        ],
        [
            "3 | the service refused the key (401 unauthorized; from PETSTORE_API_KEY) | \
             set PETSTORE_API_KEY to a valid key",
            "3 | the service refused the key (401 unauthorized; from ~/key) | \
             put a valid key into the file that PETSTORE_API_KEY_FILE names",
            "3 | the service refused the key (401 unauthorized) | \
             `petstore auth login --profile a` stores another key",
            "3 | the service refused the key (401 unauthorized) | \
             check it for typing errors and log in again",
        ]
    );
}

#[tokio::test]
async fn a_failed_connection_says_what_to_correct() {
    let refused = || io::Error::from_raw_os_error(111);
    let error = error_of(move || Err(TransportError::connect(refused()))).await;
    #[cfg(target_os = "linux")]
    assert_eq!(
        explained(Purpose::CreatePet, &error),
        "6 | cannot connect to petstore.example: connection refused | \
         start the service, or correct the base URL (from PETSTORE_BASE_URL)"
    );
    let proxy = [("HTTPS_PROXY", "http://proxy.example:3128")];
    let behind_proxy = with_vars(&proxy, KeySource::Variable, Purpose::Read);
    assert_eq!(
        shown(&behind_proxy.client(&error)),
        "6 | cannot connect to petstore.example, or to its proxy | \
         check the proxy in HTTPS_PROXY, or correct the base URL (from PETSTORE_BASE_URL)"
    );
    let unresolved = || io::Error::other("failed to look up the address");
    let error = error_of(move || Err(TransportError::connect(unresolved()))).await;
    assert_eq!(
        explained(Purpose::Read, &error),
        "6 | no host `petstore.example` | correct the base URL (from PETSTORE_BASE_URL)"
    );
    let error = error_of(|| Err(TransportError::connect("no reason"))).await;
    assert_eq!(
        explained(Purpose::Read, &error),
        "6 | cannot connect to petstore.example | \
         start the service, or correct the base URL (from PETSTORE_BASE_URL)"
    );
}

#[tokio::test]
async fn a_failed_handshake_is_explained_by_its_root() {
    let error = error_of(|| Err(TransportError::tls("bad handshake"))).await;
    assert_eq!(
        explained(Purpose::Read, &error),
        "6 | petstore.example: no secure connection: bad handshake | \
         `--ca-file FILE` trusts an authority"
    );
}

#[cfg(feature = "rustls-errors")]
#[tokio::test]
async fn the_usual_problems_with_certificates_have_words_of_their_own() {
    use rustls::{CertificateError as Bad, Error as TlsError, InvalidMessage};

    for (problem, expected) in [
        (
            TlsError::InvalidCertificate(Bad::UnknownIssuer),
            "6 | petstore.example: certificate from an unknown authority | \
             `--ca-file FILE` trusts an authority",
        ),
        (
            TlsError::InvalidCertificate(Bad::NotValidForName),
            "6 | petstore.example: the certificate is for another host | \
             correct the base URL (from PETSTORE_BASE_URL)",
        ),
        (
            TlsError::InvalidCertificate(Bad::Expired),
            "6 | petstore.example: the certificate has expired | check the clock of this machine",
        ),
        (
            TlsError::InvalidMessage(InvalidMessage::InvalidContentType),
            "6 | petstore.example does not speak TLS | \
             for a local service use http://petstore.example/v1",
        ),
        (
            TlsError::HandshakeNotComplete,
            "6 | petstore.example: no secure connection: handshake not complete | \
             `--ca-file FILE` trusts an authority",
        ),
    ] {
        // The client's connection wraps the library's error twice.
        let wrapped = move || io::Error::other(io::Error::other(problem.clone()));
        let error = error_of(move || Err(TransportError::tls(wrapped()))).await;
        assert_eq!(explained(Purpose::Read, &error), expected);
    }
}

#[tokio::test]
async fn a_lost_response_says_what_may_have_happened() {
    let read = ErrorBuilder::new(ErrorKind::Timeout).build();
    assert_eq!(
        explained(Purpose::Read, &read),
        "6 | no response from petstore.example within 30 s | `--timeout 2m` waits longer"
    );
    assert_eq!(
        shown(&for_purpose(Purpose::CreatePet).client(&read)),
        "6 | no response from petstore.example within 30 s; the pet may have been created | \
         look in `petstore pets list --all` before you try again"
    );
    let unsent = ErrorBuilder::new(ErrorKind::Timeout).may_have_been_processed(false);
    assert_eq!(
        explained(Purpose::CreatePet, &unsent.build()),
        explained(Purpose::Read, &read)
    );
    let broken = ErrorBuilder::new(ErrorKind::Interrupted).build();
    assert_eq!(
        explained(Purpose::Read, &broken),
        "6 | petstore.example closed the connection before the response | \
         check that the base URL is the service's (from PETSTORE_BASE_URL)"
    );
    assert_eq!(
        explained(Purpose::Delete, &broken),
        "6 | petstore.example closed the connection before the response; \
         the request may have been processed | check the result before you try again"
    );
}

#[test]
fn a_connection_takes_at_most_ten_seconds_of_the_timeout() {
    let within = |timeout: &str| {
        let vars = [("PETSTORE_TIMEOUT", timeout)];
        shown(&with_vars(&vars, KeySource::Typed, Purpose::Read).not_connected_in_time())
    };
    let hint = "check the network and the firewall";
    let expected =
        |limit: &str| format!("6 | cannot connect to petstore.example within {limit} | {hint}");
    assert_eq!(
        [within("60"), within("4")],
        [expected("10 s"), expected("4 s")]
    );
}

#[tokio::test]
async fn a_response_that_makes_no_sense_shows_where() {
    let large = ErrorBuilder::new(ErrorKind::BodyTooLarge).build();
    assert_eq!(
        explained(Purpose::Read, &large),
        "5 | the response is larger than 10MiB | `--max-response-size` allows larger ones, for example 80MiB"
    );
    let hint = "check that the base URL is the service's (from PETSTORE_BASE_URL)";
    for (body, problem) in [
        ("", "the response has no body"),
        (
            "  <!doctype html><p>\u{1b}[2J",
            "the response is not JSON: it begins with `<!doctype html>`",
        ),
        (
            "\u{1b}[2J",
            "the response is not JSON: it begins with `\\u{1b}[2J`",
        ),
        (
            "{\"pets\":[]}",
            "the response 200 could not be read: at `.`: invalid type: map, expected a sequence at line 1 column 0",
        ),
        (
            "[{\"id\":\"x\",\"name\":\"a\",\"categoryId\":1}]",
            "the response 200 could not be read: at `[0].id`: invalid type: string \"x\", expected i64 at line 1 column 10",
        ),
    ] {
        let error = error_of_body(body).await;
        let expected = format!("5 | {problem} | {hint}");
        assert_eq!(explained(Purpose::Read, &error), expected, "{body}");
    }
    let lost = error_of_body("").await;
    let lost = explained(Purpose::Change, &lost);
    assert_eq!(
        lost.contains("the request may have been processed"),
        error_of_body("").await.may_have_been_processed(),
        "{lost}"
    );
}

#[test]
fn a_refusal_calls_a_pet_a_pet_and_escapes_what_was_said() {
    let invalid = refusal(400, "invalid_body").build();
    assert_eq!(
        explained(Purpose::CreatePet, &invalid),
        "4 | the service refused the pet (400 invalid_body): said\\nso | -"
    );
    for other in [
        Purpose::Read,
        Purpose::GetPet(7),
        Purpose::Delete,
        Purpose::Change,
    ] {
        assert_eq!(
            explained(other, &invalid),
            "4 | the service refused the request (400 invalid_body): said\\nso | -"
        );
    }
    let plain = ErrorBuilder::response(StatusCode::CONFLICT, "").build();
    assert_eq!(
        explained(Purpose::Read, &plain),
        "4 | the service refused the request (409 Conflict) | -"
    );
}

#[test]
fn a_missing_path_pet_or_resource_is_told_apart() {
    let route = refusal(404, "route_not_found").build();
    let no_code = ErrorBuilder::response(StatusCode::NOT_FOUND, "").build();
    let pet = refusal(404, "pet_not_found");
    let hint = "check the path; the base URL must end with the version: /v1";
    assert_eq!(
        [
            explained(Purpose::GetPet(7), &route),
            explained(Purpose::Read, &no_code),
        ],
        [
            format!("9 | no such path (404 route_not_found): said\\nso | {hint}"),
            format!("9 | no such path (404 Not Found) | {hint}"),
        ]
    );
    let repeated = refusal(404, "pet_not_found").may_have_been_processed(true);
    let pet = pet.build();
    assert_eq!(
        [
            explained(Purpose::GetPet(7), &pet),
            explained(Purpose::Read, &pet),
            explained(Purpose::Delete, &pet),
            explained(Purpose::Delete, &repeated.build()),
        ],
        [
            "9 | no pet 7 | `petstore pets list --all` lists all pets",
            "9 | not found (404 pet_not_found): said\\nso | -",
            "9 | not found (404 pet_not_found): said\\nso | -",
            "9 | not found (404 pet_not_found): said\\nso; an earlier attempt may have deleted it | \
             the response to an earlier attempt was lost: look whether it is gone",
        ]
    );
}

#[test]
fn a_removed_operation_names_what_replaces_it() {
    let gone = refusal(410, "operation_removed").build();
    assert_eq!(
        [
            explained(Purpose::GetPet(7), &gone),
            explained(Purpose::Change, &gone),
        ],
        [
            "9 | the service has removed `pets get` (410 operation_removed): said\\nso | \
             `petstore pets list --id 7` searches for the pet",
            "9 | the service has removed this operation (410 operation_removed): said\\nso | -",
        ]
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_says_where_it_leads() {
    let redirect = |target: Option<&'static str>| {
        error_of(move || {
            let mut builder = Response::builder().status(307);
            if let Some(target) = target {
                builder = builder.header("location", target);
            }
            Ok(builder.body(Bytes::new()).unwrap())
        })
    };
    let hint = "if you trust it, set it as the base URL";
    assert_eq!(
        explained(
            Purpose::Read,
            &redirect(Some("https://other.example/v1")).await
        ),
        format!("4 | the service redirects to https://other.example/v1; not followed | {hint}")
    );
    assert_eq!(
        explained(Purpose::Read, &redirect(None).await),
        format!("4 | the service redirects to another address; not followed | {hint}")
    );
}

#[test]
fn a_failure_of_the_service_counts_the_attempts() {
    let failed = |attempts| refusal(500, "internal_error").attempts(attempts).build();
    let hint = "try again in a few minutes";
    assert_eq!(
        [
            explained(Purpose::Read, &failed(1)),
            explained(Purpose::Read, &failed(4)),
            explained(Purpose::CreatePet, &failed(1)),
        ],
        [
            format!("5 | the service failed (500 internal_error): said\\nso | {hint}"),
            format!("5 | the service failed (500 internal_error) in 4 attempts: said\\nso | {hint}"),
            "5 | the service failed (500 internal_error): said\\nso; the pet may have been created | \
             look in `petstore pets list --all` before you try again"
                .to_owned(),
        ]
    );
}

#[test]
fn errors_of_the_program_keep_the_words_of_the_client() {
    for (kind, code) in [
        (ErrorKind::Config, 3),
        (ErrorKind::Credentials, 3),
        (ErrorKind::InvalidRequest, 2),
        (ErrorKind::Paging, 5),
        (ErrorKind::Runtime, 1),
    ] {
        let error = ErrorBuilder::new(kind).build();
        let expected = format!("{code} | made for a test | -");
        assert_eq!(explained(Purpose::Read, &error), expected, "{kind}");
    }
}

#[test]
fn a_wait_beyond_max_wait_names_the_option_that_waits() {
    let explainer = for_purpose(Purpose::Read);
    let blocked = |reason, seconds| {
        let remaining = Duration::from_secs(seconds);
        shown(&explainer.blocked(&Blocked::new(reason, now() + remaining, remaining)))
    };
    let minute = BlockReason::Quota(Quota::Minute);
    assert_eq!(
        [
            blocked(minute, 41),
            blocked(minute, 121),
            blocked(BlockReason::Quota(Quota::Day), 62_141),
            blocked(BlockReason::Ban, 298),
        ],
        [
            "7 | minute quota used up, resets in 41 s (2026-11-22T06:45:00Z) | -",
            "7 | minute quota used up, resets in 2 min 1 s (2026-11-22T06:46:20Z) | \
             `--max-wait 3m` waits for it",
            "7 | day quota used up, resets in 17 h 16 min (2026-11-23T00:00:00Z) | \
             run the command again then, or add `--max-wait 18h`",
            "7 | the service banned this key for 4 min 58 s (until 2026-11-22T06:49:17Z) | \
             `--max-wait 5m` waits for it",
        ]
    );
}

#[test]
fn a_429_is_a_rate_limit_and_not_a_refusal() {
    let error = ErrorBuilder::new(ErrorKind::RateLimited).build();
    let failure = for_purpose(Purpose::Read).client(&error);
    assert_eq!(failure.kind, Kind::RateLimited);
    let without_block = for_purpose(Purpose::Read).refused(&error);
    assert_eq!(without_block.kind, Kind::RateLimited);
}

#[test]
fn programs_get_the_fields_that_have_a_value() {
    let error = refusal(400, "invalid_body").attempts(2).build();
    let found = Value::Object(fields(&error));
    let expected = json!({
        "status": 400, "code": "invalid_body", "serviceMessage": "said\nso", "attempts": 2,
        "mayHaveBeenProcessed": false,
    });
    assert_eq!(found, expected);
    let limited = ErrorBuilder::new(ErrorKind::RateLimited).build();
    let found = fields(&limited);
    assert_eq!(found["retryAfterSeconds"], 60);
    assert!(found.contains_key("retryAt") && !found.contains_key("quota"));
}
