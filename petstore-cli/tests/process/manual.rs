//! Tests of the manual pages in groff, if it is installed.

use std::process::Command;

use super::support::petstore;

#[test]
fn groff_reads_every_page_without_a_warning() {
    if Command::new("groff").arg("--version").output().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let written = petstore().arg("man").arg(folder.path()).status().unwrap();
    assert!(written.success());
    let mut pages = 0;
    for page in std::fs::read_dir(folder.path()).unwrap() {
        let path = page.unwrap().path();
        let output = Command::new("groff")
            .args(["-ww", "-man", "-Tascii"])
            .arg(&path)
            .output()
            .unwrap();
        let warnings = String::from_utf8_lossy(&output.stderr);
        assert_eq!(warnings, "", "{}", path.display());
        assert!(output.stdout.len() > 100, "{}", path.display());
        pages += 1;
    }
    assert!(pages > 20, "{pages}");
}
