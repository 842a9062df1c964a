//! Runs the shell blocks of the READMEs, or checks that `.ci/full` does, and compares what they show
//! with what the programs print. Rust blocks run as examples or as rustdoc tests. The examples of the help
//! run too.

use super::read;
#[cfg(unix)]
use super::shell::Shell;
#[cfg(unix)]
use yaml_rust2::{Yaml, YamlLoader};

const READMES: [&str; 5] = [
    "README.md",
    "petstore-client/README.md",
    "petstore-cli/README.md",
    "petstore-mock/README.md",
    "petstore-mock/guide/connections.md",
];

/// A fenced block.
struct Block {
    file: &'static str,
    language: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    for file in READMES {
        let text = read(file);
        // Outside and inside of blocks alternate.
        for block in text.split("```").skip(1).step_by(2) {
            let (language, text) = block.split_once('\n').unwrap();
            blocks.push(Block {
                file,
                language: language.to_owned(),
                text: text.trim_end().to_owned(),
            });
        }
    }
    blocks
}

fn of(language: &str) -> Vec<Block> {
    let mut found = blocks();
    found.retain(|block| block.language == language);
    assert!(!found.is_empty(), "no block of {language}");
    found
}

/// Returns the words of a text, with single spaces.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_block_of_the_readmes_has_a_tested_kind() {
    let example = squeezed(&read("examples/quickstart.rs"));
    for block in blocks() {
        let Block { file, text, .. } = &block;
        let is_tested = match block.language.as_str() {
            "sh" | "console" | "toml" | "yaml" | "mermaid" => true,
            // Output without its command.
            "text" => !text.contains("$ ") && !text.contains("petstore"),
            "rust" if *file == "README.md" => example.contains(&squeezed(text)),
            // rustdoc runs these.
            "rust" | "rust,no_run" => read(file.replace("README.md", "src/lib.rs"))
                .contains("#![doc = include_str!(\"../README.md\")]"),
            _ => false,
        };
        assert!(is_tested, "no test knows this block of {file}: {text}");
    }
}

#[test]
#[cfg(unix)]
fn every_shell_block_of_the_readmes_runs() {
    let ci = read(".ci/full");
    for Block { file, text, .. } in of("sh") {
        let by_ci = |line: &&str| line.starts_with("cargo ") && !line.starts_with("cargo run ");
        for line in text.lines().filter(by_ci) {
            assert!(ci.contains(line), "`{line}` of {file} is not in .ci/full");
        }
        let typed: Vec<_> = text.lines().filter(|line| !by_ci(line)).collect();
        if !typed.is_empty() {
            Shell::open().type_in(&typed.join("\n"), &[]);
        }
    }
}

/// Replaces the port of a local address.
#[cfg(unix)]
fn masked(line: &str) -> String {
    let Some((before, after)) = line.split_once("127.0.0.1:") else {
        return line.to_owned();
    };
    let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{before}127.0.0.1:PORT{rest}")
}

/// A session is a command after `$`, with its output at a terminal below. A server is stopped after
/// its shown output.
#[test]
#[cfg(unix)]
fn every_session_of_the_readmes_prints_what_it_shows() {
    use std::io::{BufRead as _, BufReader};

    for Block { file, text, .. } in of("console") {
        let (typed, shown) = text.split_once('\n').unwrap_or((&text, ""));
        let typed = typed.strip_prefix("$ ").expect(file);
        let shell = Shell::open();
        if shown.is_empty() {
            shell.type_in(typed, &[]);
            continue;
        }
        let typed = format!("exec {typed}");
        let mut command = shell.command(&typed, &[("PETSTORE_OUTPUT", "table")]);
        let mut serving = command.spawn().unwrap();
        let results = BufReader::new(serving.stdout.take().unwrap()).lines();
        let messages = BufReader::new(serving.stderr.take().unwrap()).lines();
        let lines = results.chain(messages).take(shown.lines().count());
        let written: Vec<_> = lines.map(|line| masked(&line.unwrap())).collect();
        serving.kill().unwrap();
        serving.wait().unwrap();
        let shown: Vec<_> = shown.lines().map(masked).collect();
        assert_eq!(written, shown, "{file}");
    }
}

#[test]
#[cfg(unix)]
fn every_configuration_of_the_readmes_is_valid() {
    for Block { text, .. } in of("toml") {
        let shell = Shell::open();
        let folder = shell.home.path().join(".config/petstore");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), text).unwrap();
        shell.type_in("petstore config list --profile production", &[]);
    }
}

