//! The compliance report judges real clients: `cargo test --features real-clients --test clients`, which
//! needs curl, wget, Python with the packages of `clients.py` and Node with those of `clients.mjs`.
//! `PETSTORE_TEST_PYTHON` names the interpreter, `PETSTORE_TEST_MODULES` the folder with `node_modules`.
//!
//! Each client runs against three failing servers. The expected findings follow from its settings. Common
//! mistakes are among them, such as a loop that sends on whatever the response is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::{collections::BTreeSet, path::Path, process::Stdio, time::Duration};

use petstore_client::{Client, NewPet};
use petstore_mock::{
    Effect, FaultGuard, MockServer, Operation, Plan, RetryAfter,
    Rule::{self, BackOff, RepeatedPost, ToldToWait},
    Severity,
};
use reqwest_middleware::ClientBuilder;
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};
use tokio::process::Command;

const KEY: &str = "a-key-of-a-real-client";
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients");
const REX: &str = r#"{"name":"Rex","categoryId":7}"#;

/// The behaviour of a server.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// `GET` is answered 503.
    Outage,
    /// `GET` is answered 429 with `Retry-After: 2`, once.
    Limit,
    /// A `POST` is carried out and answered 500.
    UnknownOutcome,
}

impl Trouble {
    const ALL: [Self; 3] = [Self::Outage, Self::Limit, Self::UnknownOutcome];

    const fn method(self) -> &'static str {
        match self {
            Self::Outage | Self::Limit => "GET",
            Self::UnknownOutcome => "POST",
        }
    }

    fn begin(self, server: &MockServer) -> FaultGuard {
        let faults = server.faults();
        let limit = [
            Effect::Status(429),
            Effect::RetryAfter(RetryAfter::Seconds(2)),
        ];
        match self {
            Self::Outage => faults.on(Operation::ListPets).status(503),
            Self::Limit => faults
                .on(Operation::ListPets)
                .first(1)
                .apply(Effect::All(limit.into())),
            Self::UnknownOutcome => faults
                .on(Operation::CreatePet)
                .first(1)
                .processed(true)
                .status(500),
        }
    }
}

/// How to run a client.
#[derive(Clone, Copy, Debug)]
enum Run {
    Python,
    Node,
    Curl(&'static [&'static str]),
    /// A loop of the shell that sends on, whatever the response is.
    CurlLoop,
    Wget,
    ReqwestRetry,
    Ours,
}

/// What a client that sends on breaks with the three servers.
const MISTAKES: [&[Rule]; 3] = [&[BackOff], &[ToldToWait], &[RepeatedPost]];

/// The clients, with the rules that each breaks with the three servers.
const CLIENTS: [(&str, Run, [&[Rule]; 3]); 22] = [
    ("requests-loop", Run::Python, MISTAKES),
    ("urllib-loop", Run::Python, MISTAKES),
    ("httpx-loop", Run::Python, MISTAKES),
    ("aiohttp-loop", Run::Python, MISTAKES),
    ("fetch-loop", Run::Node, MISTAKES),
    ("axios-loop", Run::Node, MISTAKES),
    // Each process of curl takes some milliseconds, which is a pause.
    (
        "curl-loop",
        Run::CurlLoop,
        [&[], &[ToldToWait], &[RepeatedPost]],
    ),
    ("urllib3-backoff", Run::Python, [&[], &[], &[]]),
    ("urllib3-no-backoff", Run::Python, [&[BackOff], &[], &[]]),
    (
        "requests-all-methods",
        Run::Python,
        [&[], &[], &[RepeatedPost]],
    ),
    ("httpx", Run::Python, [&[], &[], &[]]),
    ("httpx-retries", Run::Python, [&[], &[], &[]]),
    ("tenacity", Run::Python, MISTAKES),
    (
        "tenacity-fixed",
        Run::Python,
        [&[], &[ToldToWait], &[RepeatedPost]],
    ),
    ("node-fetch", Run::Node, [&[], &[], &[]]),
    ("ky", Run::Node, [&[], &[], &[]]),
    (
        "fetch-retry",
        Run::Node,
        [&[], &[ToldToWait], &[RepeatedPost]],
    ),
    ("p-retry", Run::Node, MISTAKES),
    (
        "curl-retry",
        Run::Curl(&["--retry", "3"]),
        [&[], &[], &[RepeatedPost]],
    ),
    ("wget", Run::Wget, [&[], &[], &[]]),
    (
        "reqwest-retry",
        Run::ReqwestRetry,
        [&[], &[ToldToWait], &[RepeatedPost]],
    ),
    ("petstore-client", Run::Ours, [&[], &[], &[]]),
];

#[allow(
    clippy::disallowed_methods,
    reason = "the environment names the installed programs"
)]
fn program(variable: &str, default: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| default.to_owned())
}

