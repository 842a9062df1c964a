//! What stands for the data file where the feature `data` is off.

use super::store::{Change, ChangeError};

/// A file that can't be opened.
#[derive(Debug)]
pub(crate) enum Data {}

impl Data {
    #[expect(clippy::unused_async, reason = "as it is where there is a file")]
    pub(crate) async fn change(&self, _: Change) -> Result<Option<i64>, ChangeError> {
        match *self {}
    }

    #[expect(clippy::unused_async, reason = "as it is where there is a file")]
    pub(crate) async fn is_ready(&self) -> bool {
        match *self {}
    }

    pub(crate) fn close(&self) {
        match *self {}
    }
}
