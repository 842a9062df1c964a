//! Property tests of the code that reads input files and the program's own files. It must read a
//! value in every form in which it can be written, and detect changes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use csv::{QuoteStyle, Terminator, WriterBuilder};
use petstore_client::{NewPet, Pet, PetStatus};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use serde_json::json;
use toml_edit::DocumentMut;

use super::rows::Rows;
use crate::error::{CliError, Kind, Result};
use crate::settings::Values;
use crate::settings::config_file::{ConfigFile, profile_table, put};

/// Tries 1,000 cases. They are the same in each run, unless `PROPTEST_RNG_SEED` names another seed.
pub(super) fn check<S: Strategy>(
    strategy: S,
    seed: u64,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) where
    S::Value: Debug,
{
    let default = Config::default();
    let seed = match default.rng_seed {
        RngSeed::Random => seed,
        RngSeed::Fixed(other) => other,
    };
    let config = Config {
        cases: 1_000,
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

fn pets() -> impl Strategy<Value = Vec<NewPet>> {
    let name = prop_oneof![any::<String>(), "[ ,;\t\"'\n\r#{}\\[\\]a-c]{0,8}"];
    let status = option::of(select(vec![
        PetStatus::Available,
        PetStatus::Pending,
        PetStatus::Sold,
    ]));
    let pet = (name, any::<i64>(), status).prop_map(|(name, category_id, status)| {
        let mut pet = NewPet::new(name, category_id);
        pet.status = status;
        pet
    });
    vec(pet, 1..6)
}

#[test]
fn random_pets_have_all_fields_that_can_be_sent() {
    let seen = RefCell::new(BTreeSet::new());
    check(pets(), 40, |pets| {
        let pets = pets.iter().map(|pet| serde_json::to_value(pet).unwrap());
        let fields = pets.flat_map(|pet| pet.as_object().unwrap().clone());
        seen.borrow_mut().extend(fields.map(|(name, _)| name));
        Ok(())
    });
    let fields = Pet::FIELDS.iter().copied().filter(|name| *name != "id");
    let fields: BTreeSet<_> = fields.map(str::to_owned).collect();
    assert_eq!(seen.into_inner(), fields);
}

fn read(bytes: impl Into<Vec<u8>>) -> Result<Rows> {
    let rows = Rows::read("rows", bytes.into(), None)?;
    rows.check()?;
    Ok(rows)
}

/// Checks that an input has these rows, and that selected rows can be written and read again.
fn check_rows(text: &str, pets: &[NewPet], lines: &[usize]) -> Result<(), TestCaseError> {
    let input = read(text).map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
    let rows = input.all().iter().enumerate();
    let rows = rows.map(|(number, row)| (input.place(number), row.pet()));
    let expected = pets.iter().zip(lines);
    let expected = expected.map(|(pet, line)| (format!("line {line}"), Some(pet)));
    prop_assert_eq!(rows.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let reasons: BTreeMap<_, _> = (0..pets.len())
        .step_by(2)
        .map(|row| (row, json!("no, \"x\"\n")))
        .collect();
    let written = input.with_column("reason", &reasons).unwrap();
    let again = read(written).map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
    let again: Vec<_> = again
        .all()
        .iter()
        .filter_map(|row| row.pet().cloned())
        .collect();
    prop_assert_eq!(again, pets.iter().step_by(2).cloned().collect::<Vec<_>>());
    Ok(())
}

fn csv_text(
    pets: &[NewPet],
    (tabs, always, crlf, mark): (bool, bool, bool, bool),
    order: &[usize],
) -> (String, Vec<usize>) {
    let mut writer = WriterBuilder::new();
    writer.delimiter(if tabs { b'\t' } else { b',' });
    writer.quote_style(if always {
        QuoteStyle::Always
    } else {
        QuoteStyle::Necessary
    });
    writer.terminator(if crlf {
        Terminator::CRLF
    } else {
        Terminator::Any(b'\n')
    });
    let row = |cells: [&str; 5]| {
        let mut writer = writer.from_writer(Vec::new());
        writer
            .write_record(order.iter().map(|column| cells[*column]))
            .unwrap();
        String::from_utf8(writer.into_inner().unwrap()).unwrap()
    };
    let mut text = if mark {
        "\u{feff}".to_owned()
    } else {
        String::new()
    };
    text += &row(["name", "categoryId", "status", "id", "reason"]);
    let mut lines = Vec::new();
    for pet in pets {
        lines.push(text.matches('\n').count() + 1);
        let status = pet.status.as_ref().map_or("", PetStatus::as_str);
        text += &row([&pet.name, &pet.category_id.to_string(), status, "7", "bad"]);
    }
    (text, lines)
}

#[test]
fn csv_is_read_as_it_was_written_in_every_form() {
    let order = Just(vec![0, 1, 2, 3, 4]).prop_shuffle();
    check(
        (pets(), any::<(bool, bool, bool, bool)>(), order),
        41,
        |(pets, form, order)| {
            let (text, lines) = csv_text(&pets, form, &order);
            check_rows(&text, &pets, &lines)
        },
    );
}

fn json_text(pets: &[NewPet], (pretty, array, mark): (bool, bool, bool)) -> (String, Vec<usize>) {
    let mut text = if mark {
        "\u{feff} \n".to_owned()
    } else {
        String::new()
    };
    text += if array { "[\n" } else { "" };
    let mut lines = Vec::new();
    for (number, pet) in pets.iter().enumerate() {
        text += if array && number > 0 { " ," } else { "" };
        lines.push(text.matches('\n').count() + 1);
        let mut object = serde_json::to_value(pet).unwrap();
        object["id"] = json!([number, {"name": "x"}]);
        text += &if pretty {
            format!("{object:#}")
        } else {
            object.to_string()
        };
        text += "\n";
    }
    (text + if array { "]\n\n" } else { " " }, lines)
}

#[test]
fn json_is_read_as_it_was_written_in_every_form() {
    check((pets(), any::<(bool, bool, bool)>()), 42, |(pets, form)| {
        let (text, lines) = json_text(&pets, form);
        check_rows(&text, &pets, &lines)
    });
}

#[test]
fn a_damaged_input_is_refused_or_its_rows_are_written_again() {
    let damage = vec((any::<Index>(), 0..6_usize, vec(any::<u8>(), 0..4)), 1..4);
    check(
        (pets(), any::<bool>(), any::<(bool, bool, bool)>(), damage),
        43,
        |(pets, csv, form, damage)| {
            let (a, b, c) = form;
            let text = match csv {
                true => csv_text(&pets, (a, b, c, false), &[0, 1, 2]).0,
                false => json_text(&pets, form).0,
            };
            let mut bytes = text.into_bytes();
            for (at, length, new) in damage {
                let start = at.index(bytes.len() + 1);
                bytes.splice(start..(start + length).min(bytes.len()), new);
            }
            match read(bytes) {
                Ok(input) => {
                    let pets: Vec<_> = input
                        .all()
                        .iter()
                        .filter_map(|row| row.pet().cloned())
                        .collect();
                    let (text, lines) = json_text(&pets, (false, false, false));
                    prop_assume!(!pets.is_empty());
                    check_rows(&text, &pets, &lines)
                }
                Err(CliError::Failure(failure)) if failure.kind == Kind::Input => Ok(()),
                Err(other) => Err(TestCaseError::fail(format!("{other:?}"))),
            }
        },
    );
}

/// Generates a setting, and a valid text for it.
fn setting() -> impl Strategy<Value = (&'static str, String)> {
    let text = |values: &[&str]| select(values.iter().map(|&v| v.to_owned()).collect::<Vec<_>>());
    prop_oneof![
        any::<String>().prop_map(|url| ("base_url", url)),
        prop_oneof![
            any::<String>(),
            "[+-]?[0-9]{1,3}",
            text(&["true", "1_000", "0x1f"])
        ]
        .prop_map(|file| ("ca_file", file)),
        text(&["true", "false"]).prop_map(|truth| ("allow_insecure_http", truth)),
        text(&["json", "table"]).prop_map(|format| ("output", format)),
        text(&["7", "90s", "24h", "007"]).prop_map(|time| ("max_wait", time)),
        text(&["7", "500KiB", "1GiB"]).prop_map(|size| ("max_response_size", size)),
        (0..9_u32).prop_map(|retries| ("retries", retries.to_string())),
    ]
}

#[test]
fn a_written_setting_is_read_again_and_other_profiles_stay() {
    let first = "# mine\n[profiles.a]\nretries = 1 # one\n";
    check(vec(setting(), 1..6), 45, |settings| {
        let mut document = first.parse::<DocumentMut>().unwrap();
        let mut expected = Values::default();
        for (name, text) in &settings {
            put(profile_table(&mut document, "b").unwrap(), name, text);
            expected.set(name, text).map_err(TestCaseError::fail)?;
        }
        let text = document.to_string();
        prop_assert!(text.starts_with(first), "{}", text);
        let config = ConfigFile::parse("config.toml", &text);
        let config = config.map_err(|error| TestCaseError::fail(format!("{text}: {error:?}")))?;
        for name in Values::NAMES {
            prop_assert_eq!(
                config.values("b").unwrap().text(name),
                expected.text(name),
                "{} in {}",
                name,
                text
            );
        }
        prop_assert_eq!(
            config.values("a").unwrap().text("retries"),
            Some("1".to_owned())
        );
        Ok(())
    });
}

#[test]
fn a_config_file_of_any_text_is_read_or_its_line_is_named() {
    let part = select(vec![
        "profile",
        "profiles",
        "a",
        "[",
        "]",
        "[profiles.a]",
        "[[profiles]]",
        "=",
        "\n",
        "\n",
        "\"",
        "'",
        "base_url",
        "retries",
        "max_wait",
        " ",
        "1",
        "-1",
        "90s",
        "true",
        "{",
        "}",
        ".",
        "#",
        "\\u",
        "é",
        ",",
        "1979-05-27",
        "\"\"\"",
        "\r\n",
        "\t",
        "\0",
    ]);
    let text = prop_oneof![
        vec(part, 0..16).prop_map(|parts| parts.concat()),
        any::<String>()
    ];
    check(text, 46, |text| {
        let Err(error) = ConfigFile::parse("FILE", &text) else {
            return Ok(());
        };
        let CliError::Failure(failure) = error else {
            return Err(TestCaseError::fail("no failure"));
        };
        prop_assert_eq!(failure.kind, Kind::Config);
        let rest = failure
            .message
            .strip_prefix("FILE line ")
            .unwrap_or_default();
        let number = rest
            .split(':')
            .next()
            .and_then(|number| number.parse::<usize>().ok());
        let lines = text.matches('\n').count() + 1;
        prop_assert!(
            number.is_some_and(|n| (1..=lines).contains(&n)),
            "{}",
            failure.message
        );
        Ok(())
    });
}
