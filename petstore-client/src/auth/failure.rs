//! A provider's failure that several callers share.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::error::BoxError;

/// The error of a provider, shared by all callers that waited for it. It reads like that error.
#[derive(Clone)]
pub(super) struct SharedFailure(Arc<dyn Error + Send + Sync>);

impl SharedFailure {
    pub(super) fn new(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            // A cache of a cache.
            Ok(shared) => *shared,
            Err(error) => Self(Arc::from(error)),
        }
    }

    /// Returns the provider's own error.
    pub(super) fn into_cause(self) -> Arc<dyn Error + Send + Sync> {
        self.0
    }
}

impl fmt::Display for SharedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SharedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for SharedFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