/// Runs a client until it gets a response or gives up.
async fn run(name: &str, how: Run, method: &'static str, server: &MockServer) {
    let url = format!("{}/pets", server.url());
    let authorization = format!("Authorization: Bearer {KEY}");
    let body = ["--header", "Content-Type: application/json", "--data", REX];
    let body = if method == "POST" { &body[..] } else { &[] };
    let mut command = match how {
        Run::Python => script(&program("PETSTORE_TEST_PYTHON", "python3"), "clients.py"),
        Run::Node => script("node", "clients.mjs"),
        Run::Curl(flags) => {
            let mut curl = Command::new("curl");
            curl.args(flags);
            curl
        }
        Run::CurlLoop => {
            let line = "for n in 1 2 3 4 5 6 7 8 9; do curl \"$@\"; done";
            let mut shell = Command::new("sh");
            shell.args(["-c", line, "sh"]);
            shell
        }
        Run::Wget => Command::new("wget"),
        Run::ReqwestRetry => return reqwest_retry(method, &url).await,
        Run::Ours => return ours(method, server).await,
    };
    match how {
        Run::Curl(_) | Run::CurlLoop => {
            command.args(["--silent", "--request", method, "--header", &authorization]);
            command.args(body).arg(&url)
        }
        Run::Wget => {
            command.args(["--quiet", "--output-document=-", "--header", &authorization]);
            let body = body
                .iter()
                .map(|word| word.replace("--data", "--post-data"));
            command.args(body).arg(&url)
        }
        _ => command.args([name, method, &url]),
    };
    command.env("PETSTORE_API_KEY", KEY);
    let command = command.stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await;
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}"));
    let is_script = matches!(how, Run::Python | Run::Node);
    let is_fine = output.status.success() || !is_script;
    assert!(is_fine, "{name} cannot be run: {output:?}");
}

/// Returns the command of a script in this folder.
fn script(program: &str, file: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(Path::new(HERE).join(file));
    command
}

async fn reqwest_retry(method: &str, url: &str) {
    let bounds = (Duration::from_millis(100), Duration::from_secs(2));
    let policy = ExponentialBackoff::builder().retry_bounds(bounds.0, bounds.1);
    let retries = RetryTransientMiddleware::new_with_policy(policy.build_with_max_retries(4));
    let plain = reqwest::Client::builder().no_proxy().build().unwrap();
    let client = ClientBuilder::new(plain).with(retries).build();
    let request = client.request(method.parse().unwrap(), url);
    let request = request.header("content-type", "application/json");
    let body = if method == "POST" { REX } else { "" };
    let _ = request.bearer_auth(KEY).body(body).send().await;
}

async fn ours(method: &str, server: &MockServer) {
    let client = Client::builder(server.url()).api_key(KEY).build().unwrap();
    if method == "POST" {
        let _ = client.pets().create(&NewPet::new("Rex", 7)).await;
    } else {
        let _ = client.pets().list().send().await;
    }
}

/// Runs a client against a server. Returns the rules with a finding that fails a run, and the report.
async fn judge(name: &str, how: Run, trouble: Trouble) -> (BTreeSet<Rule>, String) {
    let server = MockServer::builder()
        .key(KEY, Plan::Pro)
        .start()
        .await
        .unwrap();
    let fault = trouble.begin(&server);
    run(name, how, trouble.method(), &server).await;
    assert!(fault.hits() > 0, "{name} sent nothing");
    fault.detach();
    let report = server.report();
    let failing = report
        .findings()
        .filter(|finding| finding.severity > Severity::Notice);
    (
        failing.map(|finding| finding.rule).collect(),
        report.to_text(),
    )
}

/// How often a client that never waits is run until its retries are quick. More runs would hide that a
/// user, who runs it once, is not told of the mistake.
const MAX_RUNS: usize = 3;

/// The report measures real pauses. A client that never waits needs 2 to 5 ms for its next request on an
/// idle machine, but sometimes more than the 8 ms of `back-off` on a busy one. So such a client may have
/// to be run again until it was quick. Nothing else depends on the speed of the machine.
#[tokio::test(flavor = "multi_thread")]
async fn real_clients_are_judged_by_what_they_do() {
    let mut wrong = String::new();
    let mut mistakes = 0;
    for (name, how, expected) in CLIENTS {
        for (trouble, expected) in Trouble::ALL.into_iter().zip(expected) {
            let expected = BTreeSet::from_iter(expected.iter().copied());
            mistakes += usize::from(!expected.is_empty());
            let mut runs = 1;
            let (mut broken, mut text) = judge(name, how, trouble).await;
            while expected.contains(&BackOff) && broken.is_empty() && runs < MAX_RUNS {
                runs += 1;
                (broken, text) = judge(name, how, trouble).await;
            }
            if runs > 1 {
                println!("{name} was quick in run {runs}");
            }
            if broken != expected {
                wrong += &format!("{name}, {trouble:?}: expected {expected:?}\n{text}\n");
            }
        }
    }
    println!("{mistakes} mistakes");
    assert!(wrong.is_empty(), "{wrong}");
}
