//! What the README tells to type is typed here, or in `.ci/run`; what it shows of Rust stands in
//! an example that is run.

use std::path::PathBuf;
use std::process::Command;

use super::{read, root};

/// The fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == format!("```{language}") {
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(block.join("\n"));
        }
    }
    blocks
}

/// Where cargo put the programs that belong to this test.
pub(super) fn programs() -> PathBuf {
    let folder = std::env::current_exe().unwrap();
    let folder = folder.parent().and_then(|deps| deps.parent()).unwrap().to_owned();
    if !folder.join("petstore").exists() || !folder.join("petstore-mock").exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "-p", "petstore-cli", "-p", "petstore-mock"]);
        assert!(build.current_dir(root()).status().unwrap().success());
    }
    folder
}

/// Runs a block as a script, in an empty folder.
#[cfg(unix)]
fn run(script: &str) {
    let folder = std::env::temp_dir().join(format!("petstore-readme-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = format!("PATH=\"$0:$PATH\"\n{script}");
    let output = Command::new("sh")
        .args(["-eu", "-c", &script])
        .arg(programs())
        .current_dir(&folder)
        .env_remove("PETSTORE_BASE_URL")
        .env_remove("PETSTORE_API_KEY")
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{stderr}");
    assert!(!output.stdout.is_empty(), "{script}\n{stderr}");
}

#[test]
#[cfg(unix)]
fn every_shell_block_of_the_readme_runs() {
    let blocks = blocks(&read("README.md"), "sh");
    assert!(blocks.len() >= 3, "{blocks:?}");
    let ci = read(".ci/run");
    for block in blocks {
        let of_cargo = block.lines().filter(|line| line.starts_with("cargo "));
        for line in of_cargo.clone().filter(|line| !line.starts_with("cargo run ")) {
            let command = line.split("  #").next().unwrap_or(line).trim_end();
            assert!(ci.contains(command), "`{command}` of the README is not in .ci/run");
        }
        let rest: Vec<_> = block
            .lines()
            .filter(|line| !line.starts_with("cargo ") || line.starts_with("cargo run "))
            .map(|line| line.replace("cargo run -- ", "petstore "))
            .collect();
        if !rest.is_empty() {
            run(&rest.join("\n"));
        }
    }
}

#[test]
fn every_rust_block_of_the_readme_stands_in_an_example() {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let examples = ["quickstart", "errors", "paging", "testing"];
    let examples = examples.map(|name| squeeze(&read(format!("examples/{name}.rs"))));
    let blocks = blocks(&read("README.md"), "rust");
    assert!(!blocks.is_empty());
    for block in blocks {
        let block = squeeze(&block);
        assert!(examples.iter().any(|text| text.contains(&block)), "in no example: {block}");
    }
}

#[test]
fn every_example_is_named_in_the_readme() {
    let readme = read("README.md");
    for path in super::rust_files("examples") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(readme.contains(&format!("`{name}`")), "{name}");
    }
}
