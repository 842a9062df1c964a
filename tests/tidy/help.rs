//! What the help tells to type is typed here, against a server of its own.

#![cfg(unix)]

use serde_json::Value;

use super::shell::Shell;

fn examples(entry: &Value, into: &mut Vec<String>) {
    let own = entry["examples"].as_array().unwrap().iter();
    into.extend(own.map(|line| line.as_str().unwrap().to_owned()));
    for inner in entry["commands"].as_array().unwrap() {
        examples(inner, into);
    }
}

#[test]
fn every_example_of_the_help_runs() {
    let shell = Shell::open();
    let run = |line: &str| shell.type_in(line, &shell.set_up());
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
}
