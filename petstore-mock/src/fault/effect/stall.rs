//! Stall: the answer begins and then stops, while the connection stays open.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    answer::{Act, Answer},
    script::{At, How},
    seconds,
};

/// Stops after the head and so many bytes of the body, and goes on after a time, if one is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Stall {
    pub(super) after_body_bytes: u64,
    #[serde(with = "seconds::maybe", skip_serializing_if = "Option::is_none")]
    pub(super) seconds: Option<Duration>,
}

impl Act for Stall {
    fn act(&self, answer: &mut Answer) -> bool {
        self.after_body_bytes < answer.length()
            && answer.script.end(At::Body(self.after_body_bytes), How::Stall(self.seconds))
    }
}
