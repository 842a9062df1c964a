//! What can be wrong with a seed, and where.

/// A seed that can't be used; the message says what is wrong with it and where.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SeedError {
    message: String,
    /// The line and column of the file, counted from 1.
    position: Option<(usize, usize)>,
}

impl SeedError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), position: None }
    }

    pub(crate) fn at(line: usize, column: usize, message: impl Into<String>) -> Self {
        Self { message: message.into(), position: Some((line, column)) }
    }

    /// Returns the line of the JSON text, counted from 1, where it can be told.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.position.map(|(line, _)| line)
    }

    /// Returns the column of the JSON text, counted from 1, where it can be told.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.position.map(|(_, column)| column)
    }
}
