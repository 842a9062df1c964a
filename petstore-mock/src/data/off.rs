//! What stands for the file where the feature `data` is off: there is none.

use crate::store::{Change, ChangeError};

/// A file that can't be.
#[derive(Debug)]
pub(crate) enum Data {}

impl Data {
    #[expect(clippy::unused_async, reason = "as it is where there is a file")]
    pub(crate) async fn change(&self, _: Change) -> Result<Option<i64>, ChangeError> {
        match *self {}
    }

    pub(crate) fn close(&self) {
        match *self {}
    }
}
