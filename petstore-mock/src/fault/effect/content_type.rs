//! Content type: another media type than the body's, or none.

use http::{HeaderValue, header::CONTENT_TYPE};
use serde::{Deserialize, Serialize};

use super::{
    answer::{Act, Answer},
    field,
};

/// The value to send; none takes the header away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContentType {
    #[serde(with = "field::maybe_value")]
    pub(super) value: Option<HeaderValue>,
}

impl Act for ContentType {
    fn act(&self, answer: &mut Answer) -> bool {
        match &self.value {
            Some(value) => {
                answer.headers.insert(CONTENT_TYPE, value.clone());
                true
            }
            None => answer.headers.remove(CONTENT_TYPE).is_some(),
        }
    }
}
