//! The program's files: written atomically, private, and read up to a maximum size.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::env::System;
use crate::error::{CliError, Kind, Result};

/// Replaces a file atomically. Creates it with mode 0600, and missing folders with 0700. If the
/// path is a link, replaces its target. Writes into a device, which cannot be replaced.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>, system: &System) -> Result<()> {
    let written = replace(path, content.as_ref());
    written.map_err(|problem| not_written(&system.shown(path), &problem))
}

/// Checks that [`write`] can write a file, so that this is known before anything else is done.
pub(crate) fn check(path: &Path, system: &System) -> Result<()> {
    require_folder(path, system)?;
    let checked = if path.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else if is_device(path) {
        Ok(())
    } else {
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        NamedTempFile::new_in(folder(&target)).map(drop)
    };
    checked.map_err(|problem| {
        let action = format!("cannot write {}", system.shown(path));
        CliError::io(Kind::Usage, action, &problem)
    })
}

/// Checks that there is a folder for a file.
pub(crate) fn require_folder(path: &Path, system: &System) -> Result<()> {
    let folder = folder(path);
    if folder.is_dir() {
        return Ok(());
    }
    let (path, folder) = (system.shown(path), system.shown(folder));
    let problem = format!("cannot write {path}: there is no folder {folder}");
    Err(CliError::usage(problem))
}

pub(crate) fn not_written(shown: &str, problem: &io::Error) -> CliError {
    CliError::io(Kind::Internal, format!("cannot write {shown}"), problem)
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    if is_device(path) {
        return open_device(path)?.write_all(content);
    }
    let path = match std::fs::canonicalize(path) {
        Ok(target) => target,
        Err(_) => path.to_owned(),
    };
    create_private(folder(&path))?;
    let mut file = NamedTempFile::new_in(folder(&path))?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}

/// Returns whether a path names something that cannot be replaced: a device, a pipe, a folder or an
/// open file of this process.
pub(crate) fn is_device(path: &Path) -> bool {
    let target = std::fs::read_link(path).unwrap_or_default();
    path.metadata().is_ok_and(|data| !data.is_file())
        || [path, &target].iter().any(|path| {
            is_stdout(path)
                || *path == Path::new("/dev/stderr")
                || path.starts_with("/dev/fd")
                || path.starts_with("/proc")
        })
}

pub(crate) fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
        .map(Path::new)
        .contains(&path)
}

/// Opens a device for writing. If standard output is a file, only its own handle knows where the
/// next text goes.
fn open_device(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    if is_stdout(path) {
        use std::os::fd::AsFd as _;

        return Ok(io::stdout().as_fd().try_clone_to_owned()?.into());
    }
    File::options().append(true).open(path)
}

/// Returns the folder of a file.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Creates a folder that only this user can read, if it is missing.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Returns the path of the program's own file beside another one; for a link, beside its target.
pub(crate) fn beside(path: &Path, what: &str) -> PathBuf {
    let target = match path.canonicalize() {
        Ok(target) if path.is_symlink() => target,
        _ => path.to_owned(),
    };
    let mut path = target.into_os_string();
    path.push(".petstore-");
    path.push(what);
    path.into()
}

/// Locks a file for a change. Waits for other processes that hold the lock.
pub(crate) fn lock(path: &Path, system: &System) -> Result<File> {
    open_lock(path).map_err(|problem| not_written(&system.shown(path), &problem))
}

fn open_lock(path: &Path) -> io::Result<File> {
    create_private(folder(path))?;
    let file = File::create(path.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

/// Reads a file of up to a megabyte; `None` if it does not exist. An error gets the given kind.
pub(crate) fn read(path: &Path, kind: Kind, system: &System) -> Result<Option<String>> {
    text(path).map_err(|problem| {
        let path = system.shown(path);
        CliError::io(kind, format!("cannot read {path}"), &problem)
    })
}

fn text(path: &Path) -> io::Result<Option<String>> {
    const MAX_SIZE: u64 = 1 << 20;

    let file = match File::open(path) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    let text = String::from_utf8(bytes);
    text.map(Some)
        .map_err(|_| io::Error::other("it is not UTF-8"))
}

/// Removes a file. Returns whether it existed.
pub(crate) fn remove(path: &Path, system: &System) -> Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(problem) => {
            let action = format!("cannot remove {}", system.shown(path));
            Err(CliError::io(Kind::Internal, action, &problem))
        }
    }
}

/// Returns the mode of a file if others than its owner can read or write it.
#[cfg(unix)]
pub(crate) fn open_to_others(path: &Path) -> io::Result<Option<u32>> {
    use std::os::unix::fs::PermissionsExt as _;

    let data = std::fs::metadata(path)?;
    let mode = data.permissions().mode() & 0o777;
    // A pipe from the shell (`<(…)`) is private, whatever its mode is.
    if data.is_file() && mode & 0o077 != 0 {
        return Ok(Some(mode));
    }
    Ok(None)
}

/// On other systems, files below a user's folders are private.
#[cfg(not(unix))]
pub(crate) fn open_to_others(_: &Path) -> io::Result<Option<u32>> {
    Ok(None)
}

/// Returns whether others than this user and root can change a file.
#[cfg(unix)]
pub(crate) fn is_writable_by_others(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    let data = std::fs::metadata(path)?;
    let user = rustix::process::geteuid().as_raw();
    Ok(data.mode() & 0o022 != 0 || ![user, 0].contains(&data.uid()))
}

/// On other systems, files below a user's folders are private.
#[cfg(not(unix))]
pub(crate) fn is_writable_by_others(_: &Path) -> io::Result<bool> {
    Ok(false)
}
