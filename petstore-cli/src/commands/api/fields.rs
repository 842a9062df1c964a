//! The fields that are typed one by one: `-f` as text, `-F` as what it looks like.

use std::path::Path;

use serde_json::{Map, Value};

use crate::context::Context;
use crate::error::CliError;
use crate::output::to_text;

/// Splits `NAME=VALUE`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it must look like NAME=VALUE".to_owned()),
    }
}

/// Splits `NAME: VALUE`.
pub(super) fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("it must look like `NAME: VALUE`".to_owned()),
    }
}

/// Puts typed fields and plain ones together, in that order.
pub(super) async fn collect(
    context: &mut Context,
    plain: Vec<(String, String)>,
    typed: Vec<(String, String)>,
) -> Result<Map<String, Value>, CliError> {
    let mut fields = Map::new();
    for (name, text) in plain {
        fields.insert(name, Value::String(text));
    }
    for (name, text) in typed {
        let value = match text.strip_prefix('@') {
            Some(file) => Value::String(text_of(context, file).await?),
            None => typed_value(text),
        };
        fields.insert(name, value);
    }
    Ok(fields)
}

/// Returns what a text looks like: a whole number, a truth value, `null`, or else itself.
fn typed_value(text: String) -> Value {
    match text.as_str() {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        number => number.parse::<i64>().map_or(Value::String(text), Value::from),
    }
}

/// Returns a field as the query takes it.
pub(super) fn query_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => to_text(other),
    }
}

async fn text_of(context: &mut Context, file: &str) -> Result<String, CliError> {
    let bytes = context.read(Path::new(file)).await?;
    String::from_utf8(bytes).map_err(|_| CliError::usage(format!("{file} does not hold text")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn takes_a_text_for_what_it_looks_like() {
        let typed = |text: &str| typed_value(text.to_owned());
        assert_eq!(typed("7"), json!(7));
        assert_eq!(typed("-7"), json!(-7));
        assert_eq!(typed("7.5"), json!("7.5"));
        assert_eq!(typed("true"), json!(true));
        assert_eq!(typed("null"), json!(null));
        assert_eq!(typed("Rex"), json!("Rex"));
    }
}
