//! Tests of the proxy in front of services that keep the contract, break it, send long bodies, are
//! slow, or are dead.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, Command, Stdio},
    time::Duration,
};

use petstore_mock::{Effect, MockServer, Operation, Pattern, Plan};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

const TIMEOUT: Duration = Duration::from_secs(60);

const RATES: &str =
    "X-RateLimit-Limit: 60\r\nX-RateLimit-Remaining: 59\r\nX-RateLimit-Reset: 1900000000\r\n";

const BINARY: &str = env!("CARGO_BIN_EXE_petstore-mock");

const JSON: &str = "Content-Type: application/json\r\n";

const REX: &str = r#"{"id":7,"name":"Rex","categoryId":7}"#;

/// Serves these responses, one per connection. Returns the base URL, and a channel of the requests.
async fn service(responses: Vec<String>) -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/base/v1", listener.local_addr().unwrap());
    let (tell, seen) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        for response in responses {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.windows(4).any(|part| part == b"\r\n\r\n") {
                let mut buffer = [0; 4096];
                let read = stream.read(&mut buffer).await.unwrap();
                request.extend_from_slice(&buffer[..read]);
            }
            tell.send(String::from_utf8(request).unwrap()).unwrap();
            stream.write_all(response.as_bytes()).await.unwrap();
            let _ = stream.shutdown().await;
        }
    });
    (url, seen)
}

/// A response that ends with its connection.
fn response(status: &str, fields: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{fields}\r\n{body}",
        body.len()
    )
}

async fn proxy(url: &str) -> MockServer {
    MockServer::builder()
        .upstream(url, TIMEOUT)
        .start()
        .await
        .unwrap()
}

