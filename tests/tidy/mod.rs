//! Checks what the compiler does not check: layers, citations, paths in documents, and the sessions of the
//! READMEs.

mod citations;
mod documents;
mod layers;
mod readme;
mod shell;

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

/// All files below a folder whose names have one of these ends, as paths from the root.
fn files(folder: &str, ends: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let end = path.extension().and_then(|end| end.to_str());
            if path.is_dir() {
                folders.push(path);
            } else if end.is_some_and(|end| ends.contains(&end)) {
                files.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    files.sort();
    files
}
