//! The files that tell others where the mock is and how to trust it. Each appears whole or not at all, so that whoever waits for it
//! can read it as soon as it is there.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

/// Writes a text.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let beside = beside(path);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // It may not even exist; the first error is the one to report.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A name in the same folder, since only within a file system a rename is atomic; and this process's
/// own, since two servers may be told the same file.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{}.tmp", std::process::id()));
    name.into()
}
