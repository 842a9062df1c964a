//! The documents the mock serves.

use std::collections::BTreeSet;

use petstore_mock::{
    OpenApi::{Administration, Service},
    Operation,
};
use serde_json::Value;

use super::support::start;
use crate::openapi::document::{ADMINISTRATION, SERVICE, read};

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

#[test]
fn every_assumption_of_the_contract_is_marked_as_one() {
    // Parts of the mock that the specification does not mention at all.
    let contract = read(Service);
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
        let marked = &contract.pointer(place).expect(place)["x-assumption"];
        assert!(marked.as_str().is_some_and(|it| it.len() > 10), "{place}");
    }
}
