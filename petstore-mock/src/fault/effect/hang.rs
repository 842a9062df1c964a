//! Hang: nothing is ever answered, and the connection stays open until the client leaves.

use serde::{Deserialize, Serialize};

use super::{
    answer::{Act, Answer},
    script::{At, How},
};

/// For a time that ends there is the delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hang {}

impl Act for Hang {
    fn act(&self, answer: &mut Answer) -> bool {
        answer.script.end(At::Start, How::Stall(None))
    }
}
