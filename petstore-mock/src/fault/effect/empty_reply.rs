//! Empty reply: the connection is closed before the status line.

use serde::{Deserialize, Serialize};

use super::{
    answer::{Act, Answer},
    script::{At, How},
};

/// Closed properly, so that the client sees the end of the stream where an answer should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyReply {}

impl Act for EmptyReply {
    fn act(&self, answer: &mut Answer) -> bool {
        answer.script.end(At::Start, How::Close)
    }
}
