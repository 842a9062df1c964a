//! An OpenAPI document, and its checks of responses.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
};

use jsonschema::Validator;
use petstore_mock::OpenApi;
use serde_json::{Map, Value, json};

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
        let json = serde_json::from_str(document.json()).unwrap();
        Self {
            json,
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

    /// Checks a response. The error says what is wrong.
    pub(super) fn check(&self, answer: &Answer<'_>) -> Result<(), String> {
        let Some((template, item)) = self.paths().find(|(path, _)| matches(path, answer.path))
        else {
            return self.check_error(answer, &[404, 429]);
        };
        let asked = if answer.method == "HEAD" {
            "GET"
        } else {
            answer.method
        };
        // Methods are case-sensitive: `get` is not `GET`.
        let Some(method) = item.keys().find(|method| method.to_uppercase() == asked) else {
            return self.check_error(answer, &[401, 404, 405, 429]);
        };
        let place = |text: &str| text.replace('~', "~0").replace('/', "~1");
        let path = place(template.strip_prefix(self.base).unwrap_or(&template));
        let pointer = format!("/paths/{path}/{method}/responses/{}", answer.status);
        let pointer = self
            .resolve(pointer)
            .ok_or("a status that is not described")?;
        self.check_headers(answer, &pointer)?;
        self.check_body(answer, &pointer)
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
        self.check_json(answer, "/components/schemas/Error")
    }

    fn check_headers(&self, answer: &Answer<'_>, response: &str) -> Result<(), String> {
        let headers = self.json.pointer(&format!("{response}/headers"));
        for name in headers
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
        {
            let pointer = self
                .resolve(format!("{response}/headers/{name}"))
                .ok_or("a bad $ref")?;
            let sent = answer.header(&name.to_lowercase());
            match sent {
                None if self.json.pointer(&format!("{pointer}/required")) == Some(&true.into()) => {
                    return Err(format!("{name} is missing"));
                }
                None => {}
                Some(sent) => {
                    let schema = format!("{pointer}/schema");
                    let is_number = self.json.pointer(&format!("{schema}/type"))
                        == Some(&Value::from("integer"));
                    let value = match sent.parse::<i64>() {
                        Ok(number) if is_number => number.into(),
                        _ => sent.into(),
                    };
                    self.check_schema(&schema, &value)
                        .map_err(|it| format!("{name}: {it}"))?;
                }
            }
        }
        Ok(())
    }

    fn check_body(&self, answer: &Answer<'_>, response: &str) -> Result<(), String> {
        let content = self.json.pointer(&format!("{response}/content"));
        let sent = answer.header("content-type");
        let Some(content) = content.and_then(Value::as_object) else {
            let empty = answer.body.is_none_or(<[u8]>::is_empty);
            return match empty {
                true => Ok(()),
                false => Err("a body that is not described".to_owned()),
            };
        };
        let media_type = sent.filter(|sent| content.contains_key(*sent));
        let media_type = media_type.ok_or_else(|| format!("{sent:?} is no media type of it"))?;
        if media_type != "application/json" || answer.method == "HEAD" {
            return Ok(());
        }
        self.check_json(
            answer,
            &format!("{response}/content/application~1json/schema"),
        )
    }

    fn check_json(&self, answer: &Answer<'_>, schema: &str) -> Result<(), String> {
        let Some(body) = answer.body.filter(|_| answer.method != "HEAD") else {
            return Ok(());
        };
        let value: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        self.check_schema(schema, &value)?;
        let Some(code) = value.get("code").and_then(Value::as_str) else {
            return Ok(());
        };
        let known = self
            .json
            .pointer("/components/schemas/Error/properties/code/examples");
        let known = known.and_then(Value::as_array).unwrap();
        if known.contains(&code.into()) {
            Ok(())
        } else {
            Err(format!("{code} is not described"))
        }
    }

    /// Checks a value against the schema at a place. The error says what is wrong.
    fn check_schema(&self, pointer: &str, value: &Value) -> Result<(), String> {
        // A fragment of a URI has no braces (RFC 3986, section 3.5).
        let fragment = pointer.replace('{', "%7B").replace('}', "%7D");
        let compile = || {
            let schema = json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$ref": format!("#{fragment}"),
                "paths": self.json["paths"], "components": self.json["components"],
            });
            Arc::new(jsonschema::validator_for(&schema).unwrap())
        };
        let mut schemas = self.schemas.lock().unwrap();
        let schema = Arc::clone(schemas.entry(pointer.to_owned()).or_insert_with(compile));
        drop(schemas);
        schema
            .validate(value)
            .map_err(|error| format!("{} at {}", error, error.instance_path()))
    }

    /// Follows a `$ref` at a pointer, and returns the pointer to its target.
    fn resolve(&self, pointer: String) -> Option<String> {
        let target = self.json.pointer(&pointer)?;
        Some(match target.get("$ref").and_then(Value::as_str) {
            Some(reference) => reference.strip_prefix('#')?.to_owned(),
            None => pointer,
        })
    }
}

impl Answer<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(it, _)| *it == name)
            .map(|(_, value)| *value)
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
