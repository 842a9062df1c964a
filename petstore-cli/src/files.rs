//! Files of the program's own: written whole or not at all, and to nobody else's eyes.

use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// Replaces a file's content in one step. It is made anew with mode 0600, folders included (0700);
/// where the path is a link, what it leads to is replaced.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make_folder(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(content.as_ref())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}

/// Makes a folder that is nobody else's, and those it is in, where they are not there.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Reads a file; `None` where there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// Removes a file; says whether there was one.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(problem) => Err(problem),
    }
}

/// Returns the mode of a file that others than its owner can read or write.
#[cfg(unix)]
pub(crate) fn open_to_others(path: &Path) -> io::Result<Option<u32>> {
    use std::os::unix::fs::PermissionsExt as _;

    let data = std::fs::metadata(path)?;
    let mode = data.permissions().mode() & 0o777;
    // What a shell hands over as a pipe (`<(…)`) is nobody else's.
    Ok((data.is_file() && mode & 0o077 != 0).then_some(mode))
}

/// Elsewhere files below a person's own folders are that person's.
#[cfg(not(unix))]
pub(crate) fn open_to_others(_: &Path) -> io::Result<Option<u32>> {
    Ok(None)
}

/// Returns a path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> String {
    crate::safe::shell(&path.display().to_string())
}
