//! Checks responses against the contract of the service (specification, sections 2, 4, 7 and 8).

use std::{fmt, ops::RangeInclusive};

use http::{HeaderMap, Method, Response, StatusCode, Uri, header::CONTENT_TYPE};
use serde_json::{Map, Value};
use strum::{Display, VariantArray};

use crate::{
    model::{Pet, PetStatus},
    operation::{Content, Operation},
    text::printable,
};

const RESET: &str = "x-ratelimit-reset";

/// Plausible Unix timestamps in seconds: from 2001 to 5138. A smaller number is usually the seconds
/// until the reset, a larger one a time in milliseconds.
const UNIX_TIMES: RangeInclusive<u64> = 1_000_000_000..=99_999_999_999;

/// The terms of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Term {
    /// A status that the contract does not list for the operation.
    Status,
    /// A body whose `Content-Type` is not JSON.
    ContentType,
    /// A body that is not JSON.
    Json,
    /// A body that does not match the schema.
    Schema,
    /// An Error whose `status` is not the response's.
    ErrorStatus,
    /// A missing or unreadable `X-RateLimit` header.
    RateHeaders,
    /// A 429 without a readable `Retry-After`.
    RetryAfter,
    /// More pets than `limit` allows.
    Limit,
    /// A pet without the requested status.
    Filter,
    /// A created pet that differs from the one that was sent, or another pet than the requested
    /// one.
    OtherPet,
}

/// A broken term, and how.
pub(super) type BrokenTerm = (Term, String);

/// A request that was sent to the service.
#[derive(Debug)]
pub(crate) struct Sent<'a> {
    number: u64,
    operation: Operation,
    method: &'a Method,
    uri: &'a Uri,
    /// Empty if it was not read completely.
    body: &'a [u8],
}

impl<'a> Sent<'a> {
    /// Creates the description of request `number`. `body` is empty if it was not read completely.
    pub(crate) fn new(
        number: u64,
        operation: Operation,
        method: &'a Method,
        uri: &'a Uri,
        body: &'a [u8],
    ) -> Self {
        Self {
            number,
            operation,
            method,
            uri,
            body,
        }
    }

    pub(super) fn operation(&self) -> Operation {
        self.operation
    }

    /// Returns the first value of a query parameter.
    fn parameter(&self, name: &str) -> Option<String> {
        let query = self.uri.query().unwrap_or_default();
        form_urlencoded::parse(query.as_bytes())
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    }

    /// Returns the id at the end of the path.
    pub(super) fn pet_id(&self) -> Option<i64> {
        self.uri.path().rsplit('/').next()?.parse().ok()
    }
}

impl fmt::Display for Sent<'_> {
    /// Writes the number, the method and the path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = printable(self.uri.path());
        write!(f, "#{} {} {path}", self.number, self.method)
    }
}

/// Returns the terms that a response breaks, and how. `body` is `None` if it was too long or too slow
/// to be checked.
pub(super) fn check(
    sent: &Sent<'_>,
    response: &Response<()>,
    body: Option<&[u8]>,
) -> Vec<BrokenTerm> {
    let mut breaches = Vec::new();
    let status = response.status();
    if !sent.operation.statuses().contains(&status.as_u16()) && !status.is_server_error() {
        let text = format!("{status} is not a status of {}", sent.operation);
        breaches.push((Term::Status, text));
    }
    check_rate_headers(response.headers(), &mut breaches);
    if status == StatusCode::TOO_MANY_REQUESTS {
        check_retry_after(response.headers(), &mut breaches);
    }
    // Two are empty: the body of a 204, and that of any response to HEAD. That of a 5xx may come from
    // a gateway.
    let is_empty = status == StatusCode::NO_CONTENT || sent.method == Method::HEAD;
    if !is_empty && !status.is_server_error() {
        check_body(sent, response, body, &mut breaches);
    }
    breaches
}

fn check_rate_headers(headers: &HeaderMap, breaches: &mut Vec<BrokenTerm>) {
    for name in ["x-ratelimit-limit", "x-ratelimit-remaining", RESET] {
        let values: Vec<_> = headers.get_all(name).iter().collect();
        let problem = match values[..] {
            [] => "is missing",
            [one] => match one.to_str().map(str::parse::<u64>) {
                Ok(Ok(number)) if name == RESET && !UNIX_TIMES.contains(&number) => {
                    "is not a Unix timestamp in seconds"
                }
                Ok(Ok(_)) => continue,
                Ok(Err(_)) | Err(_) => "is not a whole number",
            },
            _ => "is there more than once",
        };
        breaches.push((Term::RateHeaders, format!("{name} {problem}")));
    }
}

fn check_retry_after(headers: &HeaderMap, breaches: &mut Vec<BrokenTerm>) {
    let text = headers
        .get("retry-after")
        .map(|value| value.to_str().unwrap_or_default());
    let is_readable =
        |text: &str| text.parse::<u64>().is_ok() || httpdate::parse_http_date(text).is_ok();
    match text {
        None => breaches.push((Term::RetryAfter, "a 429 without Retry-After".to_owned())),
        Some(text) if is_readable(text.trim()) => {}
        Some(_) => {
            let text = "Retry-After is neither seconds nor a date".to_owned();
            breaches.push((Term::RetryAfter, text));
        }
    }
}

