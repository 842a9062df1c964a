//! Runs the examples of the help against a test server.

#![cfg(unix)]

use super::shell::Shell;
use super::{read, root};

/// The lines below `Examples:` in all texts of the help.
fn examples() -> Vec<String> {
    let folder = root().join("petstore-cli/src/help");
    let texts = std::fs::read_dir(folder).unwrap().map(|entry| read(entry.unwrap().path()));
    let lines = texts.flat_map(|text| {
        let lists = text.split("Examples:\n").skip(1);
        let lines = lists.flat_map(|list| list.lines().take_while(|line| line.starts_with("  ")));
        lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    });
    lines.collect()
}

#[test]
fn every_example_of_the_help_runs() {
    let shell = Shell::open();
    let run = |line: &str| shell.type_in(line, &shell.set_up());
    run("petstore config set base_url https://petstore.example/v1 --profile staging");
    let lines = examples();
    assert!(lines.len() > 40, "{lines:?}");
    // The mock's own tests cover a server that runs until it is stopped.
    for line in lines.iter().filter(|line| !line.contains("mock --port")) {
        run(line);
    }
}
