//! Parses the body of `POST /pets` (specification, section 2: NewPet). Reports all invalid fields
//! together.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::{
    model::{PetStatus, SeedPet},
    text::{int64, present, printable},
};

const EXAMPLE: &str = "{\"name\": \"Rex\", \"categoryId\": 7}";

/// Parses a pet to create, or returns what is wrong.
pub(crate) fn read(body: &[u8]) -> Result<SeedPet, String> {
    let text = std::str::from_utf8(body)
        .map_err(|error| format!("the body is not UTF-8, as JSON must be: {error}"))?;
    if text.trim_ascii().is_empty() {
        return Err(format!("the body is empty: send a pet such as {EXAMPLE}"));
    }
    let wrong = |error: serde_json::Error| {
        let what = if error.is_data() {
            "the body is not a pet"
        } else {
            "the body is not valid JSON"
        };
        format!("{what}: {error}")
    };
    // A derived struct would also accept an array.
    if !text.trim_ascii_start().starts_with('{') {
        serde_json::from_str::<IgnoredAny>(text).map_err(wrong)?;
        return Err(format!(
            "the body is not a pet: send one JSON object such as {EXAMPLE}"
        ));
    }
    serde_json::from_str::<Draft<'_>>(text)
        .map_err(wrong)?
        .check()
}

/// The fields of a NewPet, of any type. They are kept as sent, because a float would lose digits.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Draft<'t> {
    #[serde(borrow, default, deserialize_with = "present")]
    name: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    category_id: Option<&'t RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    status: Option<&'t RawValue>,
}

impl Draft<'_> {
    fn check(self) -> Result<SeedPet, String> {
        let mut problems = Vec::new();
        for (name, sent) in [("name", self.name), ("categoryId", self.category_id)] {
            if sent.is_none() {
                problems.push(format!("`{name}` is missing"));
            }
        }
        let is_string = self.name.is_some_and(|sent| sent.get().starts_with('"'));
        let expected = if is_string {
            "valid Unicode"
        } else {
            "a string"
        };
        let name = field("name", expected, self.name, &mut problems, |json| {
            serde_json::from_str::<String>(json).ok()
        });
        let expected = "an integer that fits into 64 bits";
        let category_id = field(
            "categoryId",
            expected,
            self.category_id,
            &mut problems,
            int64,
        );
        let expected = "one of \"available\", \"pending\", \"sold\", or left out";
        let status = field("status", expected, self.status, &mut problems, |json| {
            serde_json::from_str::<PetStatus>(json).ok()
        });
        match (name, category_id) {
            (Some(name), Some(category_id)) if problems.is_empty() => Ok(SeedPet {
                id: None,
                name,
                category_id,
                status,
            }),
            _ => Err(format!("the body is not a pet: {}", problems.join("; "))),
        }
    }
}

/// Parses a field, if it was sent. Adds what is wrong with it to the problems.
fn field<T>(
    name: &str,
    expected: &str,
    sent: Option<&RawValue>,
    problems: &mut Vec<String>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let json = sent?.get();
    let value = parse(json);
    if value.is_none() {
        problems.push(format!("`{name}` must be {expected}, not {}", shown(json)));
    }
    value
}

/// Describes a JSON value, and includes short values.
fn shown(json: &str) -> String {
    match json.as_bytes().first() {
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(text) => format!("the string \"{}\"", printable(&text)),
            Err(_) => format!("the string {}", printable(json)),
        },
        Some(b'[') => "an array".to_owned(),
        Some(b'{') => "an object".to_owned(),
        Some(b'-' | b'0'..=b'9') => format!("the number {}", printable(json)),
        _ => json.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SeedPet, String> {
        super::read(text.as_bytes())
    }

    fn fault(text: &str) -> String {
        let error = read(text).unwrap_err();
        error
            .strip_prefix("the body is not a pet: ")
            .unwrap_or(&error)
            .to_owned()
    }

    #[test]
    fn takes_a_pet_and_ignores_what_it_does_not_know() {
        let pet = read(r#" {"tag": [{}], "name": "", "categoryId": -1, "status": "sold"} "#);
        let expected = SeedPet::new("", -1).with_status(PetStatus::Sold);
        assert_eq!(pet, Ok(expected));
    }

    #[test]
    fn refuses_numbers_that_are_not_int64() {
        for number in [
            "9223372036854775808",
            "-9223372036854775809",
            "9223372036854775808.0",
            "9007199254740993.5",
            "7.5",
            "1e-1",
            "1e-400",
            "1e19",
            "1e999",
            "1e99999999999999999999",
        ] {
            let fault = fault(&format!(r#"{{"name": "Rex", "categoryId": {number}}}"#));
            assert!(
                fault.starts_with("`categoryId` must be"),
                "{number}: {fault}"
            );
            assert!(
                fault.ends_with(&format!("not the number {number}")),
                "{fault}"
            );
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
            ("9223372036854775807.0", i64::MAX),
            ("-9.223372036854775808e18", i64::MIN),
            ("9007199254740993.0", 9_007_199_254_740_993),
            ("70e-1", 7),
            ("0.000e999", 0),
            ("1000000000000000000000E-3", 1_000_000_000_000_000_000),
        ] {
            let pet = read(&format!(r#"{{"name": "Rex", "categoryId": {number}}}"#));
            assert_eq!(pet.map(|pet| pet.category_id), Ok(id), "{number}");
        }
    }
}
