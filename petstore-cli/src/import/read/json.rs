//! JSON: an object on each line, an array of objects, or a single object.

use std::fmt;
use std::ops::Range;

use petstore_client::NewPet;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Layout, Table};
use crate::import::check;
use crate::import::row::{Complaint, Lines, Row};

/// Reads an array that begins at a byte.
pub(super) fn array(text: &str, start: usize, lines: &Lines<'_>) -> Result<Table, Vec<Complaint>> {
    let part = text.get(start..).unwrap_or_default();
    match serde_json::from_str::<Vec<&RawValue>>(part) {
        Ok(values) => {
            let values = values.into_iter().map(RawValue::get).map(Ok);
            collect(text, Layout::Json, values, lines)
        }
        Err(error) => Err(vec![lines.complain_of_json(start, &error)]),
    }
}

/// Reads objects, the first of which begins at a byte: one on each line, or one over several.
pub(super) fn objects(
    text: &str,
    start: usize,
    lines: &Lines<'_>,
) -> Result<Table, Vec<Complaint>> {
    let part = text.get(start..).unwrap_or_default();
    let first = part.lines().next().unwrap_or_default();
    if serde_json::from_str::<&RawValue>(first).is_err()
        && let Ok(whole) = serde_json::from_str::<&RawValue>(part)
    {
        return collect(text, Layout::Json, [Ok(whole.get())], lines);
    }
    let values = part.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| {
        let value = serde_json::from_str::<&RawValue>(line).map(RawValue::get);
        value.map_err(|error| lines.complain_of_json(offset(text, line), &error))
    });
    collect(text, Layout::Ndjson, values, lines)
}

fn collect<'t>(
    text: &'t str,
    layout: Layout,
    values: impl IntoIterator<Item = Result<&'t str, Complaint>>,
    lines: &Lines<'_>,
) -> Result<Table, Vec<Complaint>> {
    let (mut rows, mut complaints) = (Vec::new(), Vec::new());
    for value in values {
        let value = match value {
            Ok(value) => value,
            Err(complaint) => {
                complaints.push(complaint);
                continue;
            }
        };
        let at = offset(text, value);
        let mut complain = |part: &str, problem| {
            complaints.push(lines.complain(offset(text, part), problem));
        };
        if let Some(pet) = pet(value, &mut complain) {
            let span: Range<usize> = at..at + value.len();
            rows.push(Row { line: lines.line(at), span, pet });
        }
    }
    if complaints.is_empty() { Ok(Table { layout, rows }) } else { Err(complaints) }
}

/// Reads an object as a pet, or complains of its parts.
fn pet<'t>(value: &'t str, complain: &mut impl FnMut(&'t str, String)) -> Option<NewPet> {
    let Ok(Fields(fields)) = serde_json::from_str::<Fields<'t>>(value) else {
        complain(value, format!("a pet must be an object, and this is {}", kind(value)));
        return None;
    };
    let (mut name, mut category, mut status) = (None, None, None);
    let mut good = true;
    let mut seen = Vec::with_capacity(4);
    for (field, raw) in fields {
        let part = raw.get();
        let result = match field.as_str() {
            known if seen.iter().any(|one| one == known) => Err(check::repeated(known)),
            "name" => text_of(part)
                .map(|text| name = Some(text))
                .map_err(|is| format!("`name` must be a text, and is {is}")),
            "categoryId" => check::category(part).map(|id| category = Some(id)),
            "status" if part == "null" => Ok(()),
            "status" => text_of(part)
                .map_err(|is| format!("`status` must be a text, and is {is}"))
                .and_then(|text| check::status(&text))
                .map(|one| status = Some(one)),
            left_out if check::LEFT_OUT.contains(&left_out) => Ok(()),
            unknown => Err(check::unknown(unknown)),
        };
        seen.push(field);
        if let Err(problem) = result {
            good = false;
            complain(part, problem);
        }
    }
    for field in ["name", "categoryId"] {
        if !seen.iter().any(|one| one == field) {
            good = false;
            complain(value, check::missing(field));
        }
    }
    let pet = NewPet::new(name.filter(|_| good)?, category?);
    Some(match status {
        Some(status) => pet.with_status(status),
        None => pet,
    })
}

fn text_of(raw: &str) -> Result<String, &'static str> {
    serde_json::from_str(raw).map_err(|_| kind(raw))
}

fn kind(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b'n') => "null",
        Some(b't' | b'f') => "true or false",
        _ => "a number",
    }
}

/// Returns where a part of a text begins in it.
fn offset(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// The fields of an object, in their order, repeated ones included.
struct Fields<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collector;

        impl<'de> Visitor<'de> for Collector {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(4);
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Collector)
    }
}
