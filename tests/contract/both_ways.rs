//! `openapi.yaml`, the one description of the service, in both directions: the mock, the client and
//! the command line have each operation, parameter, field, status and header that it describes, and
//! it describes each that they have.

use std::collections::BTreeSet;
use std::time::Duration;

use petstore_client::bytes::Bytes;
use petstore_client::http::{Method, Request};
use petstore_client::limits::QuotaWindow;
use petstore_client::{Client, Error, ErrorKind, NewPet, Pet, PetStatus, RequestOptions};
use petstore_mock::{MockServer, Operation, Plan, Seed, SeedPet};
use serde_json::{Map, Value, json};

use super::{START, client, frozen, watched};
use crate::cli::Petstore;
use crate::client::at;
use crate::openapi::Watched;
use crate::openapi::document::{ADMINISTRATION, Document, SERVICE};

/// An operation of the document.
struct Described {
    id: String,
    method: Method,
    /// From the root, such as `/v1/pets/{petId}`.
    path: String,
    /// The names of the parameters of the query, and those of the path.
    query: BTreeSet<String>,
    in_path: BTreeSet<String>,
    /// The statuses of its responses, each with the names of its headers in lower case.
    responses: Vec<(u16, BTreeSet<String>)>,
}

/// Returns the operations of `openapi.yaml`.
fn operations() -> Vec<Described> {
    let mut all = Vec::new();
    for (path, item) in SERVICE.paths() {
        for (method, operation) in item {
            all.push(Described::new(&path, method, operation));
        }
    }
    all
}

impl Described {
    fn new(path: &str, method: &str, operation: &Value) -> Self {
        let parameters = operation["parameters"].as_array();
        let named = |place: &str| {
            let parameters = parameters.into_iter().flatten();
            let there = parameters.filter(|one| one["in"] == place);
            let names = there.map(|one| one["name"].as_str().unwrap().to_owned());
            names.collect()
        };
        let mut responses = Vec::new();
        for (status, response) in operation["responses"].as_object().unwrap() {
            let headers = SERVICE.target(response)["headers"].as_object().unwrap();
            let names = headers.keys().map(|name| name.to_lowercase());
            responses.push((status.parse().unwrap(), names.collect()));
        }
        Self {
            id: operation["operationId"].as_str().unwrap().to_owned(),
            method: method.to_uppercase().parse().unwrap(),
            path: path.to_owned(),
            query: named("query"),
            in_path: named("path"),
            responses,
        }
    }
}

/// Returns the names of a schema's fields.
fn fields<'a>(document: &'a Document, schema: &str) -> Vec<&'a str> {
    keys(document.schema(schema)["properties"].as_object().unwrap())
}

fn keys(object: &Map<String, Value>) -> Vec<&str> {
    object.keys().map(String::as_str).collect()
}

/// What the client and the command line have for an operation, with every parameter.
struct Offered {
    id: &'static str,
    request: fn(&Client) -> Result<Request<Bytes>, Error>,
    command: &'static str,
}

#[expect(deprecated, reason = "part of the contract until 2030")]
const OFFERED: [Offered; 4] = [
    Offered {
        id: "listPets",
        request: |client| {
            let list = client.pets().list();
            list.limit(2).status(PetStatus::Sold).build()
        },
        command: "pets list --limit 2 --status sold",
    },
    Offered {
        id: "createPet",
        request: |client| client.pets().create(&NewPet::new("Rex", 7)).build(),
        command: "pets create Rex --category-id 7",
    },
    Offered {
        id: "getPet",
        request: |client| client.pets().get(1).build(),
        command: "pets get 1",
    },
    Offered {
        id: "listOrders",
        request: |client| client.store().orders().build(),
        command: "store orders",
    },
];

