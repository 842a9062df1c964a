//! Checks the page about the limiter, and that a program without shared limits does not compile the
//! code for them.

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The packages that a client with these features needs.
fn dependencies(features: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--locked",
            "--package",
            "petstore-client",
        ])
        .args([
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--no-default-features",
        ])
        .args(["--features", features])
        .current_dir(root())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problem}");
    text
}

#[test]
fn a_program_without_shared_limits_lacks_the_sharing_engine() {
    let has_postcard = |features| {
        dependencies(features)
            .lines()
            .any(|line| line.starts_with("postcard "))
    };
    assert!(!has_postcard("rustls,test-util"));
    for features in ["shared-limits", "file-store", "redis"] {
        assert!(has_postcard(features), "{features}");
    }
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
