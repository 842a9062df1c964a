//! Standard output: how results are written, and the handle that commands get.

use std::fs::File;
use std::io::Write as _;

use serde_json::Value;

use super::{Output, OutputFormat, Shape};
use crate::env::SharedStream;
use crate::error::Result;
use crate::screen::Screen;

/// Writes results to standard output, or to a file.
#[derive(Clone)]
pub(crate) struct Printer {
    pub(crate) out: SharedStream,
    pub(crate) screen: Screen,
    /// The format that the user set.
    pub(crate) format: Option<OutputFormat>,
    pub(crate) fields: Option<Vec<String>>,
    pub(crate) jq: Option<String>,
    /// The variables that `env` returns in `--jq`.
    pub(crate) variables: Value,
}

impl Printer {
    /// Starts a command's result. Call it before sending anything, because it checks `--jq`.
    pub(crate) fn start(&self, shape: Shape) -> Result<Output> {
        Output::new(self.clone(), shape)
    }

    /// Like `start`, with another default format.
    pub(crate) fn start_or(&self, format: OutputFormat, shape: Shape) -> Result<Output> {
        let mut printer = self.clone();
        if !self.is_filtered() {
            printer.format.get_or_insert(format);
        }
        printer.start(shape)
    }

    /// Starts a result in a file, in a format that writes records one by one.
    pub(crate) fn start_in(
        &self,
        file: File,
        format: OutputFormat,
        shape: Shape,
    ) -> Result<Output> {
        let printer = Self {
            out: SharedStream::new(Box::new(file)),
            screen: Screen::file(),
            format: Some(format),
            ..self.clone()
        };
        printer.start(shape)
    }

    /// Writes text or bytes as they are.
    pub(crate) fn print(&self, text: impl AsRef<[u8]>) -> Result<()> {
        Ok(self.out.clone().write_all(text.as_ref())?)
    }

    pub(crate) fn flush(&self) -> Result<()> {
        Ok(self.out.clone().flush()?)
    }

    /// Returns the stream, for code that writes its own results.
    pub(crate) fn stdout(&self) -> SharedStream {
        self.out.clone()
    }

    pub(crate) fn screen(&self) -> &Screen {
        &self.screen
    }

    pub(crate) fn requested_format(&self) -> Option<OutputFormat> {
        self.format
    }

    pub(crate) fn fields(&self) -> Option<&[String]> {
        self.fields.as_deref()
    }

    pub(crate) fn is_filtered(&self) -> bool {
        self.jq.is_some()
    }

    /// Returns whether the user set how the result is written.
    pub(crate) fn is_set(&self) -> bool {
        self.format.is_some() || self.fields.is_some() || self.is_filtered()
    }

    /// Returns whether a command may format its result for people.
    pub(crate) fn is_table(&self) -> bool {
        let format = self.format_or_default();
        format == OutputFormat::Table && !self.is_filtered() && self.fields.is_none()
    }

    /// Returns the format: by default a table for terminals, and tab-separated values otherwise.
    pub(super) fn format_or_default(&self) -> OutputFormat {
        match self.format {
            Some(format) => format,
            None if self.screen.is_terminal() => OutputFormat::Table,
            None => OutputFormat::Tsv,
        }
    }
}
