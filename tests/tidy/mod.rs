//! Checks that the compiler does not make: layers, file headers, forgotten tests, the changelog,
//! and the commands of the READMEs.

mod files;
mod layers;
mod readme;
mod shell;
mod surface;

use std::path::{Path, PathBuf};

/// The crates.
const CRATES: [&str; 3] = ["petstore-client", "petstore-cli", "petstore-mock"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()))
}

/// All Rust files below a folder, as paths from the root.
fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    files.sort();
    assert!(!files.is_empty(), "no Rust file below {folder}");
    files
}
