//! Checks the files that the forge reads: their form, and that they name actions by their commits.

use yaml_rust2::YamlLoader;

use super::{files, read};

/// Returns what is wrong with the action that a line uses.
fn problem(line: &str) -> Option<&'static str> {
    let (_, action) = line.split_once("uses: ")?;
    if action.starts_with("./") {
        return None;
    }
    let Some((_, version)) = action.split_once('@') else {
        return Some("names no version");
    };
    let Some((commit, tag)) = version.split_once(" # v") else {
        return Some("does not say in a comment which version its commit is");
    };
    let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_commit {
        return Some("names no commit: a tag can be moved");
    }
    if tag.is_empty() {
        return Some("does not say in a comment which version its commit is");
    }
    None
}

#[test]
fn workflows_are_valid_and_name_actions_by_their_commits() {
    let paths = files(".github", &["yml", "yaml"]);
    assert!(paths.len() > 3, "only {paths:?}");
    for path in paths {
        let text = read(&path);
        let documents = YamlLoader::load_from_str(&text);
        assert!(documents.is_ok(), "{}: {documents:?}", path.display());
        for line in text.lines() {
            let problem = problem(line);
            assert_eq!(problem, None, "{}: {line}", path.display());
        }
    }
}

#[test]
fn an_action_without_a_commit_is_found() {
    let commit = "3d3c42e5aac5ba805825da76410c181273ba90b1";
    for (line, is_right) in [
        (format!("- uses: a/b@{commit} # v7.0.1"), true),
        ("uses: ./.github/workflows/nightly.yml".to_owned(), true),
        ("run: echo".to_owned(), true),
        ("- uses: a/b@v7".to_owned(), false),
        ("- uses: a/b@v7 # v7".to_owned(), false),
        (format!("- uses: a/b@{commit}"), false),
        ("- uses: a/b".to_owned(), false),
    ] {
        assert_eq!(problem(&line).is_none(), is_right, "{line}");
    }
}
