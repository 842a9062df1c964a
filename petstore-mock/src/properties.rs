//! Property tests of the parsers of untrusted text: they accept valid values, reject invalid ones,
//! and agree with a naive second implementation.

use std::fmt::Debug;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
    sample::{Index, select},
    test_runner::{Config, RngSeed, TestError, TestRunner},
};
use serde_json::{Value, json};

use crate::{
    http::{
        handlers::new_pet,
        params::{ListQuery, Query, cursor, pet_id},
    },
    model::{PetStatus, SeedPet},
    state::{Change, Store, data_file},
};

/// Tries 2,000 cases. They are the same in each run, unless `PROPTEST_RNG_SEED` names another seed.
fn check<S: Strategy>(strategy: S, seed: u64, test: impl Fn(S::Value) -> Result<(), TestCaseError>)
where
    S::Value: Debug,
{
    let default = Config::default();
    let seed = match default.rng_seed {
        RngSeed::Random => seed,
        RngSeed::Fixed(other) => other,
    };
    let config = Config {
        cases: 2_000,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..default
    };
    match TestRunner::new(config).run(&strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => {
            panic!("{why}\nin the smallest case found, with PROPTEST_RNG_SEED={seed}: {case:#?}")
        }
        Err(error) => panic!("{error}"),
    }
}

/// Percent-encodes all special characters of a text, or only those that require it.
fn encoded(text: &str, all: bool) -> String {
    let text = utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    if all {
        text
    } else {
        text.replace("%20", "+")
            .replace("%2D", "-")
            .replace("%2d", "-")
    }
}

#[test]
fn a_parameter_is_read_as_it_was_before_it_was_encoded() {
    let pair = ("[a-c é%]{1,2}", any::<String>(), any::<bool>());
    check(
        (vec(pair, 0..5), "[a-c é%]{1,2}"),
        51,
        |(pairs, wanted)| {
            let write = |(name, value, all): &(String, String, bool)| {
                format!("{}={}", encoded(name, *all), encoded(value, *all))
            };
            let query = pairs.iter().map(write).collect::<Vec<_>>().join("&");
            let read = Query(&query).get::<String>(&wanted, "any");
            let values: Vec<_> = pairs
                .iter()
                .filter(|pair| pair.0 == wanted)
                .map(|pair| &pair.1)
                .collect();
            match (values.as_slice(), read) {
                ([], Ok(None)) | ([_, _, ..], Err(_)) => {}
                ([one], Ok(Some(value))) => prop_assert_eq!(&value, *one),
                (_, other) => prop_assert!(false, "{:?} in {}", other, query),
            }
            Ok(())
        },
    );
}

#[test]
fn the_parameters_of_a_list_are_within_their_bounds_or_refused() {
    let limit = prop_oneof!["[0-9]{0,4}", "[+-]?[0-9]{1,3}(\\.0)?", any::<String>()];
    let status = prop_oneof!["available|pending|sold|lost", any::<String>()];
    check(
        (option::of(limit), option::of(status), any::<bool>()),
        52,
        |(limit, status, all)| {
            let mut query = String::from("x=%zz");
            for (name, value) in [("limit", &limit), ("status", &status)] {
                if let Some(value) = value {
                    query += &format!("&{name}={}", encoded(value, all));
                }
            }
            let naive_limit = match &limit {
                None => Some(20),
                Some(text) => (1..=100).find(|number| *text == number.to_string()),
            };
            let naive_status = match status.as_deref() {
                None => Some(None),
                Some("available") => Some(Some(PetStatus::Available)),
                Some("pending") => Some(Some(PetStatus::Pending)),
                Some("sold") => Some(Some(PetStatus::Sold)),
                Some(_) => None,
            };
            let expected = naive_limit.zip(naive_status);
            let expected = expected.map(|(limit, status)| ListQuery {
                limit,
                status,
                after: None,
            });
            prop_assert_eq!(ListQuery::read(&query, true).ok(), expected, "{}", query);
            Ok(())
        },
    );
}

#[test]
fn a_cursor_is_one_that_was_made_here() {
    check(
        (any::<i64>(), any::<String>(), any::<Index>()),
        53,
        |(id, text, at)| {
            let made = cursor::encode(id);
            prop_assert_eq!(cursor::decode(&made), Some(id));
            let mut bytes = made.clone().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = text.bytes().next().unwrap_or(b'g');
            let changed = String::from_utf8_lossy(&bytes).into_owned();
            for other in [&text, &changed, &made.to_uppercase()] {
                let again = cursor::decode(other).map(cursor::encode);
                prop_assert!(again.is_none_or(|again| again == *other), "{}", other);
            }
            Ok(())
        },
    );
}

