//! Checks that each file has a header, that each test file is compiled, and that the changelog
//! exists.

use super::{CRATES, read, root, rust_files};

#[test]
fn every_file_starts_with_a_description() {
    let sources = CRATES
        .iter()
        .flat_map(|name| rust_files(&format!("{name}/src")));
    let others = [
        "tests",
        "examples",
        "petstore-cli/tests",
        "petstore-mock/tests",
    ];
    for path in sources.chain(others.iter().flat_map(|folder| rust_files(folder))) {
        let text = read(&path);
        let opens = text.starts_with("//! ") || text.starts_with("#![doc = ");
        assert!(opens, "{} does not open with `//!`", path.display());
    }
}

#[test]
fn every_test_file_has_a_mod_line() {
    for path in rust_files("tests") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let folder = path.parent().unwrap();
        let (parent, module) = match name {
            "main" => continue,
            "mod" => (
                folder.parent().unwrap(),
                folder.file_name().unwrap().to_str().unwrap(),
            ),
            name => (folder, name),
        };
        let top = if parent.join("main.rs").exists() {
            "main.rs"
        } else {
            "mod.rs"
        };
        let lines = read(parent.join(top));
        let found = lines
            .lines()
            .any(|line| line.trim_end() == format!("mod {module};"));
        assert!(
            found,
            "{} has no `mod {module};` in {top}, so it is not run",
            path.display()
        );
    }
}

#[test]
fn the_changelog_is_kept() {
    let text = read("CHANGELOG.md");
    assert!(text.contains("## [Unreleased]"));
    assert!(text.contains("keepachangelog.com"));
}

#[test]
fn the_paths_in_the_contributing_guide_exist() {
    let text = read(".github/CONTRIBUTING.md");
    let paths: Vec<_> = text
        .split('`')
        .filter(|word| word.starts_with("petstore-") || word.starts_with("tests/"))
        .collect();
    assert!(paths.len() > 15);
    for path in paths {
        assert!(
            root().join(path).exists(),
            ".github/CONTRIBUTING.md names `{path}`, which does not exist"
        );
    }
}