/// Checks that a request is the operation's, with each parameter and no other.
fn assert_is(operation: &Described, method: &Method, target: &str, who: &str) {
    let id = &operation.id;
    assert_eq!(*method, operation.method, "{id}, {who}");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parts = path.split('/');
    let mut in_path = BTreeSet::new();
    assert_eq!(parts.clone().count(), operation.path.split('/').count());
    for (part, described) in parts.zip(operation.path.split('/')) {
        match described.strip_prefix('{') {
            Some(name) => {
                in_path.insert(name.trim_end_matches('}').to_owned());
            }
            None => assert_eq!(part, described, "{id}, {who}"),
        }
    }
    assert_eq!(in_path, operation.in_path, "{id}, {who}");
    let sent = url::form_urlencoded::parse(query.as_bytes());
    let names: BTreeSet<_> = sent.map(|(name, _)| name.into_owned()).collect();
    assert_eq!(names, operation.query, "the query of {id}, {who}");
}

async fn server() -> Watched {
    let pet = |number: i64| SeedPet::new(format!("pet {number}"), number);
    let sold = |number| pet(number).with_status(petstore_mock::PetStatus::Sold);
    let seed = (1..=3).fold(Seed::none(), |seed, number| seed.pet(sold(number)));
    watched(frozen(Plan::Pro).seed(seed)).await
}

#[tokio::test]
async fn every_operation_and_parameter() {
    let server = server().await;
    let client = client(&server);
    let operations = operations();
    assert_eq!(operations.len(), OFFERED.len());
    assert_eq!(operations.len(), Operation::ALL.len());

    for operation in &operations {
        let id = &operation.id;
        let of_the_mock: Operation = id.parse().unwrap();
        assert_eq!(of_the_mock.method(), operation.method);
        assert_eq!(of_the_mock.path(), operation.path);
        let offered = OFFERED.iter().find(|one| one.id == *id);
        let offered = offered.unwrap_or_else(|| panic!("{id} is not offered"));
        let request = (offered.request)(&client).unwrap();
        let target = request.uri().path_and_query().unwrap().as_str();
        assert_is(operation, request.method(), target, "by the client");

        let ran = Petstore::at(&server, "key").run(offered.command).await;
        assert_eq!(ran.code, 0, "{}: {}", offered.command, ran.stderr);
        let sent = server.requests(..).pop().unwrap();
        assert_is(operation, &sent.method, &sent.target, offered.command);
        if !operation.method.is_safe() {
            let sent = server.requests(..).len();
            let line = format!("{} --dry-run", offered.command);
            let dry = Petstore::at(&server, "key").run(&line).await;
            assert_eq!(dry.code, 0, "{line}: {}", dry.stderr);
            assert_eq!(server.requests(..).len(), sent, "{line}");
        }

        // The mock reads each parameter: a bad one is refused, by its name in a query.
        for name in &operation.query {
            let bad = client.request(operation.method.clone(), &operation.path[3..]);
            let error = bad.query(name, "@").send().await.unwrap_err();
            assert_eq!(error.code(), Some("invalid_parameter"), "{id}: {error}");
            assert!(error.message().unwrap().contains(name.as_str()), "{error}");
        }
        for name in &operation.in_path {
            let path = operation.path[3..].replace(&format!("{{{name}}}"), "@");
            let bad = client.request(operation.method.clone(), &path);
            assert_eq!(bad.send().await.unwrap_err().code(), Some("pet_not_found"));
        }
    }
}

