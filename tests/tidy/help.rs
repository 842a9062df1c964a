//! What the help tells to type is typed here, against a server of its own.

#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use petstore_mock::{MockServer, Plan};
use serde_json::Value;

use super::readme::programs;

/// Where the examples think the service is.
const ELSEWHERE: &str = "https://petstore.example/v1";

fn examples(entry: &Value, into: &mut Vec<String>) {
    let own = entry["examples"].as_array().unwrap().iter();
    into.extend(own.map(|line| line.as_str().unwrap().to_owned()));
    for inner in entry["commands"].as_array().unwrap() {
        examples(inner, into);
    }
}

/// Runs a line as a person would, in a home of its own.
fn type_in(line: &str, home: &Path, server: &str) -> String {
    let output = Command::new("sh")
        .args(["-eu", "-c", &format!("PATH=\"$0:$PATH\"\n{}", line.replace(ELSEWHERE, server))])
        .arg(programs())
        .current_dir(home)
        // What asks for a key at a terminal reads it from there.
        .stdin(std::fs::File::open(home.join("key.txt")).unwrap())
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_STATE_HOME")
        .env("HOME", home)
        .env("PETSTORE_BASE_URL", server)
        .env("PETSTORE_API_KEY", "k")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}\n{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_of_the_help_runs() {
    let server = MockServer::builder().key("k", Plan::Business).start().await.unwrap();
    let url = server.url().to_owned();
    let run = tokio::task::spawn_blocking(move || {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("key.txt"), "k\n").unwrap();
        std::fs::write(home.path().join("pets.csv"), "name,categoryId\nRex,7\n").unwrap();
        let run = |line: &str| type_in(line, home.path(), &url);
        run("petstore config set base_url https://petstore.example/v1 --profile staging");
        let mut lines = Vec::new();
        examples(&serde_json::from_str(&run("petstore docs --format json")).unwrap(), &mut lines);
        for topic in ["output", "rate-limits"] {
            let text = run(&format!("petstore help {topic}"));
            let (_, after) = text.split_once("\nExamples:\n").unwrap();
            lines.extend(after.lines().map(|line| line.trim().to_owned()));
        }
        assert!(lines.len() > 30, "{lines:?}");
        // What serves until it is stopped is the mock's own to test.
        for line in lines.iter().filter(|line| !line.starts_with("petstore-mock")) {
            run(line);
        }
    });
    run.await.unwrap();
}