#[test]
fn an_id_is_any_number_of_64_bits_and_nothing_else() {
    let text = prop_oneof![
        "-?[0-9]{1,20}",
        "[+-]?[0-9 ._e٣]{0,4}",
        "-?9223372036854775[789][0-9]{2}"
    ];
    check(text, 55, |text| {
        let digits = text.strip_prefix('-').unwrap_or(&text);
        let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
        let naive = text.parse::<i128>().ok().filter(|_| is_number);
        let naive = naive.and_then(|number| i64::try_from(number).ok());
        prop_assert_eq!(pet_id(&format!("/v1/pets/{text}")).ok(), naive);
        Ok(())
    });
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..3_i64).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e3..1e3_f64).prop_map(Value::from),
        "available|sold|a|".prop_map(Value::from),
    ];
    let name = || "name|status|categoryId|a|b";
    leaf.prop_recursive(3, 12, 3, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map(name(), inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

#[test]
fn a_new_pet_is_taken_exactly_if_its_fields_are_right() {
    let number = prop_oneof![
        any::<i64>().prop_map(|number| (number.to_string(), Some(number))),
        // A whole decimal is an integer below 2^53.
        (-(1_i64 << 53) + 1..1 << 53, 0..4_usize).prop_map(|(number, zeros)| {
            (format!("{number}.{}", "0".repeat(zeros + 1)), Some(number))
        }),
        (-99_999..99_999_i64, 0..11_u32).prop_map(|(number, power)| {
            (
                format!("{number}e{power}"),
                Some(number * 10_i64.pow(power)),
            )
        }),
        (-99_999..99_999_i64, 1..9_usize).prop_map(|(number, power)| {
            (
                format!("{number}{}E-{power}", "0".repeat(power)),
                Some(number),
            )
        }),
        (any::<i32>(), 1..9_u8).prop_map(|(number, tenths)| (format!("{number}.{tenths}"), None)),
        select(vec![
            "9223372036854775808",
            "9007199254740993.0",
            "1e19",
            "-1e-1",
            "1e999999999999999999999",
            "true",
            "\"7\"",
            "null"
        ])
        .prop_map(|text| (text.to_owned(), None)),
    ];
    let name = prop_oneof![3 => any::<String>().prop_map(Value::from), 1 => json_value()];
    let status = prop_oneof![3 => Just(json!("sold")), 1 => json_value()];
    let fields = (
        option::weighted(0.9, name),
        option::weighted(0.9, number),
        option::of(status),
    );
    check(
        (fields, any::<bool>()),
        56,
        |((name, category, status), more)| {
            let mut fields = Vec::new();
            fields.extend(name.as_ref().map(|name| format!("\"name\": {name}")));
            fields.extend(
                category
                    .as_ref()
                    .map(|(text, _)| format!("\"categoryId\":{text}")),
            );
            fields.extend(status.as_ref().map(|status| format!("\"status\":{status}")));
            fields.extend(more.then(|| "\"more\":{\"name\":1}".to_owned()));
            let body = format!(" {{{}}}\n", fields.join(","));
            let read = new_pet(body.as_bytes());
            let name = name.as_ref().and_then(Value::as_str);
            let category = category.and_then(|(_, number)| number);
            let known = status
                .as_ref()
                .map(|status| serde_json::from_value::<PetStatus>(status.clone()));
            match (name, category, known.transpose()) {
                (Some(name), Some(category), Ok(status)) => {
                    // Names all fields: a new one must be among the random ones, too.
                    let pet = SeedPet {
                        id: None,
                        name: name.to_owned(),
                        category_id: category,
                        status,
                    };
                    prop_assert_eq!(read.ok(), Some(pet), "{}", body);
                }
                _ => prop_assert!(read.is_err(), "{}", body),
            }
            Ok(())
        },
    );
}

fn change() -> impl Strategy<Value = Change> {
    let pet = ("[a-zé\n]{0,4}", -5..40_i64, any::<bool>(), any::<bool>());
    prop_oneof![
        8 => pet.prop_map(|(name, number, with_id, is_sold)| {
            let status = is_sold.then_some(PetStatus::Sold);
            let id = with_id.then_some(number);
            Change::Add(SeedPet { id, name, category_id: number, status })
        }),
        2 => (-5..40_i64).prop_map(Change::Remove),
        1 => Just(Change::ClearPets),
        1 => Just(Change::AddOrder(serde_json::Map::new())),
        1 => Just(Change::ClearOrders),
    ]
}

#[test]
fn the_data_file_holds_what_was_written() {
    check(
        (vec(change(), 0..12), any::<Index>()),
        59,
        |(changes, cut)| {
            let mut store = Store::default();
            let first = Change::Replace(store.clone());
            let mut bytes = data_file::FORMAT.as_bytes().to_vec();
            bytes.extend(data_file::line(&first).unwrap());
            let begin = bytes.len();
            let mut states = vec![(begin, store.clone())];
            for change in changes {
                // A refused change is not in the file.
                if store.change(change.clone()).is_ok() {
                    bytes.extend(data_file::line(&change).unwrap());
                    states.push((bytes.len(), store.clone()));
                }
            }
            let held = |bytes: &[u8]| data_file::read(bytes).map(|(store, _)| store);
            let cut = begin + cut.index(bytes.len() + 1 - begin);
            let whole = states.iter().rev().find(|(end, _)| *end <= cut);
            let read = held(&bytes[..cut]).unwrap();
            prop_assert_eq!(&read, &whole.unwrap().1, "cut at {}", cut);
            Ok(())
        },
    );
}
