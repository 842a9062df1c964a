//! The folder of a file store: its secret, the names of its files, and what ended processes have left.

use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::clock;
use crate::rate_limit::quota::refusals::MAX_BLOCK;
use crate::rate_limit::shared::slot::MemberId;
use crate::rate_limit::shared::store::RecordKey;

/// The length of a folder's secret, in hexadecimal digits.
const SECRET_LENGTH: usize = 64;
/// The number of hexadecimal digits of a member in the name of its file.
const MEMBER_LENGTH: usize = 16;
/// The ending of a record's name.
const RECORD: &str = "limits";
/// A file that nobody has written for this long is useless: the longest block is over.
const MAX_AGE: Duration = MAX_BLOCK.saturating_add(Duration::from_secs(3600));

/// An open file, and the path at which other processes look for it.
#[derive(Debug)]
pub(super) struct PlacedFile {
    file: File,
    path: PathBuf,
    identity: Identity,
}

/// Identifies a file in its file system. No other file gets the same numbers while it is open.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl PlacedFile {
    /// Opens a file that only this user can read. Creates it if it is missing.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // With a pipe, the next line or a read would wait for its other end.
        if is_pipe(&path) {
            let problem = format!("{} is a pipe, and not a file", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let file = options.open(&path)?;
        let identity = Identity::of(&file.metadata()?);
        Ok(Self {
            file,
            path,
            identity,
        })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether other processes find this file at its path. They do not if it, or its folder,
    /// was deleted, moved or replaced.
    pub(super) fn is_in_place(&self) -> io::Result<bool> {
        match std::fs::metadata(&self.path) {
            Ok(found) => Ok(Identity::of(&found) == self.identity),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Identity {
    #[cfg(unix)]
    fn of(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;

        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// No numbers are needed: Windows neither deletes an open file nor moves its folder.
    #[cfg(not(unix))]
    fn of(_: &std::fs::Metadata) -> Self {
        Self {}
    }
}

/// The secret of a folder. File names are hashes with this secret, so nobody else can check a
/// guessed key against them.
#[derive(Debug)]
pub(super) struct Secret {
    file: PlacedFile,
    digits: Vec<u8>,
}

impl Secret {
    /// Reads the secret. Creates it, and the folder, if they are missing. Fails with `WouldBlock` while
    /// another process reads or writes it.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        create_folder(folder)?;
        let placed = PlacedFile::open(folder.join("secret"))?;
        let mut file = placed.file();
        file.try_lock()?;
        let mut digits = Vec::new();
        file.take(SECRET_LENGTH as u64 + 1)
            .read_to_end(&mut digits)?;
        if digits.len() != SECRET_LENGTH {
            digits = random_digits();
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&digits)?;
        }
        file.unlock()?;
        Ok(Self {
            file: placed,
            digits,
        })
    }

    pub(super) fn is_in_place(&self) -> io::Result<bool> {
        self.file.is_in_place()
    }

    /// Returns the path of a key's record.
    pub(super) fn record_path(&self, key: &RecordKey) -> PathBuf {
        let digest = Sha256::new()
            .chain_update(&self.digits)
            .chain_update(key.as_str())
            .finalize();
        let name: String = digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.file.path().with_file_name(name).with_extension(RECORD)
    }
}

fn random_digits() -> Vec<u8> {
    // std seeds it with 128 random bits of the operating system.
    let random = RandomState::new();
    let parts = (0..4_u64).map(|part| format!("{:016x}", random.hash_one(part)));
    parts.collect::<String>().into_bytes()
}

/// Creates a folder that only this user can access.
fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Returns the path of a member's file beside a record.
pub(super) fn member_path(record: &Path, member: MemberId) -> PathBuf {
    record.with_extension(format!("{:0MEMBER_LENGTH$x}", member.get()))
}

/// What a file in the folder is, by its name.
enum Name {
    Secret,
    Record,
    Member,
    /// A file that no store has made.
    Foreign,
}

impl Name {
    fn of(path: &Path) -> Self {
        let text = path.file_name().and_then(|name| name.to_str());
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match text.map(|text| text.split_once('.').unwrap_or((text, ""))) {
            Some(("secret", "")) => Self::Secret,
            Some((_, RECORD)) => Self::Record,
            Some((_, member)) if member.len() == MEMBER_LENGTH && is_hex(member) => Self::Member,
            _ => Self::Foreign,
        }
    }
}

/// Removes the files of ended members of this record, which the caller has locked, and all
/// unlocked files that are older than the longest block.
pub(super) fn sweep(record: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(record.parent().unwrap_or(record))? {
        let path = entry?.path();
        let is_beside = path.file_stem() == record.file_stem();
        match Name::of(&path) {
            Name::Member if is_beside || is_old(&path) => {
                remove_unless_locked(&path);
            }
            Name::Record if !is_beside && is_old(&path) => {
                remove_unless_locked(&path);
            }
            Name::Member | Name::Record | Name::Secret | Name::Foreign => {}
        }
    }
    Ok(())
}

fn is_old(path: &Path) -> bool {
    let written = path.metadata().and_then(|metadata| metadata.modified());
    let age = written.map(|at| clock::wall().duration_since(at).unwrap_or_default());
    age.is_ok_and(|age| age > MAX_AGE)
}

/// Removes a file unless a process has locked it. Returns whether it is locked; `None` if that is
/// unknown.
pub(super) fn remove_unless_locked(path: &Path) -> Option<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return is_missing(&error).then_some(false),
    };
    match file.try_lock_shared() {
        Ok(()) => {
            // If this fails, the next check removes it.
            let _ = std::fs::remove_file(path);
            Some(false)
        }
        Err(TryLockError::WouldBlock) => Some(true),
        Err(TryLockError::Error(_)) => None,
    }
}

/// Removes all files that stores have made in a folder.
pub(super) fn empty(folder: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        match Name::of(&path) {
            Name::Secret | Name::Record | Name::Member => remove(&path)?,
            Name::Foreign => {}
        }
    }
    Ok(())
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if !is_missing(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Returns whether an error says that a file, or a folder on the way to it, is not there.
pub(super) fn is_missing(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};

    matches!(error.kind(), NotFound | NotADirectory)
}

#[cfg(unix)]
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;

    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_pipe(_: &Path) -> bool {
    false
}