#[tokio::test]
async fn every_field() {
    let all = Pet::FIELDS;
    assert_eq!(fields(&SERVICE, "Pet"), all);
    assert_eq!(fields(&SERVICE, "NewPet"), all[1..]);
    for schema in ["Pet", "SeedPet"] {
        assert_eq!(fields(&ADMINISTRATION, schema), all);
    }
    let guide = include_str!("../../petstore-mock/guide/specification.md");
    for field in all {
        let row = format!("\n| `{field}` | ");
        assert!(guide.contains(&row), "{field} in specification.md");
    }

    let server = server().await;
    let command = "pets create Rex --category-id 7 --status pending -o json";
    let created = Petstore::at(&server, "key").run(command).await;
    let created: Map<String, Value> = serde_json::from_str(&created.stdout).unwrap();
    assert_eq!(keys(&created), all, "by the command line");
    let new = NewPet::new("Rex", 7).with_status(PetStatus::Pending);
    let created = client(&server).pets().create(&new).await.unwrap();
    assert_eq!(created, new.into_pet(5), "by the client");
    for exchange in server.requests(..) {
        let sent: Map<String, Value> = serde_json::from_slice(&exchange.body).unwrap();
        assert_eq!(keys(&sent), all[1..], "a request");
        let pet: Map<String, Value> = serde_json::from_slice(&exchange.reply_body).unwrap();
        assert_eq!(keys(&pet), all, "by the mock");
    }

    let known: Vec<_> = PetStatus::KNOWN.iter().map(PetStatus::as_str).collect();
    let statuses = &SERVICE.schema("PetStatus")["enum"];
    assert_eq!(*statuses, json!(known), "in the client");
    for status in known {
        let parsed = status.parse::<petstore_mock::PetStatus>();
        assert!(parsed.is_ok(), "{status} in the mock");
        let line = format!("pets list --status {status}");
        let listed = Petstore::at(&server, "key").run(&line).await;
        assert_eq!(listed.code, 0, "{line}: {}", listed.stderr);
    }

    let error = Client::builder(server.url())
        .api_key("mistyped")
        .build()
        .unwrap();
    let error = error.pets().list().await.unwrap_err();
    let body: Map<String, Value> = error.response().unwrap().json().unwrap();
    assert_eq!(keys(&body), fields(&SERVICE, "Error"));
    assert_eq!(error.code(), body["code"].as_str());
    assert_eq!(error.message(), body["message"].as_str());
    assert_eq!(error.status().unwrap().as_u16(), body["status"]);
}

