//! Reads a seed from JSON text, and says in which line and at which field it is wrong.

use serde::Deserialize;
use serde_json::Value;

use super::{Seed, SeedError, SeedPet};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a seed such as {\"pets\": [], \"orders\": []}")]
struct Whole {
    #[serde(default)]
    pets: Vec<SeedPet>,
    #[serde(default)]
    orders: Vec<Value>,
}

/// Reads an array of pets, or an object of `pets` and `orders`.
pub(super) fn read(text: &[u8]) -> Result<Seed, SeedError> {
    let text = std::str::from_utf8(text).map_err(|error| not_utf8(text, &error))?;
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'[') => Ok(Seed { pets: parse(text, "pets")?, orders: Vec::new() }),
        Some(b'{') => {
            let whole: Whole = parse(text, "")?;
            Ok(Seed { pets: whole.pets, orders: whole.orders })
        }
        _ => Err(SeedError::at(
            1,
            1,
            "a seed is a JSON array of pets, or an object such as {\"pets\": [], \"orders\": []}",
        )),
    }
}

/// Parses JSON; `within` is what the path of a fault begins with.
fn parse<'de, T: Deserialize<'de>>(text: &'de str, within: &str) -> Result<T, SeedError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let fault = error.into_inner();
        let at_fault = match path.as_str() {
            "." | "?" => within.to_owned(),
            path => format!("{within}{path}"),
        };
        located(&fault, &at_fault)
    })?;
    match deserializer.end() {
        Ok(()) => Ok(value),
        Err(error) => Err(located(&error, "")),
    }
}

fn located(error: &serde_json::Error, path: &str) -> SeedError {
    let whole = error.to_string();
    // The position is kept apart from the message.
    let what = whole.rfind(" at line ").map_or(&*whole, |end| &whole[..end]);
    let message = match path {
        "" => what.to_owned(),
        path => format!("{path}: {what}"),
    };
    SeedError::at(error.line(), error.column(), message)
}

fn not_utf8(text: &[u8], error: &std::str::Utf8Error) -> SeedError {
    let before = &text[..error.valid_up_to()];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    SeedError::at(line, before.len() - line_start + 1, "the text is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &[u8]) -> (usize, usize, String) {
        let error = read(text).unwrap_err();
        let position = (error.line().unwrap(), error.column().unwrap());
        (position.0, position.1, error.to_string())
    }

    #[test]
    fn reads_an_array_of_pets() {
        let seed = read(br#" [{"name": "Rex", "categoryId": 7, "status": "sold", "id": 5}]"#);
        let rex = SeedPet::new("Rex", 7).with_id(5).with_status(crate::model::PetStatus::Sold);
        assert_eq!(seed.unwrap(), Seed::new().pet(rex));
    }

    #[test]
    fn reads_pets_and_orders() {
        let seed = read(br#"{"orders": [{"any": ["thing"]}]}"#).unwrap();
        assert_eq!((seed.pets.len(), seed.orders.len()), (0, 1));
    }

    #[test]
    fn names_line_column_and_field() {
        let (line, column, message) = fault(b"[\n  {\"name\": \"Rex\", \"categoryId\": \"7\"}\n]");
        assert_eq!((line, column), (2, 35));
        assert_eq!(message, "pets[0].categoryId: invalid type: string \"7\", expected i64");
        let (line, _, message) = fault(b"{\"pets\": [\n{\"name\": \"Rex\"}]}");
        assert_eq!((line, &*message), (2, "pets[0]: missing field `categoryId`"));
    }

    #[test]
    fn drops_nothing_silently() {
        let (.., message) = fault(br#"[{"name": "Rex", "categoryId": 7, "tag": 1}]"#);
        assert!(message.starts_with("pets[0].tag: unknown field `tag`"), "{message}");
        let (.., message) = fault(br#"{"pet": []}"#);
        assert!(message.contains("unknown field `pet`"), "{message}");
    }

    #[test]
    fn refuses_a_pet_that_is_no_object() {
        for (pet, what) in
            [(r#"[5, "Rex", 7, "sold"]"#, "sequence"), ("null", "null"), ("7", "integer `7`")]
        {
            for text in [format!("[{pet}]"), format!(r#"{{"pets": [{pet}]}}"#)] {
                let (.., message) = fault(text.as_bytes());
                let expected = "expected a pet such as {\"name\": \"Rex\", \"categoryId\": 7}";
                assert_eq!(message, format!("pets[0]: invalid type: {what}, {expected}"));
            }
        }
    }

    #[test]
    fn refuses_what_is_no_seed() {
        for text in [&b""[..], b"7", b"null", b"\"x\"", b"[", b"[] []", b"{\"pets\": 5}"] {
            assert!(read(text).is_err(), "{}", text.escape_ascii());
        }
        assert_eq!(fault(b"[\n\"a\xff").0, 2);
    }
}