async fn get(proxy: &MockServer, path: &str) -> (u16, String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client
        .get(format!("{}{path}", proxy.origin()))
        .bearer_auth("s3cr3t-key-of-service");
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test]
async fn forwards_requests_and_journals_them_with_masked_keys() {
    let real = MockServer::start().await;
    let proxy = proxy(real.url()).await;
    let client = reqwest::Client::builder()
        .no_proxy()
        .user_agent("test/1")
        .build()
        .unwrap();
    let list = client
        .get(format!("{}/pets?limit=2", proxy.url()))
        .bearer_auth("free-key");
    let answer = list.send().await.unwrap();
    assert_eq!(answer.headers()["x-ratelimit-remaining"], "59");
    assert_eq!(answer.headers().get_all("date").iter().count(), 1);
    let pets: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!(pets.as_array().unwrap().len(), 2);
    let added = client
        .post(format!("{}/pets", proxy.url()))
        .bearer_auth("free-key")
        .header("content-type", "application/json")
        .body(r#"{"name": "Rex", "categoryId": 7}"#);
    assert_eq!(added.send().await.unwrap().status(), 201);
    assert_eq!(real.pets().len(), 26);
    // The service decides about keys.
    assert_eq!(get(&proxy, "/v1/pets").await.0, 401);
    let requests = proxy.requests(..);
    assert_eq!(requests[0].headers["authorization"], "Bearer ***");
    assert_eq!(
        requests.iter().map(|one| one.status).collect::<Vec<_>>(),
        [Some(200), Some(201), Some(401)]
    );
    assert!(
        proxy.service_report().is_kept(),
        "{}",
        proxy.service_report()
    );
    assert_eq!(proxy.service_report().responses, 3);
    assert_eq!(get(&proxy, "/nowhere").await.0, 404);
    assert_eq!(get(&proxy, "/_mock/health").await.0, 200);
    assert_eq!(real.requests(Pattern::any().path("/nowhere")).len(), 0);
}

#[tokio::test]
async fn a_service_without_a_date_keeps_its_own_headers() {
    let rates = RATES.replace("Remaining: 59", "Remaining: 7");
    let fields = format!("{JSON}{rates}Deprecation: @1\r\n");
    let (service, _seen) = service(vec![response("200 OK", &fields, REX)]).await;
    let proxy = proxy(&service).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client
        .get(format!("{}/pets/7", proxy.url()))
        .bearer_auth("k");
    let answer = answer.send().await.unwrap();
    let count = |name| answer.headers().get_all(name).iter().count();
    assert_eq!(answer.headers()["x-ratelimit-remaining"], "7");
    assert_eq!(answer.headers()["deprecation"], "@1");
    assert_eq!((count("date"), count("sunset"), count("link")), (1, 0, 0));
}

#[tokio::test]
async fn a_proxy_lists_only_the_keys_that_it_has_seen() {
    let real = MockServer::start().await;
    let proxy = proxy(real.url()).await;
    assert!(proxy.keys().all().is_empty());
    get(&proxy, "/v1/pets").await;
    let keys = proxy.keys().all();
    let keys: Vec<_> = keys.iter().map(petstore_mock::Key::as_str).collect();
    assert_eq!(keys, ["s3cr3t-key-of-service"]);
}

#[tokio::test]
async fn the_quotas_and_bans_of_the_service_are_judged() {
    let real = MockServer::builder()
        .key("k", Plan::enterprise(1, 100))
        .start()
        .await
        .unwrap();
    let proxy = proxy(real.url()).await;
    let client = reqwest::Client::builder()
        .no_proxy()
        .user_agent("test/1")
        .build()
        .unwrap();
    for status in [200, 429, 429, 429] {
        let list = client.get(format!("{}/pets", proxy.url())).bearer_auth("k");
        let answer = list.send().await.unwrap();
        assert_eq!(answer.status(), status);
        answer.bytes().await.unwrap();
    }
    let report = proxy.report().to_text();
    assert!(
        report.contains("[told-to-wait]") || report.contains("violation"),
        "{report}"
    );
    // The mock does not know the key's plan.
    assert!(report.contains("[told-to-wait]  #1: "), "{report}");
}

#[tokio::test]
async fn ten_ways_to_break_the_contract_are_reported_apart() {
    let ok = |body: &str| response("200 OK", &format!("{JSON}{RATES}"), body);
    let three = format!("[{REX},{REX},{REX}]");
    let responses = vec![
        response("204 No Content", RATES, ""),
        response(
            "200 OK",
            &format!("Content-Type: text/html\r\n{RATES}"),
            "[]",
        ),
        ok("[{"),
        ok(r#"[{"id":"7","name":"Rex","categoryId":7}]"#),
        ok(r#"[{"id":7,"name":"Rex","categoryId":7,"status":"lost"}]"#),
        response(
            "401 Unauthorized",
            &format!("{JSON}{RATES}"),
            r#"{"code":"x","message":"y","status":403}"#,
        ),
        response(
            "200 OK",
            &format!(
                "{JSON}{}",
                RATES.replace("X-RateLimit-Reset: 1900000000\r\n", "")
            ),
            "[]",
        ),
        response(
            "429 Too Many Requests",
            &format!("{JSON}{RATES}"),
            r#"{"code":"x","message":"y","status":429}"#,
        ),
        ok(&three),
        ok(&format!("[{REX}]")),
        ok(&REX.replace('7', "8")),
    ];
    let count = responses.len() as u64;
    let (url, mut seen) = service(responses).await;
    let proxy = proxy(&url).await;
    for _ in 0..8 {
        get(&proxy, "/v1/pets").await;
    }
    get(&proxy, "/v1/pets?limit=2").await;
    get(&proxy, "/v1/pets?status=sold").await;
    get(&proxy, "/v1/pets/7").await;
    let report = proxy.service_report();
    assert_eq!(report.responses, count);
    let terms: Vec<_> = report
        .breaches
        .iter()
        .map(|breach| (&*breach.term, breach.count))
        .collect();
    let expected = [
        ("status", 1),
        ("content-type", 1),
        ("json", 1),
        ("schema", 2),
        ("error-status", 1),
        ("rate-headers", 1),
        ("retry-after", 1),
        ("limit", 1),
        ("filter", 1),
        ("other-pet", 1),
    ];
    assert_eq!(terms, expected, "{report}");
    assert!(
        report
            .to_string()
            .contains("#8 GET /v1/pets: a 429 without Retry-After"),
        "{report}"
    );
    let request = seen.recv().await.unwrap();
    assert!(
        request.starts_with("GET /base/v1/pets HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("authorization: Bearer s3cr3t-key-of-service\r\n"),
        "{request}"
    );
    assert!(!report.to_string().contains("s3cr3t"));
}

#[tokio::test]
async fn what_the_service_broke_is_reported_until_it_is_cleared() {
    let (url, _seen) = service(vec![response(
        "202 Accepted",
        &format!("{JSON}{RATES}"),
        "[]",
    )])
    .await;
    let proxy = proxy(&url).await;
    get(&proxy, "/v1/pets").await;
    let example = "#1 GET /v1/pets: 202 Accepted is not a status of listPets";
    let report = proxy.service_report().to_string();
    assert!(report.contains(example), "{report}");
    assert!(
        proxy.report().is_compliant(),
        "the client did nothing wrong"
    );
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let cleared = client.delete(format!("{}/_mock/report", proxy.origin()));
    assert_eq!(cleared.send().await.unwrap().status(), 204);
    assert!(proxy.service_report().is_kept());
    assert_eq!(proxy.service_report().responses, 0);
}

#[tokio::test]
async fn faults_hit_proxied_requests() {
    let real = MockServer::start().await;
    let proxy = proxy(real.url()).await;
    let busy = proxy
        .faults()
        .on(Operation::ListPets)
        .first(1)
        .apply(Effect::status(503));
    assert_eq!(get(&proxy, "/v1/pets").await.0, 503);
    assert_eq!(get(&proxy, "/v1/pets").await.0, 401);
    assert_eq!((busy.hits(), real.requests(..).len()), (1, 1));
}

#[tokio::test]
async fn a_dead_service_is_502_and_a_slow_one_504() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let slow = MockServer::builder()
        .upstream(&url, Duration::from_millis(50))
        .start()
        .await
        .unwrap();
    let (status, body) = get(&slow, "/v1/pets").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (status, &body["code"], &body["status"]),
        (504, &json!("gateway_timeout"), &json!(504))
    );
    drop(listener);
    let dead = proxy(&url).await;
    let (status, body) = get(&dead, "/v1/pets").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (status, &body["code"], &body["status"]),
        (502, &json!("bad_gateway"), &json!(502))
    );
    assert_eq!(dead.requests(..)[0].status, Some(502));
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[".to_owned();
    let (url, _seen) = service(vec![cut]).await;
    assert_eq!(get(&proxy(&url).await, "/v1/pets").await.0, 502);
}

#[tokio::test]
async fn long_bodies_and_streams_are_passed_on() {
    let long = "x".repeat(9 << 20);
    let (url, _seen) = service(vec![response("200 OK", RATES, &long)]).await;
    let long_service = proxy(&url).await;
    assert_eq!(get(&long_service, "/v1/pets").await.1.len(), long.len());
    assert!(long_service.requests(..)[0].answered);
    // The start of a response that never ends arrives.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    });
    let proxy = proxy(&url).await;
    let mut answer = reqwest::get(format!("{}/events", proxy.url()))
        .await
        .unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "hello");
    serving.abort();
}

#[tokio::test]
async fn a_redirect_is_passed_on_so_that_the_key_stays_here() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let location = format!("Location: http://{}/\r\n", elsewhere.local_addr().unwrap());
    let (url, _seen) = service(vec![response("302 Found", &location, "")]).await;
    let proxy = proxy(&url).await;
    let client = reqwest::Client::builder().no_proxy();
    let client = client
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let answer = client
        .get(format!("{}/pets", proxy.url()))
        .bearer_auth("k")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 302);
    let reached = tokio::time::timeout(Duration::from_millis(1), elsewhere.accept()).await;
    assert!(reached.is_err());
}

