//! Standard output: the options that say how results are written, and the handle that commands get.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Output, OutputFormat, Shape};
use crate::error::Result;
use crate::screen::Screen;

/// The options of the output.
#[derive(Debug, Clone)]
pub(crate) struct OutputOptions {
    /// The format that the user set.
    pub(crate) format: Option<OutputFormat>,
    pub(crate) fields: Option<Vec<String>>,
    pub(crate) jq: Option<String>,
    /// The variables that `env` returns in `--jq`.
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) screen: Screen,
}

impl OutputOptions {
    /// Returns the format: by default a table for terminals, and tab-separated values otherwise.
    pub(super) fn format_or_default(&self) -> OutputFormat {
        match self.format {
            Some(format) => format,
            None if self.screen.is_terminal() => OutputFormat::Table,
            None => OutputFormat::Tsv,
        }
    }
}

/// Buffered standard output, shared by handles.
#[derive(Clone)]
pub(crate) struct Stdout(Arc<Mutex<BufWriter<Box<dyn Write + Send>>>>);

impl Stdout {
    pub(crate) fn new(stream: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(BufWriter::new(stream))))
    }

    fn lock(&self) -> MutexGuard<'_, BufWriter<Box<dyn Write + Send>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().flush()
    }
}

/// Writes results to standard output.
#[derive(Clone)]
pub(crate) struct Printer {
    stdout: Stdout,
    options: OutputOptions,
}

impl Printer {
    pub(crate) fn new(stdout: Stdout, options: OutputOptions) -> Self {
        Self { stdout, options }
    }

    /// Starts a command's result. Call it before sending anything, because it checks `--jq`.
    pub(crate) fn start(&self, shape: Shape) -> Result<Output> {
        Output::new(self.stdout.clone(), &self.options, shape)
    }

    /// Like `start`, with another default format.
    pub(crate) fn start_or(&self, format: OutputFormat, shape: Shape) -> Result<Output> {
        let mut options = self.options.clone();
        if options.jq.is_none() && options.format.is_none() {
            options.format = Some(format);
        }
        Output::new(self.stdout.clone(), &options, shape)
    }

    /// Starts a result in a file, in a format that writes records one by one.
    pub(crate) fn start_in(
        &self,
        file: File,
        format: OutputFormat,
        shape: Shape,
    ) -> Result<Output> {
        let options = OutputOptions {
            screen: Screen::file(),
            format: Some(format),
            ..self.options.clone()
        };
        Output::new(Stdout::new(Box::new(file)), &options, shape)
    }

    /// Writes formatted text.
    pub(crate) fn print(&self, text: &str) -> Result<()> {
        Ok(self.stdout.clone().write_all(text.as_bytes())?)
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<()> {
        Ok(self.stdout.clone().write_all(bytes)?)
    }

    pub(crate) fn flush(&self) -> Result<()> {
        Ok(self.stdout.clone().flush()?)
    }

    /// Returns the stream, for code that writes its own results.
    pub(crate) fn stdout(&self) -> Stdout {
        self.stdout.clone()
    }

    pub(crate) fn screen(&self) -> &Screen {
        &self.options.screen
    }

    /// Returns the format that the user set.
    pub(crate) fn requested_format(&self) -> Option<OutputFormat> {
        self.options.format
    }

    /// Returns the fields that the user selected.
    pub(crate) fn fields(&self) -> Option<&[String]> {
        self.options.fields.as_deref()
    }

    /// Returns whether the user filters the result.
    pub(crate) fn is_filtered(&self) -> bool {
        self.options.jq.is_some()
    }

    /// Returns whether the user set how the result is written.
    pub(crate) fn is_set(&self) -> bool {
        self.options.format.is_some() || self.options.fields.is_some() || self.is_filtered()
    }

    /// Returns whether a command may format its result for people.
    pub(crate) fn is_table(&self) -> bool {
        let format = self.options.format_or_default();
        format == OutputFormat::Table && !self.is_filtered() && self.options.fields.is_none()
    }
}
