//! A recording of a service: its pets as a seed, and its failures as faults.

use std::collections::BTreeMap;

use http::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    model::{PetStatus, SeedPet},
    operation::Operation,
};

/// The maximum number of recorded pets, and of faults.
const MAX_RECORDED: usize = 100_000;

/// A pet, as far as a seed can hold it. The service may send more fields.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordedPet {
    id: i64,
    name: String,
    category_id: i64,
    status: Option<PetStatus>,
}

#[derive(Debug, Default)]
pub(super) struct Recorder {
    pets: BTreeMap<i64, RecordedPet>,
    faults: Vec<Value>,
    /// The number of requests of each operation, by its name.
    requests: BTreeMap<&'static str, u64>,
}

impl Recorder {
    /// Records the pets of a response, or the failure that it is.
    pub(super) fn record(&mut self, operation: Operation, response: &Response<()>, body: &[u8]) {
        let number = self.requests.entry(operation.name()).or_default();
        *number += 1;
        let number = *number;
        if response.status().is_server_error() {
            if self.faults.len() < MAX_RECORDED {
                self.faults.push(fault(operation, response, number));
            }
            return;
        }
        if !response.status().is_success() {
            return;
        }
        // What is no pet is reported as a breach of the contract.
        let found = match operation {
            Operation::ListPets => {
                serde_json::from_slice::<Vec<RecordedPet>>(body).unwrap_or_default()
            }
            Operation::CreatePet | Operation::GetPet => {
                serde_json::from_slice(body).into_iter().collect()
            }
            Operation::ListOrders => Vec::new(),
        };
        for pet in found {
            if self.pets.len() < MAX_RECORDED {
                self.pets.insert(pet.id, pet);
            }
        }
    }

    /// Returns `{"pets": […], "faults": […]}`.
    pub(super) fn to_json(&self) -> String {
        let seed_pet = |pet: &RecordedPet| SeedPet {
            id: Some(pet.id),
            name: pet.name.clone(),
            category_id: pet.category_id,
            status: pet.status,
        };
        let pets: Vec<_> = self.pets.values().map(seed_pet).collect();
        format!("{:#}\n", json!({"pets": pets, "faults": self.faults}))
    }
}

/// Returns the fault that repeats a failure at the same request of the operation.
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
