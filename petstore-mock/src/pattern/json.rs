//! Where two JSON values differ.

use serde_json::Value;

/// Returns each place where `found` differs from `wanted`, and how; with `all`, what is in `found` only
/// is a difference, too.
pub(super) fn differences(wanted: &Value, found: &Value, all: bool) -> Vec<String> {
    let mut out = Vec::new();
    compare("", wanted, found, all, &mut out);
    out
}

fn compare(place: &str, wanted: &Value, found: &Value, all: bool, out: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            for (name, value) in wanted {
                let place = format!("{place}/{name}");
                match found.get(name) {
                    Some(found) => compare(&place, value, found, all, out),
                    None => out.push(format!("{place} is missing")),
                }
            }
            let extra = found.iter().filter(|(name, _)| all && !wanted.contains_key(*name));
            out.extend(extra.map(|(name, value)| format!("{place}/{name} is {value}, unasked")));
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            for (at, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                compare(&format!("{place}/{at}"), wanted, found, all, out);
            }
        }
        (wanted, found) if wanted == found => {}
        (wanted, found) => {
            let place = if place.is_empty() { "all of it" } else { place };
            out.push(format!("{place} is {found}, not {wanted}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_each_place_that_differs() {
        let wanted = json!({"categoryId": 7, "name": "Rex", "tags": [1, {"a": 2}]});
        let found = json!({"name": "Tom", "tags": [1, {"a": 3}], "status": "sold"});
        assert_eq!(
            differences(&wanted, &found, true),
            [
                "/categoryId is missing",
                "/name is \"Tom\", not \"Rex\"",
                "/tags/1/a is 3, not 2",
                "/status is \"sold\", unasked"
            ]
        );
        assert_eq!(differences(&json!([1]), &json!([1, 2]), true), ["all of it is [1,2], not [1]"]);
        assert_eq!(differences(&wanted, &wanted, true), [""; 0]);
    }

    #[test]
    fn lets_more_be_there_where_only_a_part_is_wanted() {
        let found = json!({"name": "Rex", "more": {"a": 1, "b": 2}});
        assert_eq!(differences(&json!({"more": {"a": 1}}), &found, false), [""; 0]);
        assert_eq!(differences(&json!({"more": {"c": 1}}), &found, false), ["/more/c is missing"]);
    }
}
