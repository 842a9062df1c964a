//! The documents the mock serves.

use std::collections::BTreeSet;

use petstore_mock::{
    OpenApi::{Administration, Service},
    Operation,
};
use serde_json::{Value, json};

use super::support::start;
use crate::openapi::document::{ADMINISTRATION, SERVICE};

#[tokio::test]
async fn both_documents_are_served() {
    let mock = start().await;
    for (document, name) in [(Service, "openapi"), (Administration, "admin")] {
        let yaml = mock.get(&format!("/_mock/{name}.yaml")).await;
        assert_eq!(yaml.header("content-type"), "application/yaml");
        assert_eq!(yaml.body, document.yaml());
    }
}

#[tokio::test]
async fn each_path_of_the_documents_takes_its_described_methods() {
    let mock = start().await;
    for document in [&SERVICE, &ADMINISTRATION] {
        for (path, item) in document.paths() {
            let path = path.replace("{petId}", "1").replace("{id}", "1");
            let reply = mock.send(&format!("PROPFIND {path}"), "").await;
            reply.expect_error(405, "method_not_allowed");
            let methods = item.keys().filter(|name| *name != "parameters");
            let mut described: BTreeSet<_> = methods.map(|name| name.to_uppercase()).collect();
            if described.contains("GET") {
                described.insert("HEAD".to_owned());
            }
            let taken = reply.header("allow").split(", ");
            assert_eq!(
                taken.map(str::to_owned).collect::<BTreeSet<_>>(),
                described,
                "{path}"
            );
        }
    }
}

#[test]
fn the_administration_names_each_operation() {
    let named = &ADMINISTRATION.schema("Operation")["enum"];
    let there = Operation::ALL.iter().map(|it| Value::from(it.name()));
    assert_eq!(named, &there.collect::<Value>());
}

#[tokio::test]
async fn each_example_of_the_administration_is_accepted() {
    let mut seen = 0;
    for (path, item) in ADMINISTRATION.paths() {
        for (method, operation) in item {
            let example = &operation["requestBody"]["content"]["application/json"]["example"];
            if example.is_null() {
                continue;
            }
            seen += 1;
            let mock = start().await;
            let line = format!("{} {}", method.to_uppercase(), path.replace("{id}", "1"));
            let reply = mock.send(&line, example.to_string()).await;
            assert!(reply.status < 300, "{line} {example}: {}", reply.body);
        }
    }
    assert_eq!(seen, 9);
    // As the document says, seconds are not a date.
    let body = json!({"now": "1800000000"});
    let mock = start().await;
    let refused = mock.send("POST /_mock/clock/set", body.to_string()).await;
    refused.expect_error(400, "invalid_body");
    let mut paths = ADMINISTRATION.paths();
    let (_, set) = paths.find(|(path, _)| path == "/_mock/clock/set").unwrap();
    let schema = &set["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert!(!jsonschema::is_valid(schema, &body));
}
