//! Parses the body of `POST /pets` (specification, section 2: NewPet).

use serde::Deserialize;

use super::{body::read_object, error::ApiError};
use crate::{
    model::{PetStatus, SeedPet},
    text::present,
};

/// The fields of a NewPet. Others are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewPet {
    name: String,
    category_id: i64,
    #[serde(default, deserialize_with = "present")]
    status: Option<PetStatus>,
}

/// Parses a pet to create.
pub(crate) fn read(body: &[u8]) -> Result<SeedPet, ApiError> {
    let pet: NewPet = read_object(body, "{\"name\": \"Rex\", \"categoryId\": 7}")?;
    Ok(SeedPet {
        id: None,
        name: pet.name,
        category_id: pet.category_id,
        status: pet.status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<SeedPet> {
        super::read(text.as_bytes()).ok()
    }

    #[test]
    fn takes_a_pet_and_ignores_what_it_does_not_know() {
        let pet = read(r#" {"tag": [{}], "name": "", "categoryId": -1, "status": "sold"} "#);
        let expected = SeedPet::new("", -1).with_status(PetStatus::Sold);
        assert_eq!(pet, Some(expected));
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
            let body = format!(r#"{{"name": "Rex", "categoryId": {number}}}"#);
            assert_eq!(read(&body), None, "{number}");
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
            assert_eq!(pet.map(|pet| pet.category_id), Some(id), "{number}");
        }
    }
}
