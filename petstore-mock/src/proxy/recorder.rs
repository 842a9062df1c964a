//! A recording of a service: its pets as a seed, and its failures as faults.

use std::collections::BTreeMap;

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::contract::Sent;
use crate::{model::Pet, operation::Operation};

/// The maximum number of recorded pets, and of faults.
const MAX_RECORDED: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct Recorder {
    pets: BTreeMap<i64, Pet>,
    faults: Vec<Value>,
    /// The number of requests of each operation, by its name.
    requests: BTreeMap<&'static str, u64>,
}

impl Recorder {
    /// Records the pets of a response or, if it is a 5xx, a fault that repeats it.
    pub(super) fn record(&mut self, sent: &Sent<'_>, response: &Response<()>, body: &[u8]) {
        let operation = sent.operation();
        let number = self.requests.entry(operation.name()).or_default();
        *number += 1;
        let number = *number;
        if response.status().is_server_error() {
            if self.faults.len() < MAX_RECORDED {
                self.faults.push(fault(operation, response, number));
            }
            return;
        }
        if response.status() == StatusCode::NOT_FOUND
            && let Some(id) = sent.pet_id()
        {
            self.pets.remove(&id);
        }
        if !response.status().is_success() {
            return;
        }
        // An operation that removes a pet would remove `sent.pet_id()` from `self.pets`.
        if !operation.content().has_pets() {
            return;
        }
        // Ignore what is not a pet. It is reported as a breach of the contract.
        let found = match serde_json::from_slice(body) {
            Ok(Value::Array(found)) => found,
            Ok(one) => vec![one],
            Err(_) => Vec::new(),
        };
        for pet in found {
            let Value::Object(pet) = pet else {
                continue;
            };
            let Ok(pet) = Pet::from_other(pet) else {
                continue;
            };
            if self.pets.len() < MAX_RECORDED {
                self.pets.insert(pet.id, pet);
            }
        }
    }

    /// Returns `{"pets": […], "faults": […]}`.
    pub(super) fn to_json(&self) -> String {
        let pets: Vec<_> = self.pets.values().collect();
        format!("{:#}\n", json!({"pets": pets, "faults": self.faults}))
    }
}

/// Returns a fault that repeats a failure, at the operation's request with the same number.
fn fault(operation: Operation, response: &Response<()>, number: u64) -> Value {
    let status = response.status().as_u16();
    let retry_after = response
        .headers()
        .get("retry-after")
        .and_then(|value| value.to_str().ok());
    let effect = match retry_after {
        None => json!({"status": status}),
        Some(text) => json!({"all": [{"status": status}, {"retryAfter": {"text": text}}]}),
    };
    json!({
        "name": format!("recorded {status}"),
        "operation": operation,
        "when": {"nth": number},
        "effect": effect,
    })
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn a_pet_that_is_no_longer_found_is_forgotten() {
        let mut recorder = Recorder::default();
        let mut get = |id: u32, status: u16| {
            let uri = format!("/v1/pets/{id}").parse().unwrap();
            let sent = Sent::new(1, Operation::GetPet, &Method::GET, &uri, b"");
            let mut response = Response::new(());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            let body = format!(r#"{{"id": {id}, "name": "Rex", "categoryId": 7}}"#);
            recorder.record(&sent, &response, body.as_bytes());
            recorder.pets.keys().copied().collect::<Vec<_>>()
        };
        assert_eq!(get(7, 200), [7]);
        assert_eq!(get(8, 200), [7, 8]);
        assert_eq!(get(7, 401), [7, 8]);
        assert_eq!(get(7, 404), [8]);
    }
}
