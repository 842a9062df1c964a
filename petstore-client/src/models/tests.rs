//! Tests of the models, in the containers of programs.

use serde::{Deserialize, Serialize};

use super::{NewPet, Pet, PetStatus};

#[test]
fn reads_the_whole_int64_range() {
    let pet: Pet = serde_json::from_str(
        r#"{"id":-9223372036854775808,"name":"","categoryId":9223372036854775807}"#,
    )
    .unwrap();
    assert_eq!((pet.id, pet.category_id), (i64::MIN, i64::MAX));
    assert_eq!(pet.status, None);
}

#[test]
fn fields_that_are_not_known_survive() {
    let text = r#"{"id":1,"name":"Rex","categoryId":7,"status":"adopted","chip":{"no":[1]}}"#;
    let pet: Pet = serde_json::from_str(text).unwrap();
    assert_eq!(pet.extra["chip"]["no"], serde_json::json!([1]));
    assert_eq!(serde_json::to_string(&pet).unwrap(), text);
    let new = NewPet::new("Rex", 7).with_field("chip", 9);
    let text = r#"{"name":"Rex","categoryId":7,"chip":9}"#;
    assert_eq!(serde_json::to_string(&new).unwrap(), text);
    assert_eq!(serde_json::from_str::<NewPet>(text).unwrap(), new);
}

#[test]
fn a_field_is_never_written_twice() {
    let twice = NewPet::new("Rex", 7).with_field("name", "Max");
    let error = serde_json::to_string(&twice).unwrap_err().to_string();
    assert_eq!(
        error,
        "`extra` has a field `name`, which is a field of the pet; set that one"
    );
    let pet = NewPet::new("Rex", 7).with_field("id", 1);
    serde_json::to_string(&pet).unwrap();
    serde_json::to_string(&pet.into_pet(1)).unwrap_err();
}

/// The containers of a program around a pet.
mod containers {
    use std::fmt::Debug;

    use serde::de::DeserializeOwned;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Flattened {
        fetched_at: u64,
        #[serde(flatten)]
        pet: Pet,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "kind")]
    enum InternallyTagged {
        Pet(Pet),
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Untagged {
        Number(u64),
        Pet(Pet),
        New(NewPet),
    }

    fn rex() -> Pet {
        let rex = NewPet::new("Rex", 7).with_status("adopted");
        let numbers = serde_json::json!([9, -1.5, 0.1, 1e300, u64::MAX, i64::MIN]);
        rex.with_field("chip", serde_json::json!({"no": numbers, "": [null, {}]}))
            .with_field("tame", true)
            .into_pet(i64::MIN)
    }

    fn survives<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
        let json = serde_json::to_vec(value).unwrap();
        assert_eq!(serde_json::from_slice::<T>(&json).unwrap(), *value);
        let as_value = serde_json::to_value(value).unwrap();
        assert_eq!(serde_json::from_value::<T>(as_value).unwrap(), *value);
    }

    #[test]
    fn a_pet_survives_each_container() {
        survives(&rex());
        survives(&vec![Some(rex()), None]);
        survives(&InternallyTagged::Pet(rex()));
        survives(&Untagged::Pet(rex()));
        survives(&Untagged::New(NewPet::new("Rex", 7).with_field("chip", 9)));
        let fetched_at = 5;
        let pet = rex();
        survives(&Flattened { fetched_at, pet });
    }

    #[test]
    fn the_tag_may_come_before_or_after_the_pet() {
        let pet = serde_json::to_string(&rex()).unwrap();
        let fields = &pet[1..pet.len() - 1];
        for text in [
            format!(r#"{{"kind":"Pet",{fields}}}"#),
            format!(r#"{{{fields},"kind":"Pet"}}"#),
        ] {
            let read: InternallyTagged = serde_json::from_str(&text).unwrap();
            assert_eq!(read, InternallyTagged::Pet(rex()), "{text}");
        }
    }
}

#[test]
fn an_array_is_not_a_pet() {
    let problem = serde_json::from_str::<NewPet>(r#"["Rex",7]"#).unwrap_err();
    assert!(
        problem
            .to_string()
            .contains("expected a pet, a JSON object"),
        "{problem}"
    );
    assert!(serde_json::from_str::<Pet>(r#"[1,"Rex",7,"sold"]"#).is_err());
}

#[test]
fn a_field_comes_once_and_a_status_may_be_null() {
    let twice = r#"{"id":1,"id":2,"name":"a","categoryId":1}"#;
    assert!(serde_json::from_str::<Pet>(twice).is_err());
    let null = r#"{"id":1,"name":"a","categoryId":1,"status":null}"#;
    assert_eq!(serde_json::from_str::<Pet>(null).unwrap().status, None);
}

#[test]
fn an_unknown_number_is_what_serde_json_makes_of_it() {
    for number in [
        "1.10",
        "18446744073709551615",
        "123456789012345678901234567890",
    ] {
        let text = format!(r#"{{"id":1,"name":"a","categoryId":1,"number":{number}}}"#);
        let pet: Pet = serde_json::from_str(&text).unwrap();
        let value: serde_json::Value = serde_json::from_str(number).unwrap();
        assert_eq!(pet.extra["number"], value);
    }
}

#[test]
fn a_listed_value_never_becomes_unknown() {
    for status in PetStatus::KNOWN {
        assert_eq!(PetStatus::from(status.as_str()), *status);
        assert_eq!(status.as_str().parse(), Ok(status.clone()));
    }
}

#[test]
fn each_field_is_written_and_read_under_its_name() {
    let pet = Pet {
        id: 1,
        name: "Rex".to_owned(),
        category_id: 7,
        status: Some(PetStatus::Sold),
        extra: serde_json::Map::new(),
    };
    assert!(!format!("{pet:?}").contains("None"), "give it each field");
    let text = serde_json::to_string(&pet).unwrap();
    let position = |name: &&str| text.find(&format!("\"{name}\":")).unwrap();
    assert!(Pet::FIELDS.iter().map(position).is_sorted(), "{text}");
    assert_eq!(text.matches("\":").count(), Pet::FIELDS.len(), "{text}");
    assert_eq!(serde_json::from_str::<Pet>(&text).unwrap(), pet);
}
