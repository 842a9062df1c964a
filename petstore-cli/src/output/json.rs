//! JSON that is safe to show: besides what JSON itself escapes, everything that could act on a
//! terminal is written as `\uXXXX`. The document stays the same.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use super::format::Format;
use super::records::Records;
use crate::safe::is_harmful;

pub(crate) struct Json;

impl Format for Json {
    fn write(&self, records: &Records, out: &mut dyn Write) -> io::Result<()> {
        pretty(records.document(), out)
    }
}

/// Writes a document on several lines.
pub(crate) fn pretty(document: &Value, out: &mut dyn Write) -> io::Result<()> {
    document.serialize(&mut Serializer::with_formatter(&mut *out, Safe(PrettyFormatter::new())))?;
    out.write_all(b"\n")
}

/// Returns a document on one line.
pub(crate) fn to_text(document: &Value) -> String {
    let mut text = Vec::new();
    // Neither a `Value` nor a `Vec` can fail.
    let _ = document.serialize(&mut Serializer::with_formatter(&mut text, Safe(CompactFormatter)));
    String::from_utf8_lossy(&text).into_owned()
}

/// Escapes what is harmful, and leaves the layout to another formatter.
struct Safe<F>(F);

/// Hands calls through to the formatter inside.
macro_rules! layout {
    ($($name:ident($($arg:ident: $kind:ty),*);)*) => {$(
        fn $name<W: ?Sized + Write>(&mut self, out: &mut W $(, $arg: $kind)*) -> io::Result<()> {
            self.0.$name(out $(, $arg)*)
        }
    )*};
}

impl<F: Formatter> Formatter for Safe<F> {
    layout! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut plain = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| is_harmful(*c)) {
            out.write_all(&fragment.as_bytes()[plain..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            plain = at + c.len_utf8();
        }
        out.write_all(&fragment.as_bytes()[plain..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_json_lets_through_and_stays_the_same_document() {
        let name = "a\u{1b}[2J\u{9b}\u{7f}\u{202e}\u{200b}\u{e0041}\"\\\n é";
        let document = serde_json::json!({ "name": name, "n": [1, 2.5, null] });
        let text = to_text(&document);
        assert!(!text.contains(is_harmful), "{text}");
        assert!(text.contains(r#"\u009b\u007f\u202e\u200b\udb40\udc41\"\\\n é"#), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), document);
    }
}
