//! JSON that is safe to show: besides what JSON itself escapes, everything that could act on a
//! terminal is written as `\uXXXX`. The document stays the same.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use super::format::{Format, Kind, Records};
use crate::error::CliError;
use crate::safe::is_harmful;
use crate::style;

pub(super) struct Json {
    pub(super) color: bool,
}

impl Format for Json {
    fn kind(&self) -> Kind {
        Kind::Document
    }

    fn write(&mut self, records: &Records<'_>, out: &mut dyn Write) -> Result<(), CliError> {
        let layout = Safe { inner: PrettyFormatter::new(), color: self.color };
        let mut writer = Serializer::with_formatter(&mut *out, layout);
        let written = match records.rows {
            [value] if records.single => value.serialize(&mut writer),
            rows => rows.serialize(&mut writer),
        };
        written.map_err(io::Error::from)?;
        Ok(out.write_all(b"\n")?)
    }
}

/// Writes a document on one line.
pub(super) fn compact(document: &Value, color: bool, out: &mut dyn Write) -> io::Result<()> {
    let layout = Safe { inner: CompactFormatter, color };
    Ok(document.serialize(&mut Serializer::with_formatter(out, layout))?)
}

/// Returns a document on one line.
pub(crate) fn to_text(document: &Value) -> String {
    let mut text = Vec::new();
    // Neither a `Value` nor a `Vec` can fail.
    let _ = compact(document, false, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Escapes what is harmful, and leaves the layout to another formatter.
struct Safe<F> {
    inner: F,
    color: bool,
}

/// Hands calls through to the formatter inside.
macro_rules! layout {
    ($($name:ident($($arg:ident: $kind:ty),*);)*) => {$(
        fn $name<W: ?Sized + Write>(&mut self, out: &mut W $(, $arg: $kind)*) -> io::Result<()> {
            self.inner.$name(out $(, $arg)*)
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
        begin_object_value();
        end_object_value();
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.inner.begin_object_key(out, first)?;
        if self.color { write!(out, "{}", style::NAME) } else { Ok(()) }
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self.color {
            write!(out, "{:#}", style::NAME)?;
        }
        self.inner.end_object_key(out)
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
