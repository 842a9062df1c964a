//! The body of `POST /pets` (specification, section 2: NewPet). Everything wrong with its fields is
//! said at once, each by its name.

use axum::BoxError;
use bytes::Bytes;
use http::Request;
use hyper::body::Body;
use serde_json::Value;

use super::{body::json_text, draft::Draft};
use crate::{
    error::{ApiError, ErrorCode},
    model::{NewPet, PetStatus},
    printable::printable,
};

/// Returns the pet that is to be added.
pub(crate) async fn new_pet<B>(request: Request<B>) -> Result<NewPet, ApiError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let text = json_text(request).await?;
    read(text.as_str()?).map_err(invalid)
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidBody, message)
}

fn read(text: &str) -> Result<NewPet, String> {
    if text.trim_ascii().is_empty() {
        return Err(
            "the body is empty: send a pet such as {\"name\": \"Rex\", \"categoryId\": 7}".into()
        );
    }
    let draft: Draft = serde_json::from_str(text).map_err(|error| {
        let what =
            if error.is_data() { "the body is not a pet" } else { "the body is not valid JSON" };
        format!("{what}: {error}")
    })?;
    draft.check()
}

impl Draft {
    fn check(self) -> Result<NewPet, String> {
        let required = [("name", &self.name), ("categoryId", &self.category_id)];
        let missing: Vec<_> = required
            .iter()
            .filter(|(_, value)| value.is_none())
            .map(|(field, _)| format!("`{field}`"))
            .collect();
        let mut faults = Vec::new();
        if !missing.is_empty() {
            let verb = if missing.len() == 1 { "is" } else { "are" };
            faults.push(format!("{} {verb} missing", missing.join(" and ")));
        }
        let name = field("name", "a string", self.name, &mut faults, |value| {
            value.as_str().map(str::to_owned)
        });
        let expected = "an integer that fits into 64 bits";
        let category_id = field("categoryId", expected, self.category_id, &mut faults, int64);
        let one_of = "one of \"available\", \"pending\", \"sold\", or left out";
        let status: Option<PetStatus> =
            field("status", one_of, self.status, &mut faults, |value| {
                value.as_str().and_then(|text| text.parse().ok())
            });
        match (name, category_id) {
            (Some(name), Some(category_id)) if faults.is_empty() => {
                Ok(NewPet { name, category_id, status })
            }
            _ => Err(format!("the body is not a pet: {}", faults.join("; "))),
        }
    }
}

/// Returns what `read` makes of a field that was sent, and notes the fault where it makes nothing.
fn field<T>(
    name: &str,
    expected: &str,
    value: Option<Value>,
    faults: &mut Vec<String>,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Option<T> {
    let value = value?;
    let outcome = read(&value);
    if outcome.is_none() {
        faults.push(format!("`{name}` must be {expected}, not {}", shown(&value)));
    }
    outcome
}

/// Reads a whole number, be it written as `7`, `7.0` or `7e0`: to JSON Schema, and so to an OpenAPI
/// document, these are one integer.
fn int64(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_number().filter(|number| number.is_f64())?.as_f64()?;
        let whole = (number.fract() == 0.0).then(|| format!("{number:.0}"))?;
        // What lies a little below the lowest int64 was rounded to it when it was parsed.
        whole.parse().ok().filter(|whole| *whole != i64::MIN)
    })
}

/// Says what a value is, and shows it where it is short by nature.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => format!("the number {}", printable(&number.to_string())),
        Value::String(text) => format!("the string \"{}\"", printable(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        let error = read(text).unwrap_err();
        error.strip_prefix("the body is not a pet: ").unwrap_or(&error).to_owned()
    }

    #[test]
    fn takes_a_pet_and_ignores_what_it_does_not_know() {
        let pet = read(r#" {"tag": [{}], "name": "", "categoryId": -1, "status": "sold"} "#);
        let expected =
            NewPet { name: String::new(), category_id: -1, status: Some(PetStatus::Sold) };
        assert_eq!(pet, Ok(expected));
    }

    #[test]
    fn names_every_missing_field_and_every_wrong_one() {
        assert_eq!(fault("{}"), "`name` and `categoryId` are missing");
        assert_eq!(
            fault(r#"{"categoryId": "7", "status": null}"#),
            "`name` is missing; `categoryId` must be an integer that fits into 64 bits, not the \
             string \"7\"; `status` must be one of \"available\", \"pending\", \"sold\", or left \
             out, not null"
        );
    }

    #[test]
    fn refuses_numbers_that_are_no_int64() {
        for number in [
            "9223372036854775808",
            "-9223372036854775809",
            "9223372036854775807.0",
            "7.5",
            "1e19",
            "1e308",
        ] {
            let fault = fault(&format!(r#"{{"name": "Rex", "categoryId": {number}}}"#));
            assert!(fault.starts_with("`categoryId` must be"), "{number}: {fault}");
        }
    }

    #[test]
    fn takes_every_int64_however_it_is_written() {
        for (number, id) in [
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("7.0", 7),
            ("-0.0", 0),
            ("1.5e3", 1_500),
            ("-9223372036854774784.0", i64::MIN + 1_024),
        ] {
            let pet = read(&format!(r#"{{"name": "Rex", "categoryId": {number}}}"#));
            assert_eq!(pet.map(|pet| pet.category_id), Ok(id), "{number}");
        }
    }

    #[test]
    fn refuses_null_for_every_field() {
        for name in ["name", "categoryId", "status"] {
            let fault = fault(&format!(r#"{{"{name}": null}}"#));
            assert!(fault.contains(&format!("`{name}` must be")), "{fault}");
        }
    }

    #[test]
    fn says_where_the_json_is_broken() {
        assert_eq!(
            fault("{\n  \"name\": Rex}"),
            "the body is not valid JSON: expected value at line 2 column 11"
        );
        assert!(fault(r#"{"name": "a", "categoryId": 1} x"#).contains("trailing characters"));
        assert!(fault(r#"{"name": "a", "name": "b"}"#).contains("duplicate field `name`"));
        assert!(fault("  ").contains("empty"));
    }

    #[test]
    fn refuses_what_is_no_object() {
        for text in ["[]", "[\"Rex\", 7]", "null", "7", "\"Rex\"", "true"] {
            assert!(fault(text).contains("expected one JSON object"), "{text}");
        }
    }

    #[test]
    fn does_not_overflow_the_stack_on_deep_nesting() {
        let deep = "[".repeat(500_000);
        assert!(read(&deep).is_err());
        assert!(read(&format!("{{\"name\": {deep}")).is_err());
        assert!(read(&format!("{{\"other\": {deep}")).is_err());
    }
}