/// Makes the mock answer with this status by what causes it, or by a fault where only a bug or a
/// full disk would. Returns the request's body.
async fn cause(server: &MockServer, operation: &Described, status: u16) -> Cause {
    let mut cause = Cause {
        key: "key",
        target: operation.path[3..].replace("{petId}", "1"),
        content_type: "application/json",
        body: match operation.method {
            Method::POST => r#"{"name":"Rex","categoryId":7}"#.to_owned(),
            _ => String::new(),
        },
    };
    match (status, operation.method.as_str()) {
        (200 | 201, _) => {}
        (400, "GET") => cause.target += "?limit=0",
        (400, _) => cause.body = "{}".to_owned(),
        (401, _) => cause.key = "mistyped",
        (404, _) => cause.target = "/pets/99".to_owned(),
        (410, _) => server.clock().advance(Duration::from_secs(REMOVAL - START)),
        (413, _) => cause.body = format!(r#"{{"name":"{}"}}"#, "x".repeat(1 << 20)),
        (415, _) => cause.content_type = "text/plain",
        (429, _) => {
            let _first = client(server).pets().list().await;
        }
        (500 | 507, _) => drop(server.faults().on(..).status(status).detach()),
        _ => panic!("{} describes {status}: what causes it?", operation.id),
    }
    cause
}

struct Cause {
    key: &'static str,
    target: String,
    content_type: &'static str,
    body: String,
}

const REMOVAL: u64 = 1_922_659_200;

/// Returns what a status is for a program, and the exit code of the command line.
fn meaning(status: u16) -> (Option<ErrorKind>, u8) {
    match status {
        200 | 201 => (None, 0),
        400 | 413 | 415 => (Some(ErrorKind::Rejected), 4),
        401 => (Some(ErrorKind::Unauthorized), 3),
        404 => (Some(ErrorKind::NotFound), 9),
        410 => (Some(ErrorKind::Gone), 9),
        429 => (Some(ErrorKind::RateLimited), 7),
        500 | 507 => (Some(ErrorKind::Server), 5),
        _ => panic!("{status}: what does it mean?"),
    }
}

/// A server with one request a minute where the quota is to be exceeded.
async fn server_for(status: u16) -> Watched {
    let plan = match status {
        429 => Plan::enterprise(1, 1_000),
        _ => Plan::Pro,
    };
    let pets = (1..=21).fold(Seed::none(), |seed, number| {
        seed.pet(SeedPet::new("Rex", number))
    });
    watched(frozen(plan).seed(pets)).await
}

#[tokio::test]
async fn every_status_and_header() {
    let mut seen = BTreeSet::new();
    for operation in operations() {
        for (status, described) in &operation.responses {
            let server = server_for(*status).await;
            let cause = cause(&server, &operation, *status).await;
            let (kind, exit) = meaning(*status);
            let what = format!("{} {status}", operation.id);

            let client = Client::builder(server.url())
                .api_key(cause.key)
                .isolated_limits()
                .options(&RequestOptions::new().max_attempts(1))
                .build()
                .unwrap();
            let mut request = client.request(operation.method.clone(), &cause.target);
            if !cause.body.is_empty() {
                request = request.body(cause.content_type, cause.body.clone());
            }
            let headers = match request.send().await {
                Ok(response) => {
                    assert_eq!(response.status().as_u16(), *status, "{what}");
                    assert_eq!(None, kind, "{what}");
                    response.meta.headers().clone()
                }
                Err(error) => {
                    assert_eq!(error.status().unwrap().as_u16(), *status, "{what}: {error}");
                    assert_eq!(Some(error.kind()), kind, "{what}: {error}");
                    error.response().unwrap().headers().clone()
                }
            };
            let is_of_http = |name: &str| HTTP.contains(&name);
            let names = headers.keys().map(|name| name.as_str().to_owned());
            let sent: BTreeSet<_> = names.filter(|name| !is_of_http(name)).collect();
            assert_eq!(sent, *described, "the headers of {what}");
            seen.extend(described.iter().cloned());

            let mut command = format!("api -X {} {}", operation.method, cause.target);
            if !cause.body.is_empty() {
                command += &format!(" -H content-type:{} -d @-", cause.content_type);
            }
            let program = Petstore::at(&server, cause.key).stdin(&cause.body);
            let command = format!("{command} --retries 0 --max-wait 0");
            let ran = program.run(&command).await;
            assert_eq!(ran.code, exit, "{what}: {}", ran.stderr);
        }
    }
    let mut read = read_by_the_client().await;
    // A created pet has its id, and a 401 its own kind: programs find these among the headers.
    read.extend(["location", "www-authenticate"].map(str::to_owned));
    assert_eq!(seen, read);
}

/// Headers that OpenAPI leaves to HTTP.
const HTTP: [&str; 6] = [
    "allow",
    "connection",
    "content-length",
    "content-type",
    "date",
    "vary",
];

/// Returns the service's headers that the client reads, after a look at what it makes of each.
#[expect(deprecated, reason = "part of the contract until 2030")]
async fn read_by_the_client() -> BTreeSet<String> {
    let server = server_for(200).await;
    let page = client(&server).pets().list().with_meta().await.unwrap();
    let quota = QuotaWindow::of(page.meta.headers()).unwrap();
    assert_eq!((quota.limit, quota.remaining), (300, 299));
    assert_eq!(quota.reset, at(START + 60));
    assert_eq!(page.value.has_more(), Some(true), "Link");

    let pet = client(&server).pets().get(1).with_meta().await.unwrap();
    let end = pet.meta.deprecation().unwrap();
    assert_eq!(end.since(), Some(at(1_764_892_800)), "Deprecation");
    assert_eq!(end.sunset(), Some(at(REMOVAL)), "Sunset");
    assert_eq!(end.replacement(), Some("/v1/pets"), "Link");

    let server = server_for(429).await;
    client(&server).pets().list().await.unwrap();
    let once = RequestOptions::new().max_attempts(1);
    let again = client(&server).with_options(&once);
    let refused = again.pets().list().await.unwrap_err();
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(60)));

    let read = [
        "deprecation",
        "link",
        "retry-after",
        "sunset",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ];
    read.map(str::to_owned).into()
}
