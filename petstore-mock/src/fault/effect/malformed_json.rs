//! Malformed JSON: the body breaks off, though all bytes that were announced are there.

use serde::{Deserialize, Serialize};

use super::answer::{Act, Answer};

/// Lacks the last byte, the bracket that closes everything: no parser can take the rest for whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MalformedJson {}

impl Act for MalformedJson {
    fn act(&self, answer: &mut Answer) -> bool {
        let Some(length) = answer.body.len().checked_sub(1) else {
            return false;
        };
        let body = answer.body.slice(..length);
        answer.set_body(body)
    }
}