#[tokio::test]
async fn an_invalid_base_url_is_an_error() {
    for url in ["", "petstore.example", "http://user:s3cr3t@x/v1"] {
        let error = MockServer::builder()
            .upstream(url, TIMEOUT)
            .start()
            .await
            .unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("base URL") && !error.contains("s3cr3t"),
            "{error}"
        );
    }
}

/// A running `petstore-mock`. It is killed if the test fails.
struct Program {
    child: Child,
    url: String,
}

impl Program {
    fn start(command: &mut Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let url = line
            .trim_end()
            .trim_start_matches("listening on ")
            .to_owned();
        Self { child, url }
    }

    /// Lists three pets, twice, and returns the responses.
    fn list_twice(&self) -> String {
        let address = self
            .url
            .trim_start_matches("http://")
            .trim_end_matches("/v1");
        let mut answers = String::new();
        for _ in 0..2 {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            let request = "GET /v1/pets?limit=3 HTTP/1.0\r\nUser-Agent: a\r\n\
                           Authorization: Bearer free-key\r\n\r\n";
            stream.write_all(request.as_bytes()).unwrap();
            stream.read_to_string(&mut answers).unwrap();
        }
        assert!(
            answers.contains(" 200 OK") && answers.contains(" 503 "),
            "{answers}"
        );
        answers
    }

