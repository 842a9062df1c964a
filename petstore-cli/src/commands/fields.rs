//! The fields of `petstore api -f NAME=VALUE` as a JSON object: `tags[]=a` adds to an array, and
//! `owner[name]=Ada` sets a field of an object.

use serde_json::{Map, Value};

use crate::error::{CliError, Result};

/// A step into a nested value.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    /// The next item of an array.
    Append,
}

/// Returns an object of the fields, in order. If a name occurs twice, the last value counts.
pub(super) fn nested(fields: Vec<(String, Value)>) -> Result<Map<String, Value>> {
    let mut object = Map::new();
    for (name, value) in fields {
        let (first, steps) = split(&name)?;
        let place = object.entry(first).or_insert(Value::Null);
        let place = descend(place, &steps, &name)?;
        *place = value;
    }
    Ok(object)
}

/// Splits `owner[name][]` into its name and steps.
fn split(name: &str) -> Result<(String, Vec<Step>)> {
    let Some((first, mut rest)) = name.split_once('[') else {
        return Ok((name.to_owned(), Vec::new()));
    };
    let malformed = || {
        let problem = format!("field `{name}` is not NAME, NAME[] or NAME[FIELD]");
        CliError::usage(problem).hint("a name that contains `[` needs `--input` or `-d`")
    };
    if first.is_empty() {
        return Err(malformed());
    }
    let mut steps = Vec::new();
    loop {
        let (inner, after) = rest.split_once(']').ok_or_else(malformed)?;
        steps.push(match inner {
            "" => Step::Append,
            inner => Step::Field(inner.to_owned()),
        });
        if after.is_empty() {
            return Ok((first.to_owned(), steps));
        }
        rest = after.strip_prefix('[').ok_or_else(malformed)?;
    }
}

/// Returns the place of a nested value. Creates the objects and arrays around it.
fn descend<'v>(mut place: &'v mut Value, steps: &[Step], name: &str) -> Result<&'v mut Value> {
    for step in steps {
        if place.is_null() {
            *place = match step {
                Step::Field(_) => Value::Object(Map::new()),
                Step::Append => Value::Array(Vec::new()),
            };
        }
        place = match (step, place) {
            (Step::Field(field), Value::Object(fields)) => {
                fields.entry(field.clone()).or_insert(Value::Null)
            }
            (Step::Append, Value::Array(items)) => {
                items.push(Value::Null);
                let last = items.len() - 1;
                &mut items[last]
            }
            _ => {
                let problem = format!("field `{name}` has another type than an earlier field");
                let hint = "a name is a value, an array `NAME[]` or an object `NAME[FIELD]`";
                return Err(CliError::usage(problem).hint(hint));
            }
        };
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(fields: &[(&str, i64)]) -> Option<Value> {
        let fields = fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)));
        nested(fields.collect()).ok().map(Value::Object)
    }

    #[test]
    fn builds_arrays_and_objects() {
        let fields = [
            ("tags[]", 1),
            ("owner[name]", 2),
            ("tags[]", 3),
            ("owner[phones][]", 4),
            ("plain", 5),
            ("plain", 6),
        ];
        let expected = json!({
            "tags": [1, 3],
            "owner": { "name": 2, "phones": [4] },
            "plain": 6,
        });
        assert_eq!(object(&fields), Some(expected));
    }

    #[test]
    fn refuses_open_brackets_and_two_types() {
        for name in ["a[", "[a]", "a[b]c", "a]b[", "a[b"] {
            assert_eq!(object(&[(name, 1)]), None, "{name}");
        }
        assert_eq!(object(&[("a", 1), ("a[b]", 2)]), None);
        assert_eq!(object(&[("a[]", 1), ("a[b]", 2)]), None);
    }
}