/// Returns the command of a pipeline's line, if it has one.
#[cfg(unix)]
fn command(line: &str) -> Option<&str> {
    let item = line.trim_start().strip_prefix("- ")?;
    let command = item.strip_prefix("run: ").unwrap_or(item);
    (!command.starts_with("uses: ")).then_some(command)
}

#[test]
#[cfg(unix)]
fn every_pipeline_of_the_readmes_runs_and_leaves_its_report() {
    for Block { text, .. } in of("yaml") {
        let shell = Shell::open();
        let lines: Vec<_> = text.lines().filter_map(command).collect();
        assert!(!lines.is_empty(), "no command in\n{text}");
        let github = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_STEP_SUMMARY", "summary"),
        ];
        shell.type_in(&lines.join("\n"), &github);
        let (report, expected) = match text.contains("junit: compliance.xml") {
            true => ("compliance.xml", "petstore-mock compliance"),
            false => ("summary", "nothing found in 1 request"),
        };
        let report = shell.left(report);
        assert!(report.contains(expected), "{report}");
    }
}

#[cfg(unix)]
fn action() -> Yaml {
    let text = read(".github/actions/petstore-mock/action.yml");
    YamlLoader::load_from_str(&text).unwrap().remove(0)
}

/// Returns the script of a step.
#[cfg(unix)]
fn step<'a>(action: &'a Yaml, name: &str) -> &'a str {
    let mut steps = action["runs"]["steps"].as_vec().unwrap().iter();
    let step = steps.find(|step| step["name"].as_str() == Some(name));
    step.unwrap()["run"].as_str().unwrap()
}

#[test]
#[cfg(unix)]
fn the_action_runs_a_command_and_fails_with_its_findings() {
    let action = action();
    let default = |name: &str| action["inputs"][name]["default"].as_str().unwrap();
    for (command, fail_on, is_fine) in [
        ("cargo test", default("fail-on"), true),
        ("true", default("fail-on"), false),
        ("true", "none", true),
        ("false", "none", false),
    ] {
        let shell = Shell::open();
        let inputs = [
            ("COMMAND", command),
            ("PETSTORE_MOCK_PLAN", default("plan")),
            ("FAIL_ON", fail_on),
            ("PETSTORE_MOCK_SENDERS", default("senders")),
            ("PETSTORE_MOCK_REPORT", default("report")),
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_STEP_SUMMARY", "summary"),
        ];
        let script = step(&action, "Run the command");
        let ended = shell.command(script, &inputs).output().unwrap();
        assert_eq!(ended.status.success(), is_fine, "{command}: {ended:?}");
        assert!(shell.left("compliance.xml").starts_with("<?xml"));
        assert!(shell.left("summary").contains("compliance: "));
    }
}

#[test]
#[cfg(unix)]
fn each_use_of_the_action_in_a_job_names_another_artifact() {
    let (action, shell) = (action(), Shell::open());
    for artifact in ["", "", "mine"] {
        let inputs = [
            ("ARTIFACT", artifact),
            ("JOB", "test-0"),
            ("RUNNER_TEMP", "."),
            ("GITHUB_OUTPUT", "output"),
        ];
        shell.type_in(step(&action, "Name the artifact"), &inputs);
    }
    let named = "name=petstore-compliance-test-0-1\nname=petstore-compliance-test-0-2\nname=mine\n";
    assert_eq!(shell.left("output"), named);
}

#[test]
#[cfg(unix)]
fn every_example_of_the_help_runs() {
    let shell = Shell::open();
    let run = |line: &str| shell.type_in(line, &shell.set_up());
    run("petstore config set base_url https://petstore.example/v1 --profile staging");
    run("petstore man pages");
    // The lines below `Examples:` in all manual pages.
    let mut lines = Vec::new();
    for page in std::fs::read_dir(shell.home.path().join("pages")).unwrap() {
        let text = std::fs::read_to_string(page.unwrap().path()).unwrap();
        let text = text.replace("\\-", "-").replace("\\*(Aq", "'");
        let list = text.split("Examples:\n").nth(1).unwrap_or_default();
        let examples = list.lines().take_while(|line| line.starts_with("  "));
        lines.extend(examples.map(|line| line.trim().to_owned()));
    }
    // Other examples use the profile.
    lines.sort_by_key(|line| line.contains("config delete"));
    assert!(lines.len() > 40, "{lines:?}");
    for line in &lines {
        run(line);
    }
}
