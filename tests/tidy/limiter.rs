//! Checks the page about the limiter, and that a program without a shared store does not compile what
//! only stores need.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{read, root, rust_files};

const PAGE: &str = ".github/LIMITER.md";
/// The page names the limiter's files below this folder.
const FOLDER: &str = "petstore-client/src/rate_limit";
const MAX_WORDS: usize = 800;

/// Returns the paths that a text has in backticks.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|word| {
        let is_path = word.contains('/') || word.ends_with(".rs");
        is_path && !word.contains(char::is_whitespace)
    })
}

/// Returns whether a path exists, from the root or as the end of one of these files.
fn exists(path: &str, files: &[PathBuf]) -> bool {
    root().join(path).exists() || files.iter().any(|file| file.ends_with(path))
}

#[test]
fn the_page_about_the_limiter_is_short_and_its_paths_exist() {
    let page = read(PAGE);
    let words = page.split_whitespace().count();
    assert!(words <= MAX_WORDS, "{PAGE} has {words} words");
    let files = rust_files(FOLDER);
    let missing: Vec<_> = paths(&page).filter(|path| !exists(path, &files)).collect();
    assert!(missing.is_empty(), "{PAGE} names {missing:?}");
    assert!(paths(&page).count() > 3, "{PAGE} names no files");
    assert!(read(".github/CONTRIBUTING.md").contains("(LIMITER.md)"));
}

#[test]
fn a_path_is_a_word_in_backticks() {
    let text = "Read `quota/window.rs`, `file.rs` and `cargo test -p x`: `remaining - in/out`.";
    assert!(paths(text).eq(["quota/window.rs", "file.rs"]));
    let files = [PathBuf::from("x/quota/window.rs")];
    assert!(exists("quota/window.rs", &files) && exists("tests/tidy", &files));
    assert!(!exists("ota/window.rs", &files) && !exists("tests/x", &files));
}

/// The packages that only stores need.
const OF_STORES: [&str; 3] = ["crc32fast", "postcard", "sha2"];

/// Returns the packages and features that a feature enables, also through other features.
fn enabled_by(manifest: &str, feature: &str) -> BTreeSet<String> {
    let start = format!("{feature} = [");
    let parts = manifest.lines().find_map(|line| line.strip_prefix(&start));
    let names = parts.unwrap_or_default().split('"').skip(1).step_by(2);
    let mut enabled: BTreeSet<_> = names.map(str::to_owned).collect();
    for name in enabled.clone() {
        enabled.extend(enabled_by(manifest, &name));
    }
    enabled
}

/// `cargo tree` would need packages that no build downloads.
#[test]
fn a_program_without_a_shared_store_lacks_its_packages() {
    let manifest = read("petstore-client/Cargo.toml");
    let (_, features) = manifest.split_once("[features]\n").unwrap();
    let (features, rest) = features.split_once("[dependencies]\n").unwrap();
    let (dependencies, _) = rest.split_once("[dev-dependencies]\n").unwrap();
    for package in OF_STORES {
        let optional = format!("{package} = {{ workspace = true, optional = true }}\n");
        assert!(
            dependencies.contains(&optional),
            "{package} is not optional"
        );
    }
    let names = features.lines().filter_map(|line| line.split_once(" = ["));
    for (feature, _) in names {
        let enabled = enabled_by(features, feature);
        let packages = OF_STORES.map(|package| enabled.contains(&format!("dep:{package}")));
        let is_store = ["file-store", "redis"].contains(&feature);
        assert_eq!(packages.contains(&true), is_store, "{feature}: {enabled:?}");
    }
}
