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
fn the_paths_in_the_contributors_pages_exist() {
    for page in [".github/ARCHITECTURE.md", ".github/CONTRIBUTING.md"] {
        let text = read(page);
        let paths: Vec<_> = text
            .split('`')
            .filter(|word| word.starts_with("petstore-") || word.starts_with("tests/"))
            .collect();
        assert!(paths.len() > 15, "{page} names only {paths:?}");
        for path in paths {
            assert!(
                root().join(path).exists(),
                "{page} names `{path}`, which does not exist"
            );
        }
    }
}

/// Returns the paths that a picture names: the last lines of its labels, below `folder`.
fn paths_of_picture(picture: &str, folder: &str) -> Vec<String> {
    let labels = picture.split('"').skip(1).step_by(2);
    let last_lines = labels.filter_map(|label| label.rsplit_once("<br>"));
    last_lines
        .flat_map(|(_, paths)| paths.split(", "))
        .map(|path| format!("{folder}/{path}"))
        .collect()
}

#[test]
fn the_paths_in_the_pictures_of_the_architecture_exist() {
    let page = read(".github/ARCHITECTURE.md");
    let mut pictures = 0;
    for section in page.split("```mermaid").skip(1) {
        let (picture, text) = section.split_once("```").expect("a picture ends");
        let Some((_, rest)) = text.split_once("All paths of this picture are below `") else {
            continue;
        };
        let (folder, _) = rest.split_once('`').expect("the name of a folder ends");
        let paths = paths_of_picture(picture, folder);
        assert!(paths.len() > 5, "a picture names only {paths:?}");
        for path in paths {
            assert!(
                root().join(&path).exists(),
                "a picture of ARCHITECTURE.md names {path}, which does not exist"
            );
        }
        pictures += 1;
    }
    assert_eq!(pictures, 3);
}

#[test]
fn a_picture_names_the_paths_in_the_last_lines_of_its_labels() {
    let picture = "a[\"one<br>b.rs, c/d.rs\"] -- \"text\" --> e[\"two<br>three<br>f\"]";
    assert_eq!(
        paths_of_picture(picture, "x"),
        ["x/b.rs", "x/c/d.rs", "x/f"]
    );
}
