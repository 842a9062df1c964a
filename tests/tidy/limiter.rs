//! Checks the page about the limiter, and that a program without shared limits does not compile the
//! code for them.

use std::path::{Path, PathBuf};

use super::{read, root};

/// Returns the file of a test. Its modules are named from the crate's `src`, or from `tests` at the
/// top.
fn file_of(modules: &[&str]) -> Option<PathBuf> {
    let path = modules.join("/");
    let folders = ["petstore-client/src", "tests"];
    let files = folders.iter().flat_map(|folder| {
        let ends = [".rs", "/mod.rs", "/main.rs"];
        ends.map(|end| Path::new(folder).join(format!("{path}{end}")))
    });
    files.into_iter().find(|file| root().join(file).exists())
}

/// Whether a path such as `simulator::goals::a_test` names a test.
fn is_test(name: &str) -> bool {
    let mut modules: Vec<_> = name.split("::").collect();
    let function = format!("fn {}(", modules.pop().unwrap_or_default());
    // The last module may be inside of its file.
    let is_inline = |module: &&str| ["tests", "properties"].contains(module);
    let file = file_of(&modules).or_else(|| {
        let last = modules.pop();
        last.filter(is_inline).and_then(|_| file_of(&modules))
    });
    file.is_some_and(|file| read(file).contains(&function))
}

#[test]
fn the_page_about_the_limiter_names_tests_and_files_that_exist() {
    let page = read(".github/LIMITER.md");
    let rows: Vec<_> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| mechanism"))
        .collect();
    assert!(rows.len() > 25, "{} rows", rows.len());
    for row in rows {
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let names: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            assert!(is_test(name), "LIMITER.md names `{name}`, which is no test");
        }
    }
    for path in page
        .split('`')
        .filter(|word| word.starts_with("petstore-client/") || word.starts_with("tests/"))
    {
        assert!(
            root().join(path).exists(),
            "LIMITER.md names `{path}`, which does not exist"
        );
    }
    assert!(read(".github/CONTRIBUTING.md").contains("(LIMITER.md)"));
}

/// The package that the sharing engine writes its record with.
const FORMAT: &str = "postcard";

/// Whether a feature of the client compiles the sharing engine, according to its manifest.
fn shares_limits(manifest: &str, feature: &str) -> bool {
    let start = format!("{feature} = [");
    let mut lines = manifest.lines();
    let parts = lines.find_map(|line| line.strip_prefix(&start)).unwrap();
    let mut names = parts.split('"').skip(1).step_by(2);
    feature == "shared-limits" || names.any(|name| is_feature(manifest, name))
}

fn is_feature(manifest: &str, name: &str) -> bool {
    manifest.contains(&format!("\n{name} = [")) && shares_limits(manifest, name)
}

/// `cargo tree` would need packages that no build downloads.
#[test]
fn a_program_without_shared_limits_lacks_the_sharing_engine() {
    let manifest = read("petstore-client/Cargo.toml");
    for (feature, shares) in [
        ("default", false),
        ("rustls", false),
        ("test-util", false),
        ("shared-limits", true),
        ("file-store", true),
        ("redis", true),
    ] {
        assert_eq!(shares_limits(&manifest, feature), shares, "{feature}");
    }
    let (normal, _) = manifest.split_once("[dev-dependencies]").unwrap();
    let optional = format!("\n{FORMAT} = {{ workspace = true, optional = true }}\n");
    assert!(normal.contains(&optional));
    let enabled_by: Vec<_> = normal
        .lines()
        .filter(|line| line.contains(&format!("\"dep:{FORMAT}\"")))
        .collect();
    assert_eq!(enabled_by.len(), 1, "{enabled_by:?}");
    assert!(enabled_by[0].starts_with("shared-limits = ["));
    let lock = read("Cargo.lock");
    let users: Vec<_> = lock
        .split("[[package]]")
        .filter(|package| package.contains(&format!("\n \"{FORMAT}\",\n")))
        .filter_map(|package| package.lines().nth(1))
        .collect();
    assert_eq!(users, ["name = \"petstore-client\""]);
    let map = read("petstore-client/src/rate_limit/mod.rs");
    let guard = "#[cfg(feature = \"shared-limits\")]\npub(crate) mod shared;";
    assert!(map.contains(guard), "the folder `shared` has one condition");
    // The replacement for builds without the feature must stay small.
    let stand_in = read("petstore-client/src/rate_limit/unshared.rs");
    assert!(stand_in.lines().count() < 120);
    for path in super::rust_files("petstore-client/src/rate_limit/quota") {
        let code = read(&path);
        assert!(
            !code.contains("shared-limits") && !code.contains("rate_limit::shared"),
            "{} knows of members",
            path.display()
        );
    }
}
