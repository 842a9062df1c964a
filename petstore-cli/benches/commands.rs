//! Measures commands as processes, and compares them with `curl` if it is installed.
//!
//! `cargo bench -p petstore-cli`

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use divan::Bencher;
use petstore_mock::{MockServer, Plan};

fn main() {
    divan::main();
}

/// The program, without the user's environment.
fn petstore() -> Command {
    let mut petstore = Command::new(env!("CARGO_BIN_EXE_petstore"));
    petstore.env_clear().env("PETSTORE_LIMITS_STORE", "off");
    petstore
}

fn run(command: &mut Command) {
    let ran = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    assert!(ran.status().unwrap().success(), "{command:?}");
}

fn server() -> MockServer {
    let plan = Plan::enterprise(1_000_000_000, 1_000_000_000);
    MockServer::builder()
        .key("bench-key", plan)
        .start_blocking()
        .unwrap()
}

#[divan::bench]
fn version(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| run(petstore().arg("--version")));
}

#[divan::bench]
fn pets_list(bencher: Bencher<'_, '_>) {
    let server = server();
    let set = [
        ("PETSTORE_BASE_URL", server.url()),
        ("PETSTORE_API_KEY", "bench-key"),
    ];
    bencher.bench_local(|| run(petstore().args(["pets", "list", "-q"]).envs(set)));
}

#[divan::bench]
fn pets_list_by_curl(bencher: Bencher<'_, '_>) {
    if Command::new("curl")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        return;
    }
    let server = server();
    let url = format!("{}/pets", server.url());
    bencher.bench_local(|| {
        run(Command::new("curl").args(["-sSfH", "Authorization: Bearer bench-key", &url]));
    });
}

/// A dry run of an import of 100,000 rows, which checks every row.
#[divan::bench(sample_count = 10)]
fn import_plan(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pets.ndjson");
    let rows = (0..100_000).fold(String::new(), |mut rows, row| {
        writeln!(rows, r#"{{"name":"Pet {row}","categoryId":{}}}"#, row % 7).unwrap();
        rows
    });
    std::fs::write(&file, rows).unwrap();
    bencher.bench_local(|| {
        run(petstore()
            .args(["pets", "import", "--dry-run", "-q"])
            .arg(&file));
    });
}
