//! Reset: the connection is reset (RST), so that the client sees ECONNRESET.

use serde::{Deserialize, Serialize};

use super::{
    answer::{Act, Answer},
    script::{At, How},
};

/// Before the status line or, if so told, in the middle of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Reset {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after_body_bytes: Option<u64>,
}

impl Act for Reset {
    fn act(&self, answer: &mut Answer) -> bool {
        match self.after_body_bytes {
            None => answer.script.end(At::Start, How::Reset),
            Some(bytes) => {
                bytes < answer.length() && answer.script.end(At::Body(bytes), How::Reset)
            }
        }
    }
}
