//! Results, from the values that commands hand over to bytes on standard output.
//!
//! A format is one file behind one trait; commands never print.

mod column;
mod csv;
mod format;
mod id;
mod jq;
mod json;
mod ndjson;
mod sink;
mod table;
mod tsv;
mod writer;
mod yaml;

pub(crate) use format::OutputFormat;
pub(crate) use json::to_text;
pub(crate) use sink::Sink;
pub(crate) use table::cut;
pub(crate) use writer::{Look, Output};
