//! The schemas of a document, each compiled once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use jsonschema::Validator;
use serde_json::{Value, json};

pub(super) struct Shapes {
    paths: Value,
    components: Value,
    compiled: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Shapes {
    pub(super) fn new(document: &Value) -> Self {
        let part = |name: &str| document[name].clone();
        Self { paths: part("paths"), components: part("components"), compiled: Mutex::default() }
    }

    /// Fails with what of a value the schema at a place of the document does not allow.
    pub(super) fn check(&self, pointer: &str, value: &Value) -> Result<(), String> {
        // A fragment of a URI has no braces (RFC 3986, section 3.5).
        let fragment = pointer.replace('{', "%7B").replace('}', "%7D");
        let compile = || {
            let schema = json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$ref": format!("#{fragment}"),
                "paths": self.paths, "components": self.components,
            });
            Arc::new(jsonschema::validator_for(&schema).unwrap())
        };
        let mut compiled = self.compiled.lock().unwrap();
        let validator = Arc::clone(compiled.entry(pointer.to_owned()).or_insert_with(compile));
        drop(compiled);
        validator.validate(value).map_err(|error| format!("{} at {}", error, error.instance_path()))
    }
}
