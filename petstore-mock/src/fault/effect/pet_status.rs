//! Pet status: a value that the specification's list does not have, in every pet of an answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{Act, Answer};

/// The value that takes the place of `available`, `pending` or `sold`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PetStatusText {
    pub(super) value: String,
}

impl Act for PetStatusText {
    fn act(&self, answer: &mut Answer) -> bool {
        // The `status` of an error is another thing.
        let Some(mut json) = Some(&answer.body)
            .filter(|_| answer.status.is_success())
            .and_then(|body| serde_json::from_slice::<Value>(body).ok())
        else {
            return false;
        };
        let pets = match &mut json {
            Value::Array(pets) => pets.as_mut_slice(),
            one => std::slice::from_mut(one),
        };
        let mut acted = false;
        for pet in pets.iter_mut().filter_map(Value::as_object_mut) {
            pet.insert("status".to_owned(), Value::from(self.value.as_str()));
            acted = true;
        }
        if acted {
            answer.set_body(json.to_string());
        }
        acted
    }
}
