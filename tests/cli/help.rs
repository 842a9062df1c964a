//! Help in all its forms: of commands, on topics, as pages and a tree.

use insta::assert_snapshot;
use serde_json::Value;

use super::harness::Petstore;

pub(super) async fn printed(line: &str) -> String {
    let ran = Petstore::bare().run(line).await;
    assert_eq!((ran.stderr.as_str(), ran.code), ("", 0), "{line}");
    ran.stdout
}

/// All commands of a tree, by their full names.
pub(super) fn names(entry: &Value, into: &mut Vec<String>) {
    into.push(entry["name"].as_str().unwrap().to_owned());
    for inner in entry["commands"].as_array().unwrap() {
        names(inner, into);
    }
}

#[tokio::test]
async fn the_tree_of_commands_as_a_page() {
    let page = printed("docs --format md").await;
    // The mock's own part is the mock's to test.
    let (before, rest) = page.split_once("## petstore mock\n").unwrap();
    let after = &rest[rest.find("\n## petstore completions").unwrap()..];
    assert_snapshot!("docs", format!("{before}{after}"));
}

#[tokio::test]
async fn every_command_says_what_it_does_and_has_examples() {
    fn check(entry: &Value) {
        let name = entry["name"].as_str().unwrap();
        let (inner, examples) = (&entry["commands"], &entry["examples"]);
        assert!(!entry["about"].as_str().unwrap().is_empty(), "{name}");
        if inner.as_array().unwrap().is_empty() && !name.starts_with("petstore mock ") {
            assert!(!examples.as_array().unwrap().is_empty(), "{name}");
        }
        for argument in entry["arguments"].as_array().unwrap() {
            assert!(!argument["help"].as_str().unwrap().is_empty(), "{name}: {argument}");
        }
        inner.as_array().unwrap().iter().for_each(check);
    }
    check(&serde_json::from_str(&printed("docs --format json").await).unwrap());
}

#[tokio::test]
async fn help_shows_what_the_flag_shows() {
    assert_eq!(printed("help pets list").await, printed("pets list --help").await);
    assert_eq!(printed("help").await, printed("--help").await);
    assert_snapshot!(printed("help environment").await);
    assert_snapshot!(printed("help output").await);
    assert_snapshot!(printed("help rate-limits").await);
    assert!(printed("help exit-codes").await.contains("\n  7    rate limited or banned"));
    let ran = Petstore::bare().run("help exit-code").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: there is no help on `exit-code`
    hint: did you mean `exit-codes`?
    --- exit 2
    ");
}

#[tokio::test]
async fn there_is_a_manual_page_for_every_command() {
    assert_snapshot!(printed("man").await);
    let folder = tempfile::tempdir().unwrap();
    let ran = Petstore::bare().run_words(&["man", folder.path().to_str().unwrap()]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let tree = serde_json::from_str(&printed("docs --format json").await).unwrap();
    let mut all = Vec::new();
    names(&tree, &mut all);
    for name in all {
        let page = folder.path().join(format!("{}.1", name.replace(' ', "-")));
        assert!(page.exists(), "{}", page.display());
    }
}