fn check_content_type(headers: &HeaderMap, breaches: &mut Vec<BrokenTerm>) {
    let media_type = headers.get(CONTENT_TYPE);
    let media_type = media_type.map_or("", |value| value.to_str().unwrap_or_default());
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let text = "the body has no Content-Type application/json".to_owned();
        breaches.push((Term::ContentType, text));
    }
}

fn check_body(
    sent: &Sent<'_>,
    response: &Response<()>,
    body: Option<&[u8]>,
    breaches: &mut Vec<BrokenTerm>,
) {
    let status = response.status();
    let check_value: fn(&Sent<'_>, &Value, &mut Vec<BrokenTerm>) = match sent.operation.content() {
        Content::Pets => check_pets,
        Content::Pet => check_one_pet,
        Content::Unspecified => |_, _, _| {},
    };
    check_content_type(response.headers(), breaches);
    let Some(body) = body else {
        return;
    };
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        breaches.push((Term::Json, "the body is not JSON".to_owned()));
        return;
    };
    if status.is_success() {
        check_value(sent, &value, breaches);
    } else {
        check_error(status, &value, breaches);
    }
}

fn check_error(status: StatusCode, value: &Value, breaches: &mut Vec<BrokenTerm>) {
    for (name, is_right) in [
        ("code", value["code"].is_string()),
        ("message", value["message"].is_string()),
        ("status", value["status"].is_i64()),
    ] {
        if !is_right {
            let text = format!("the Error has no `{name}` of the right type");
            breaches.push((Term::Schema, text));
        }
    }
    if value["status"].is_i64() && value["status"] != status.as_u16() {
        let text = format!(
            "the Error's `status` is {}, the response's {}",
            value["status"],
            status.as_u16()
        );
        breaches.push((Term::ErrorStatus, text));
    }
}

/// Returns why a value is not a Pet.
fn problem_of_pet(value: &Value) -> Option<String> {
    let Some(pet) = value.as_object() else {
        return Some("a Pet is not an object".to_owned());
    };
    let lacks = |name: &str, is_right: fn(&Value) -> bool| !pet.get(name).is_some_and(is_right);
    for (name, is_missing) in [
        ("id", lacks("id", Value::is_i64)),
        ("name", lacks("name", Value::is_string)),
        ("categoryId", lacks("categoryId", Value::is_i64)),
    ] {
        if is_missing {
            return Some(format!("a Pet has no `{name}` of the right type"));
        }
    }
    match pet.get("status") {
        None => {}
        Some(Value::String(status)) if status.parse::<PetStatus>().is_ok() => {}
        Some(_) => {
            return Some("a Pet's `status` is not available, pending or sold".to_owned());
        }
    }
    let error = Pet::from_other(pet.clone()).err()?;
    Some(format!("a Pet has a field of the wrong type: {error}"))
}

fn check_pets(sent: &Sent<'_>, value: &Value, breaches: &mut Vec<BrokenTerm>) {
    let Some(pets) = value.as_array() else {
        breaches.push((Term::Schema, "the body is not an array of Pets".to_owned()));
        return;
    };
    if let Some(problem) = pets.iter().find_map(problem_of_pet) {
        breaches.push((Term::Schema, problem));
    }
    let limit = sent
        .parameter("limit")
        .and_then(|text| text.parse().ok())
        .unwrap_or(20);
    if pets.len() > limit {
        breaches.push((
            Term::Limit,
            format!("{} pets for limit={limit}", pets.len()),
        ));
    }
    if let Some(status) = sent.parameter("status")
        && pets.iter().any(|pet| pet["status"] != *status)
    {
        let text = "a pet has another status than the filter".to_owned();
        breaches.push((Term::Filter, text));
    }
}

/// Returns whether a created pet differs from the one that was sent. The service may choose another
/// id and status.
fn differs_from_sent(sent: &[u8], created: &Value) -> bool {
    let Ok(sent) = serde_json::from_slice::<Map<String, Value>>(sent) else {
        // Only the beginning of a long body is known, or it is not an object.
        return false;
    };
    let is_kept = |name: &&str| !matches!(*name, "id" | "status");
    let is_other = |name: &str| sent.get(name).is_some_and(|field| *field != created[name]);
    Pet::FIELDS.into_iter().filter(is_kept).any(is_other)
}

