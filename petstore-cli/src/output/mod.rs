//! Results, from the values that commands hand over to bytes on standard output.
//!
//! A format is one file behind one trait; commands never print.

mod format;
mod json;
mod records;
mod table;
mod tsv;

pub(crate) use format::OutputFormat;
pub(crate) use json::pretty;
pub(crate) use records::Records;
