//! An OpenAPI document, and its checks of responses.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
};

use jsonschema::Validator;
use petstore_mock::OpenApi;
use serde_json::{Map, Value, json};
use yaml_rust2::{Yaml, YamlLoader};

use super::Answer;

/// A parsed OpenAPI document.
pub(crate) struct Document {
    json: Value,
    /// The prefix of all paths.
    base: &'static str,
    /// Its schemas, each compiled once.
    schemas: Mutex<HashMap<String, Arc<Validator>>>,
}

pub(crate) static SERVICE: LazyLock<Document> =
    LazyLock::new(|| Document::new(OpenApi::Service, "/v1"));
pub(crate) static ADMINISTRATION: LazyLock<Document> =
    LazyLock::new(|| Document::new(OpenApi::Administration, ""));

impl Document {
    fn new(document: OpenApi, base: &'static str) -> Self {
        Self {
            json: read(document),
            base,
            schemas: Mutex::default(),
        }
    }

    /// Returns each path, from the root, with its methods.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (String, &Map<String, Value>)> {
        let paths = self.json["paths"].as_object().unwrap();
        paths
            .iter()
            .map(|(path, item)| (format!("{}{path}", self.base), item.as_object().unwrap()))
    }

    /// Returns a schema by its name.
    pub(crate) fn schema(&self, name: &str) -> &Value {
        &self.json["components"]["schemas"][name]
    }

    /// Follows a `$ref`.
    pub(crate) fn target<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.json.pointer(&reference[1..]).unwrap(),
            None => value,
        }
    }

    /// Checks a response. The error says what is wrong.
    pub(super) fn check(&self, answer: &Answer<'_>) -> Result<(), String> {
        let Some((_, item)) = self.paths().find(|(path, _)| matches(path, answer.path)) else {
            return self.check_error(answer, &[404, 429]);
        };
        let asked = match answer.method {
            "HEAD" => "GET",
            method => method,
        };
        // Methods are case-sensitive: `get` is not `GET`.
        let Some(method) = item.keys().find(|method| method.to_uppercase() == asked) else {
            return self.check_error(answer, &[401, 404, 405, 429]);
        };
        let response = item[method]["responses"].get(answer.status.to_string());
        let response = self.target(response.ok_or("a status that is not described")?);
        self.check_headers(answer, response)?;
        let Some(content) = response["content"].as_object() else {
            return match answer.body {
                None | Some([]) => Ok(()),
                Some(_) => Err("a body that is not described".to_owned()),
            };
        };
        let media_type = answer.header("content-type").unwrap_or_default();
        match content.get(media_type) {
            Some(described) if media_type == "application/json" => {
                self.check_json(answer, &described["schema"])
            }
            Some(_) => Ok(()),
            None => Err(format!("{media_type:?} is no media type of it")),
        }
    }

    /// Checks an error that belongs to no operation.
    fn check_error(&self, answer: &Answer<'_>, statuses: &[u16]) -> Result<(), String> {
        if !statuses.contains(&answer.status) {
            return Err(format!(
                "the document describes nothing there; expected one of {statuses:?}"
            ));
        }
        if answer.header("content-type") != Some("application/json") {
            return Err("an error that is not said to be JSON".to_owned());
        }
        self.check_json(answer, self.schema("Error"))
    }

    fn check_headers(&self, answer: &Answer<'_>, response: &Value) -> Result<(), String> {
        for (name, header) in response["headers"].as_object().into_iter().flatten() {
            let header = self.target(header);
            let Some(sent) = answer.header(name) else {
                if header["required"] == true {
                    return Err(format!("{name} is missing"));
                }
                continue;
            };
            let schema = &header["schema"];
            let value = match sent.parse::<i64>() {
                Ok(number) if schema["type"] == "integer" => Value::from(number),
                _ => Value::from(sent),
            };
            self.check_schema(schema, &value)
                .map_err(|problem| format!("{name}: {problem}"))?;
        }
        Ok(())
    }

    fn check_json(&self, answer: &Answer<'_>, schema: &Value) -> Result<(), String> {
        let Some(body) = answer.body.filter(|_| answer.method != "HEAD") else {
            return Ok(());
        };
        let value: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        self.check_schema(schema, &value)?;
        let known = self.schema("Error")["properties"]["code"]["examples"].as_array();
        match value.get("code") {
            Some(code) if !known.unwrap().contains(code) => Err(format!("{code} is not described")),
            _ => Ok(()),
        }
    }

    /// Checks a value against a schema. The error says what is wrong.
    fn check_schema(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let compile = || {
            let schema = json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "allOf": [schema],
                "components": self.json["components"],
            });
            Arc::new(jsonschema::validator_for(&schema).unwrap())
        };
        let mut schemas = self.schemas.lock().unwrap();
        let schema = Arc::clone(schemas.entry(schema.to_string()).or_insert_with(compile));
        drop(schemas);
        schema
            .validate(value)
            .map_err(|error| format!("{} at {}", error, error.instance_path()))
    }
}

impl Answer<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Reads a document.
pub(crate) fn read(document: OpenApi) -> Value {
    let documents = YamlLoader::load_from_str(document.yaml()).unwrap();
    to_json(&documents[0])
}

fn to_json(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Null => Value::Null,
        Yaml::Boolean(truth) => Value::from(*truth),
        Yaml::Integer(number) => Value::from(*number),
        Yaml::Real(number) => Value::from(number.parse::<f64>().unwrap()),
        Yaml::String(text) => Value::from(text.as_str()),
        Yaml::Array(items) => items.iter().map(to_json).collect(),
        Yaml::Hash(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, field)| (name.as_str().unwrap().to_owned(), to_json(field)))
                .collect()
        }
        Yaml::Alias(_) | Yaml::BadValue => panic!("not JSON: {yaml:?}"),
    }
}

/// Whether a path has the form of a template, such as `/v1/pets/{petId}`.
fn matches(template: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    let fits = template.split('/').all(|part| {
        let is_any = part.starts_with('{');
        parts
            .next()
            .is_some_and(|sent| part == sent || (is_any && !sent.is_empty()))
    });
    fits && parts.next().is_none()
}
