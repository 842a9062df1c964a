//! The documents the mock serves.

use petstore_mock::{
    OpenApi::{Administration, Service},
    Operation,
};
use reqwest::Method;
use serde_json::Value;

use super::support::start;
use crate::openapi::document::{ADMINISTRATION, SERVICE};

#[tokio::test]
async fn both_documents_are_served_as_yaml_and_as_json() {
    let mock = start().await;
    for (document, name) in [(Service, "openapi"), (Administration, "admin")] {
        let yaml = mock.get(&format!("/_mock/{name}.yaml")).await;
        assert_eq!(
            (yaml.status, yaml.header("content-type")),
            (200, "application/yaml")
        );
        assert_eq!(yaml.body, document.yaml());
        let json = mock.get(&format!("/_mock/{name}.json")).await.json();
        assert_eq!(json["openapi"], "3.1.0");
        let paths = json["paths"].as_object().unwrap();
        for path in paths.keys() {
            assert!(yaml.body.contains(&format!("\n  {path}:\n")), "{path}");
        }
    }
}

#[test]
fn a_listing_accepts_every_described_parameter_and_no_other() {
    // A cursor has no such description, because the mock accepts only cursors that it created.
    let document: Value = serde_json::from_str(Service.json()).unwrap();
    let parameters = document["paths"]["/pets"]["get"]["parameters"]
        .as_array()
        .unwrap();
    let names: Vec<_> = parameters
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["limit", "status"]);
}

#[tokio::test]
async fn each_path_of_the_contract_takes_its_described_methods() {
    let mock = start().await;
    for document in [&SERVICE, &ADMINISTRATION] {
        for (path, item) in document.paths() {
            let path = path.replace("{petId}", "1").replace("{id}", "1");
            let probe = Method::from_bytes(b"PROPFIND").unwrap();
            let reply = super::support::reply(mock.request(probe, &path)).await;
            reply.expect_error(405, "method_not_allowed");
            let mut described: Vec<_> = item
                .keys()
                .filter(|name| *name != "parameters")
                .map(|name| name.to_uppercase())
                .collect();
            if described.contains(&"GET".to_owned()) {
                described.push("HEAD".to_owned());
            }
            described.sort();
            let mut taken: Vec<_> = reply
                .header("allow")
                .split(", ")
                .map(str::to_owned)
                .collect();
            taken.sort();
            assert_eq!(taken, described, "{path}");
        }
    }
}

#[test]
fn the_contract_has_exactly_the_existing_operations() {
    let mut described: Vec<_> = SERVICE
        .paths()
        .flat_map(|(_, item)| {
            item.values()
                .map(|operation| operation["operationId"].clone())
        })
        .collect();
    let mut there: Vec<_> = Operation::ALL
        .iter()
        .map(|it| Value::from(it.name()))
        .collect();
    described.sort_by_key(Value::to_string);
    there.sort_by_key(Value::to_string);
    assert_eq!(described, there);
    let administration: Value = serde_json::from_str(Administration.json()).unwrap();
    let mut named = administration["components"]["schemas"]["Operation"]["enum"].clone();
    named.as_array_mut().unwrap().sort_by_key(Value::to_string);
    assert_eq!(named, Value::from(there));
}

#[test]
fn every_assumption_of_the_contract_is_marked_as_one() {
    // Parts of the mock that the specification does not mention at all.
    let contract: Value = serde_json::from_str(Service.json()).unwrap();
    for place in [
        "/paths/~1pets/get",
        "/paths/~1pets/post/responses/201/headers/Location",
        "/paths/~1pets~1{petId}/get/responses/410",
        "/paths/~1store~1orders/get",
        "/components/responses/InvalidParameter",
        "/components/responses/PayloadTooLarge",
        "/components/responses/UnsupportedMediaType",
        "/components/responses/InternalError",
        "/components/headers/Deprecation",
        "/components/headers/WWW-Authenticate",
        "/components/schemas/Error/properties/code",
    ] {
        let marked = contract.pointer(place).expect(place).get("x-assumption");
        assert!(
            marked.is_some_and(|text| text.as_str().is_some_and(|it| it.len() > 10)),
            "{place}"
        );
    }
}

#[test]
fn generators_accept_the_documents() {
    for document in [Service, Administration] {
        let text = document.json();
        assert!(
            !text.contains("prefixItems") && !text.contains("\"items\":false"),
            "{document:?}"
        );
        for reference in text.split("\"$ref\":\"").skip(1) {
            let reference = reference.split('"').next().unwrap();
            assert_eq!(
                reference.split('/').count(),
                4,
                "{reference} is not a component"
            );
        }
        check_alternatives(&serde_json::from_str(text).unwrap());
    }
}

/// Checks that string alternatives in a schema have a type and a name. Otherwise
/// openapi-generator fails.
fn check_alternatives(schema: &Value) {
    for (name, part) in schema.as_object().into_iter().flatten() {
        let is_choice = ["oneOf", "anyOf"].contains(&name.as_str());
        let alternatives = part.as_array().filter(|_| is_choice);
        for text in alternatives.into_iter().flatten() {
            let is_text = text.get("const").or(text.get("enum")).is_some();
            let is_named = text["type"] == "string" && text["title"].is_string();
            assert!(!is_text || is_named, "{text} has no name");
        }
        check_alternatives(part);
    }
    schema
        .as_array()
        .into_iter()
        .flatten()
        .for_each(check_alternatives);
}
