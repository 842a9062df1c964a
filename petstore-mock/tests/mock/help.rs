//! The help and the version.

use super::process::run;

/// Returns what a successful command prints.
fn printed(args: &[&str]) -> String {
    let (status, out, err) = run(args);
    assert_eq!((status, &*err), (0, ""));
    out
}

#[test]
fn the_version_and_the_help_go_to_stdout() {
    let version = concat!("petstore-mock ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(printed(&["--version"]), version);
    let help = printed(&["--help"]);
    let lines: Vec<_> = help.lines().map(str::trim_end).collect();
    insta::assert_snapshot!("help", lines.join("\n"));
}

#[test]
fn the_help_of_exec_names_the_variables_of_the_command() {
    let help = printed(&["exec", "--help"]);
    for word in [
        "PETSTORE_BASE_URL",
        "PETSTORE_API_KEY",
        "PETSTORE_MOCK_URL",
        "--plan",
    ] {
        assert!(help.contains(word), "{word}");
    }
}
