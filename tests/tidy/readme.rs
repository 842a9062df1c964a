//! Runs the shell blocks of the READMEs, or checks that `.ci/run` does, and compares what they show
//! with what the programs print. Rust blocks run as examples or as rustdoc tests. The examples of the help
//! run too.

use super::read;
#[cfg(unix)]
use super::shell::Shell;
use yaml_rust2::{Yaml, YamlLoader};

const READMES: [&str; 5] = [
    "README.md",
    "petstore-client/README.md",
    "petstore-cli/README.md",
    "petstore-mock/README.md",
    "petstore-mock/guide/connections.md",
];

#[cfg(unix)]
const ACTION: &str = ".github/actions/petstore-mock/action.yml";

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
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(language) = line.strip_prefix("```") {
                let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
                let (language, text) = (language.to_owned(), block.join("\n"));
                blocks.push(Block {
                    file,
                    language,
                    text,
                });
            }
        }
    }
    blocks
}

fn of(language: &str) -> Vec<Block> {
    let found: Vec<_> = blocks()
        .into_iter()
        .filter(|block| block.language == language)
        .collect();
    assert!(!found.is_empty(), "no block of {language}");
    found
}

#[test]
fn every_block_of_the_readmes_has_a_tested_kind() {
    for Block {
        file,
        language,
        text,
    } in blocks()
    {
        let known = match language.as_str() {
            "sh" | "console" | "toml" | "yaml" | "mermaid" => true,
            // Output without its command.
            "text" => !text.contains("$ ") && !text.contains("petstore"),
            "rust" if file == "README.md" => true,
            // rustdoc runs these.
            "rust" | "rust,no_run" => read(file.replace("README.md", "src/lib.rs"))
                .contains("#![doc = include_str!(\"../README.md\")]"),
            _ => false,
        };
        assert!(
            known,
            "{file}: no test knows what to do with\n```{language}\n{text}\n```"
        );
    }
}

#[test]
#[cfg(unix)]
fn every_shell_block_of_the_readmes_runs() {
    let ci = read(".ci/run");
    for Block { file, text, .. } in of("sh") {
        let by_ci = |line: &&str| line.starts_with("cargo ") && !line.starts_with("cargo run ");
        for line in text.lines().filter(by_ci) {
            assert!(ci.contains(line), "`{line}` of {file} is not in .ci/run");
        }
        let typed: Vec<_> = text.lines().filter(|line| !by_ci(line)).collect();
        if !typed.is_empty() {
            Shell::open().type_in(&typed.join("\n"), &[]);
        }
    }
}

