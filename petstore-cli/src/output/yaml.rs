//! YAML that readers of version 1.1 and 1.2 take for the same values, and that is safe to show.
//!
//! It is written by hand, since it needs little, and no library escapes what could act on a
//! terminal: a text stands plain only where nothing could take it for anything else.

use std::fmt::Write as _;
use std::io::Write;

use serde_json::{Number, Value};

use super::format::{Format, Kind, Records};
use crate::error::CliError;
use crate::safe::is_harmful;

pub(super) struct Yaml;

impl Format for Yaml {
    fn kind(&self) -> Kind {
        Kind::Document
    }

    fn write(&mut self, records: &Records<'_>, out: &mut dyn Write) -> Result<(), CliError> {
        let mut text = String::new();
        if !records.first {
            text += "---\n";
        }
        match records.rows {
            [value] if records.single => node(value, 0, &mut text),
            rows => list(rows, 0, &mut text),
        }
        Ok(out.write_all(text.trim_start_matches(['\n', ' ']).as_bytes())?)
    }
}

/// Writes what stands behind a `-` or a `:`, and the line break that ends it.
fn node(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            for (name, value) in fields {
                indent(depth, out);
                scalar(name, out);
                out.push(':');
                node(value, depth + 1, out);
            }
        }
        Value::Array(items) if !items.is_empty() => list(items, depth, out),
        Value::Object(_) => *out += " {}\n",
        Value::Array(_) => *out += " []\n",
        Value::String(text) => {
            out.push(' ');
            scalar(text, out);
            out.push('\n');
        }
        Value::Number(value) => *out += &format!(" {}\n", number(value)),
        Value::Bool(_) | Value::Null => *out += &format!(" {value}\n"),
    }
}

fn list(items: &[Value], depth: usize, out: &mut String) {
    if items.is_empty() {
        *out += " []\n";
        return;
    }
    out.push('\n');
    for item in items {
        indent(depth, out);
        out.push('-');
        let mut inner = String::new();
        node(item, depth + 1, &mut inner);
        // The first line of what is nested stands behind the dash: `- id: 7`.
        let nested = inner.strip_prefix('\n').map(|rest| format!(" {}", rest.trim_start()));
        *out += nested.as_ref().unwrap_or(&inner);
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Returns a number that is one for YAML 1.1 too: with a point and a signed exponent.
fn number(value: &Number) -> String {
    let text = value.to_string();
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let point = if digits.contains('.') { "" } else { ".0" };
            let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
            format!("{digits}{point}e{sign}{exponent}")
        }
    }
}

fn scalar(text: &str, out: &mut String) {
    if is_plain(text) {
        *out += text;
        return;
    }
    out.push('"');
    for c in text.chars() {
        let code = u32::from(c);
        let _ = match c {
            '"' | '\\' => write!(out, "\\{c}"),
            '\n' => write!(out, "\\n"),
            '\t' => write!(out, "\\t"),
            c if !(is_harmful(c) || matches!(c, '\u{fffe}' | '\u{ffff}')) => write!(out, "{c}"),
            _ if code <= 0xff => write!(out, "\\x{code:02x}"),
            _ if code <= 0xffff => write!(out, "\\u{code:04x}"),
            _ => write!(out, "\\U{code:08x}"),
        };
    }
    out.push('"');
}

/// Returns whether a text, unquoted, is a text to every reader: it begins with a letter, ends
/// with one or a digit, holds no sign of YAML's, and is no word for a truth value or nothing.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    text.starts_with(char::is_alphabetic)
        && text.ends_with(char::is_alphanumeric)
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/'))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use yaml_rust2::YamlLoader;

    use super::*;

    fn written(value: &Value) -> String {
        let mut out = Vec::new();
        let rows = std::slice::from_ref(value);
        let records = Records { rows, columns: &[], first: true, single: true };
        Yaml.write(&records, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lays_out_lists_of_objects() {
        let value = json!([{ "id": 1, "name": "Rex", "tags": ["a", []], "in": { "x": {} } }, []]);
        let text = "- id: 1\n  name: Rex\n  tags:\n    - a\n    - []\n  in:\n    x: {}\n- []\n";
        assert_eq!(written(&value), text);
        assert_eq!(written(&json!([])), "[]\n");
        assert_eq!(written(&json!({ "a": 1 })), "a: 1\n");
    }

    #[test]
    fn quotes_what_a_reader_would_take_for_something_else() {
        for text in [
            "no",
            "Yes",
            "1e3",
            "0x1f",
            "",
            " a",
            "a ",
            "- a",
            "a: b",
            "a #b",
            "~",
            "=",
            "12:30",
            "2026-11-21",
            "null",
            "&a",
            "*a",
            "!a",
            "a\u{85}b",
            "a:",
        ] {
            assert!(written(&json!(text)).starts_with('"'), "{text}");
        }
        assert_eq!(written(&json!([1e100, 1.5, -3])), "- 1.0e+100\n- 1.5\n- -3\n");
    }

    #[test]
    fn every_text_is_read_back_as_it_was() {
        let all = (0..=0x2100).chain(0xfe00..=0x1_f600).filter_map(char::from_u32);
        let odd = ["\u{1b}[2J", "\u{e0041}", "a\r\nb", "\u{feff}x", "犬", "🐕", "\"\\", "\u{ffff}"];
        for text in all.map(String::from).chain(odd.map(String::from)) {
            let written = written(&json!([text]));
            assert!(!written.trim_end().contains(is_harmful), "{written:?}");
            let read = YamlLoader::load_from_str(&written).unwrap();
            assert_eq!(read[0][0].as_str(), Some(text.as_str()), "{written:?}");
        }
    }
}