    /// Stops it, and returns its status and messages.
    fn stop(mut self) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        Command::new("kill")
            .args(["-s", "TERM", &pid])
            .status()
            .unwrap();
        let mut err = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        (self.child.wait().unwrap().code(), err)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // If the test passed, the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_report_command_fails_if_the_service_broke_its_contract() {
    let real = MockServer::start_blocking();
    let judged = |url: &str| {
        let mut report = Command::new(BINARY);
        let output = report.args(["report", url, "--fail-on-service"]).output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let problem = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said, problem)
    };
    let proxy = MockServer::builder()
        .upstream(real.url(), TIMEOUT)
        .start_blocking()
        .unwrap();
    let list = || {
        let address = proxy.origin().trim_start_matches("http://");
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let request = b"GET /v1/pets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    };
    let (status, _, problem) = judged(proxy.origin());
    assert_eq!(status, Some(3), "{problem}");
    assert!(
        problem.contains("no response of the service was checked"),
        "{problem}"
    );
    list();
    assert_eq!(judged(proxy.origin()).0, Some(0), "it kept its contract");
    let teapot = Effect::status(418);
    let _fault = real.faults().on(Operation::ListPets).apply(teapot);
    list();
    let (status, said, _) = judged(proxy.origin());
    assert_eq!(status, Some(3), "{said}");
    assert!(
        said.contains("\nservice: contract broken, 2 responses checked"),
        "{said}"
    );

    let (status, _, problem) = judged(real.origin());
    assert_eq!(status, Some(1), "{problem}");
    assert!(
        problem.contains("only `petstore-mock proxy` checks one"),
        "{problem}"
    );
}

/// Returns the pets in responses, as JSON.
fn pets(answers: &str) -> &str {
    let start = answers.find("[{").unwrap();
    let end = answers[start..].find("}]").unwrap();
    &answers[start..start + end]
}

/// Runs `proxy` in front of a service over TLS, and records it.
#[test]
fn the_program_records_a_service_with_a_system_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let fault = r#"[{"operation": "listPets", "when": {"nth": 2}, "effect": {"status": 503}}]"#;
    std::fs::write(path("faults.json"), fault).unwrap();
    let mut command = Command::new(BINARY);
    command
        .args(["--port", "0", "--tls", "--tls-ca-file"])
        .arg(path("ca.pem"));
    let real = Program::start(command.arg("--faults").arg(path("faults.json")));
    let mut command = Command::new(BINARY);
    command
        .args([
            "proxy",
            "--port",
            "0",
            "--fail-on-service",
            "--upstream",
            &real.url,
        ])
        .arg("--record")
        .arg(path("recording.json"))
        .arg("--report")
        .arg(path("report.json"));
    let proxy = Program::start(command.env("SSL_CERT_FILE", path("ca.pem")));
    let answers = proxy.list_twice();
    let (status, err) = proxy.stop();
    assert_eq!(status, Some(0), "{err}");
    let kept = "petstore-mock: service: contract kept, 2 responses checked\n";
    assert!(err.starts_with(kept), "{err}");
    assert_eq!(real.stop().0, Some(0));
    let report = std::fs::read(path("report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["service"], json!({"responses": 2, "breaches": []}));
    // The recording is a seed and a list of faults.
    let mut command = Command::new(BINARY);
    command
        .args(["--port", "0", "--seed"])
        .arg(path("recording.json"));
    let again = Program::start(command.arg("--faults").arg(path("recording.json")));
    assert_eq!(pets(&again.list_twice()), pets(&answers));
    again.stop();
}