/// A session is a command after `$`, with its output at a terminal below. A server is stopped after
/// its shown output.
#[test]
#[cfg(unix)]
fn every_session_of_the_readmes_prints_what_it_shows() {
    use std::io::{BufRead as _, BufReader};

    let masked = |line: &str| {
        line.split_once("127.0.0.1:")
            .map_or(line.to_owned(), |(before, after)| {
                let port = after
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(after.len());
                format!("{before}127.0.0.1:PORT{}", &after[port..])
            })
    };
    for Block { file, text, .. } in of("console") {
        let (typed, shown) = text.split_once('\n').unwrap_or((&text, ""));
        let typed = typed
            .strip_prefix("$ ")
            .unwrap_or_else(|| panic!("{file}: {typed}"));
        let shell = Shell::open();
        if shown.is_empty() {
            shell.type_in(typed, &[]);
            continue;
        }
        let mut command = shell.command(&format!("exec {typed}"), &[("PETSTORE_OUTPUT", "table")]);
        let mut serving = command.spawn().unwrap();
        let results = BufReader::new(serving.stdout.take().unwrap()).lines();
        let messages = BufReader::new(serving.stderr.take().unwrap()).lines();
        let lines = results.chain(messages).take(shown.lines().count());
        let written: Vec<_> = lines.map(Result::unwrap).collect();
        serving.kill().unwrap();
        serving.wait().unwrap();
        let shown: Vec<_> = shown.lines().map(masked).collect();
        assert_eq!(
            written.iter().map(|line| masked(line)).collect::<Vec<_>>(),
            shown,
            "{file}"
        );
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

/// Returns the commands of a pipeline: what `run` and `script` name.
fn commands(pipeline: &str) -> Vec<String> {
    fn collect(node: &Yaml, is_command: bool, found: &mut Vec<String>) {
        match node {
            Yaml::String(line) if is_command => found.push(line.clone()),
            Yaml::Array(items) => items
                .iter()
                .for_each(|item| collect(item, is_command, found)),
            Yaml::Hash(fields) => fields.iter().for_each(|(name, value)| {
                collect(
                    value,
                    matches!(name.as_str(), Some("run" | "script")),
                    found,
                );
            }),
            _ => {}
        }
    }
    let mut found = Vec::new();
    let documents = YamlLoader::load_from_str(pipeline).unwrap();
    documents
        .iter()
        .for_each(|document| collect(document, false, &mut found));
    assert!(!found.is_empty(), "no command in\n{pipeline}");
    found
}

#[test]
#[cfg(unix)]
fn every_pipeline_of_the_readmes_runs_and_leaves_its_report() {
    for Block { text, .. } in of("yaml") {
        let shell = Shell::open();
        let summary = shell.home.path().join("summary");
        let lines = commands(&text).join("\n");
        shell.type_in(
            &lines,
            &[
                ("GITHUB_ACTIONS", "true"),
                ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
            ],
        );
        let (report, expected) = match text.contains("junit: compliance.xml") {
            true => (
                shell.home.path().join("compliance.xml"),
                "petstore-mock compliance",
            ),
            false => (summary, "nothing found in 1 request"),
        };
        let report = std::fs::read_to_string(report).unwrap();
        assert!(report.contains(expected), "{report}");
    }
}

/// Returns the script of a step of the action.
#[cfg(unix)]
fn script_of(action: &Yaml, step: &str) -> String {
    let steps = action["runs"]["steps"].as_vec().unwrap();
    let step = steps.iter().find(|it| it["name"].as_str() == Some(step));
    step.unwrap()["run"].as_str().unwrap().to_owned()
}

#[test]
#[cfg(unix)]
fn the_action_runs_a_command_and_fails_with_its_findings() {
    let action = &YamlLoader::load_from_str(&read(ACTION)).unwrap()[0];
    let script = script_of(action, "Run the command");
    let default = |name: &str| {
        action["inputs"][name]["default"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let warnings = default("fail-on");
    for (command, fail_on, is_fine) in [
        ("cargo test", &*warnings, true),
        ("true", &*warnings, false),
        ("true", "none", true),
        ("false", "none", false),
    ] {
        let shell = Shell::open();
        let summary = shell.home.path().join("summary");
        let inputs = [
            ("COMMAND", command),
            ("PETSTORE_MOCK_PLAN", &default("plan")),
            ("FAIL_ON", fail_on),
            ("PETSTORE_MOCK_SENDERS", &default("senders")),
            ("PETSTORE_MOCK_REPORT", &default("report")),
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
        ];
        let ended = shell.command(&script, &inputs).output().unwrap();
        assert_eq!(ended.status.success(), is_fine, "{command}: {ended:?}");
        let report = std::fs::read_to_string(shell.home.path().join("compliance.xml")).unwrap();
        assert!(report.starts_with("<?xml"), "{report}");
        assert_eq!(summary.exists(), fail_on != "none");
    }
}

#[test]
#[cfg(unix)]
fn each_use_of_the_action_in_a_job_names_another_artifact() {
    let action = &YamlLoader::load_from_str(&read(ACTION)).unwrap()[0];
    let script = script_of(action, "Name the artifact");
    let shell = Shell::open();
    let output = shell.home.path().join("output");
    for artifact in ["", "", "mine"] {
        let inputs = [
            ("ARTIFACT", artifact),
            ("JOB", "test-0"),
            ("RUNNER_TEMP", shell.home.path().to_str().unwrap()),
            ("GITHUB_OUTPUT", output.to_str().unwrap()),
        ];
        shell.type_in(&script, &inputs);
    }
    assert_eq!(
        std::fs::read_to_string(output).unwrap(),
        "name=petstore-compliance-test-0-1\nname=petstore-compliance-test-0-2\nname=mine\n"
    );
}

#[test]
fn every_rust_block_of_the_readme_is_part_of_an_example() {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let examples = ["quickstart", "errors", "paging", "testing"];
    let examples = examples.map(|name| squeeze(&read(format!("examples/{name}.rs"))));
    for block in of("rust").iter().filter(|block| block.file == "README.md") {
        let block = squeeze(&block.text);
        assert!(
            examples.iter().any(|text| text.contains(&block)),
            "in no example: {block}"
        );
    }
}

/// The lines below `Examples:` in all manual pages.
#[cfg(unix)]
fn examples(shell: &Shell) -> Vec<String> {
    shell.type_in("petstore man pages", &[]);
    let pages = std::fs::read_dir(shell.home.path().join("pages")).unwrap();
    let lines = pages.flat_map(|page| {
        let text = std::fs::read_to_string(page.unwrap().path()).unwrap();
        let text = text.replace("\\-", "-").replace("\\*(Aq", "'");
        let list = text.split("Examples:\n").nth(1).unwrap_or_default();
        let lines = list.lines().take_while(|line| line.starts_with("  "));
        lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    });
    lines.collect()
}

#[test]
#[cfg(unix)]
fn every_example_of_the_help_runs() {
    let shell = Shell::open();
    let run = |line: &str| shell.type_in(line, &shell.set_up());
    run("petstore config set base_url https://petstore.example/v1 --profile staging");
    let mut lines = examples(&shell);
    // Other examples use the profile.
    lines.sort_by_key(|line| line.contains("config delete"));
    assert!(lines.len() > 40, "{lines:?}");
    for line in &lines {
        run(line);
    }
}
