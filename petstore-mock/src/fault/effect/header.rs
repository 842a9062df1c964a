//! Headers in general: set, added or taken away.

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use super::{
    answer::{Act, Answer},
    field,
};

/// Sets a header field, in the place of all that have its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetHeader {
    #[serde(with = "field::name")]
    pub(super) name: HeaderName,
    #[serde(with = "field::value")]
    pub(super) value: HeaderValue,
}

impl Act for SetHeader {
    fn act(&self, answer: &mut Answer) -> bool {
        answer.headers.insert(self.name.clone(), self.value.clone());
        true
    }
}

/// Adds a header field to those there are, of its name or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddHeader {
    #[serde(with = "field::name")]
    pub(super) name: HeaderName,
    #[serde(with = "field::value")]
    pub(super) value: HeaderValue,
}

impl Act for AddHeader {
    fn act(&self, answer: &mut Answer) -> bool {
        answer.headers.append(self.name.clone(), self.value.clone());
        true
    }
}

/// Takes away all header fields of a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveHeader {
    #[serde(with = "field::name")]
    pub(super) name: HeaderName,
}

impl Act for RemoveHeader {
    fn act(&self, answer: &mut Answer) -> bool {
        answer.headers.remove(&self.name).is_some()
    }
}
