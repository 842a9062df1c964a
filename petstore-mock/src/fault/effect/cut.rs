//! Cut: the connection is closed in the middle of the body, whose whole length was promised.

use serde::{Deserialize, Serialize};

use super::{
    answer::{Act, Answer},
    script::{At, How},
};

/// Closed after so many bytes of the body; a body that is no longer than that is not cut.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Cut {
    pub(super) after_body_bytes: u64,
}

impl Act for Cut {
    fn act(&self, answer: &mut Answer) -> bool {
        self.after_body_bytes < answer.length()
            && answer.script.end(At::Body(self.after_body_bytes), How::Close)
    }
}
