//! Body: any text in the place of the answer's, under the same status and headers.

use serde::{Deserialize, Serialize};

use super::answer::{Act, Answer};

/// The text, and nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Body {
    pub(super) text: String,
}

impl Act for Body {
    fn act(&self, answer: &mut Answer) -> bool {
        answer.set_body(self.text.clone())
    }
}