fn check_one_pet(sent: &Sent<'_>, value: &Value, breaches: &mut Vec<BrokenTerm>) {
    if let Some(problem) = problem_of_pet(value) {
        breaches.push((Term::Schema, problem));
        return;
    }
    let is_other = if sent.operation.path().ends_with("/{petId}") {
        sent.pet_id().is_some_and(|id| value["id"] != id)
    } else {
        differs_from_sent(sent.body, value)
    };
    if is_other {
        let text = "the pet is not the one that was sent or asked for".to_owned();
        breaches.push((Term::OtherPet, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(
        operation: Operation,
        target: &str,
        status: u16,
        body: &str,
        without: &str,
    ) -> Vec<Term> {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        for (name, value) in [
            ("content-type", "application/json; charset=utf-8"),
            ("x-ratelimit-limit", "60"),
            ("x-ratelimit-remaining", "59"),
            ("x-ratelimit-reset", "1900000000"),
            ("retry-after", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ] {
            if name != without {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
        }
        let (method, uri) = (operation.method(), target.parse().unwrap());
        let sent = Sent::new(
            1,
            operation,
            &method,
            &uri,
            br#"{"name": "Rex", "categoryId": 7}"#,
        );
        check(&sent, &response, Some(body.as_bytes()))
            .into_iter()
            .map(|(term, _)| term)
            .collect()
    }

    const REX: &str = r#"{"id": 7, "name": "Rex", "categoryId": 7, "new": true}"#;
    const ERROR: &str = r#"{"code": "x", "message": "y", "status": 404}"#;

    #[test]
    fn a_right_response_breaks_nothing() {
        let list = format!("[{REX}]");
        for (operation, target, status, body) in [
            (Operation::ListPets, "/v1/pets?limit=1", 200, &*list),
            (Operation::CreatePet, "/v1/pets", 201, REX),
            (Operation::GetPet, "/v1/pets/7", 200, REX),
            (Operation::GetPet, "/v1/pets/8", 404, ERROR),
            (Operation::ListOrders, "/v1/store/orders", 200, "[{}]"),
            (Operation::ListPets, "/v1/pets", 503, "<h1>busy</h1>"),
        ] {
            assert_eq!(
                terms(operation, target, status, body, ""),
                [],
                "{target} {status}"
            );
        }
    }

    #[test]
    fn each_term_is_found() {
        let list = format!("[{REX}, {REX}]");
        let pets = Operation::ListPets;
        for (operation, target, status, body, without, term) in [
            (pets, "/v1/pets", 203, "[]", "", Term::Status),
            (pets, "/v1/pets", 204, "", "", Term::Status),
            (Operation::CreatePet, "/v1/pets", 200, REX, "", Term::Status),
            (
                pets,
                "/v1/pets",
                200,
                "[]",
                "content-type",
                Term::ContentType,
            ),
            (pets, "/v1/pets", 200, "[", "", Term::Json),
            (pets, "/v1/pets", 200, "{}", "", Term::Schema),
            (pets, "/v1/pets", 200, r#"[{"id": "7"}]"#, "", Term::Schema),
            (pets, "/v1/pets", 401, "{}", "", Term::Schema),
            (
                Operation::GetPet,
                "/v1/pets/7",
                401,
                ERROR,
                "",
                Term::ErrorStatus,
            ),
            (
                pets,
                "/v1/pets",
                200,
                "[]",
                "x-ratelimit-reset",
                Term::RateHeaders,
            ),
            (pets, "/v1/pets?limit=1", 200, &list, "", Term::Limit),
            (pets, "/v1/pets?status=sold", 200, &list, "", Term::Filter),
            (
                Operation::GetPet,
                "/v1/pets/8",
                200,
                REX,
                "",
                Term::OtherPet,
            ),
            (
                Operation::CreatePet,
                "/v1/pets",
                201,
                &REX.replace("Rex", "Tom"),
                "",
                Term::OtherPet,
            ),
        ] {
            let found = terms(operation, target, status, body, without);
            assert!(
                !found.is_empty() && found.iter().all(|one| *one == term),
                "{target} {term}: {found:?}"
            );
        }
        let refused = r#"{"code": "x", "message": "y", "status": 429}"#;
        let found = terms(pets, "/v1/pets", 429, refused, "retry-after");
        assert_eq!(found, [Term::RetryAfter]);
    }

    #[test]
    fn a_reset_is_a_unix_timestamp_in_seconds() {
        for (value, problem) in [
            ("1000000000", None),
            ("99999999999", None),
            ("30", Some("is not a Unix timestamp in seconds")),
            ("1900000000000", Some("is not a Unix timestamp in seconds")),
            ("soon", Some("is not a whole number")),
            ("-1", Some("is not a whole number")),
        ] {
            let mut headers = HeaderMap::new();
            for name in ["x-ratelimit-limit", "x-ratelimit-remaining"] {
                headers.insert(name, "60".parse().unwrap());
            }
            headers.insert(RESET, value.parse().unwrap());
            let mut breaches = Vec::new();
            check_rate_headers(&headers, &mut breaches);
            let found: Vec<_> = breaches.iter().map(|(_, text)| &**text).collect();
            let expected = problem.map(|problem| format!("{RESET} {problem}"));
            assert_eq!(found, expected.iter().collect::<Vec<_>>(), "{value}");
        }
    }
}
