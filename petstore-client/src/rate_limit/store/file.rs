//! A store for the processes of one machine: a file for each key.
//!
//! An exchange locks the file, reads it, writes it and unlocks it: a few system calls that do not block. It only
//! tries the lock, because a suspended process may hold it. An exchange counts only if the file is still at its
//! path. So if the file is deleted or its folder moved, all processes go on with the same new one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{FORMAT, StoreError};
use crate::clock;
use crate::rate_limit::quota::instant::{LedgerTime, micros};
use crate::rate_limit::quota::{Answer, Ledger, Report};

/// The start of a file. The number of the boot, the ledger's length and its checksum follow, each with 4
/// bytes.
const MAGIC: [u8; 4] = *b"PSLF";
const HEADER: usize = 16;
/// The most that is read of a longer file.
const MAX_LENGTH: usize = 1 << 20;
/// The lock is tried for this long. A process holds it for microseconds, but may not be scheduled for a while.
const LOCK_TIMEOUT: Duration = Duration::from_millis(600);
const MAX_LOCK_PAUSE: Duration = Duration::from_millis(16);
/// How often an exchange opens the file again because it was deleted or replaced meanwhile.
const MAX_REOPENINGS: u32 = 8;
/// `FILE_SHARE_READ` and `FILE_SHARE_WRITE`, without `FILE_SHARE_DELETE`: nobody can delete or move an open file.
#[cfg(windows)]
const SHARED_ON_WINDOWS: u32 = 1 | 2;
/// The maximum number of keys whose files stay open.
const MAX_OPEN: usize = 64;
/// A longer exchange blocks the runtime for too long. The file may be on a network. After two of these in a
/// row, it is not used for `SLOW_PAUSE`.
const MAX_TIME: Duration = Duration::from_millis(100);
const SLOW_PAUSE: Duration = Duration::from_secs(10);

/// Shares limits between the processes of one machine, through files in a folder.
///
/// There is one small file for each key and origin; other files in the folder are left alone. The folder is
/// created if it is missing, for this user only. Neither the files nor their names show a key. The folder
/// should be on a local disk: on a network, one machine may not see the locks of another. Nobody else should be
/// able to write to it, because links in it are followed. A file that is damaged or deleted is replaced.
///
/// ```no_run
/// use petstore_client::Client;
/// use petstore_client::limits::{FileStore, Limits};
///
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .limits(Limits::new().store(FileStore::new("/var/lib/kennel/limits")))
///     .build()?;
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FileStore {
    folder: PathBuf,
    /// The number of open files.
    open: Arc<AtomicUsize>,
}

/// The file of one key's ledger.
#[derive(Debug)]
pub(crate) struct LedgerFile {
    path: PathBuf,
    open: Arc<AtomicUsize>,
    state: Mutex<FileState>,
}

#[derive(Debug, Default)]
struct FileState {
    file: Option<OpenFile>,
    /// The ledger as this process has seen it last.
    last: Ledger,
    buffer: Vec<u8>,
    slow_exchanges: u32,
    slow_until: Option<Instant>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    identity: Identity,
    /// The process that opened the file. After a fork, both would share its lock.
    process: u32,
    _counted: Counted,
}

/// Counts an open file.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

/// Identifies a file in its file system. No other file gets the same numbers while it is open.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

/// Why an exchange did not succeed.
enum Failure {
    /// Another process holds the lock.
    Locked,
    /// The file was deleted, moved or replaced.
    Replaced,
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::WouldBlock {
            Self::Locked
        } else {
            Self::Io(error)
        }
    }
}

impl FileStore {
    /// Creates a store in a folder. It opens nothing before the first call.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            open: Arc::default(),
        }
    }

    pub(super) fn ledger(&self, name: &str) -> LedgerFile {
        LedgerFile {
            path: self.folder.join(format!("{name}-{FORMAT}.limits")),
            open: Arc::clone(&self.open),
            state: Mutex::default(),
        }
    }

    /// Returns what tells it from other stores.
    pub(super) fn identity(&self) -> [&[u8]; 1] {
        [self.folder.as_os_str().as_encoded_bytes()]
    }
}

impl LedgerFile {
    pub(super) async fn exchange(&self, report: &Report) -> Result<Answer, StoreError> {
        let mut pause = Duration::from_millis(1);
        let mut waited = Duration::ZERO;
        loop {
            if let Some(result) = self.try_exchange(report) {
                return result;
            }
            if waited > LOCK_TIMEOUT {
                return Err(StoreError::new(
                    "another process holds the lock of its file",
                ));
            }
            sleep(pause).await;
            waited += pause;
            pause = (pause * 2).min(MAX_LOCK_PAUSE);
        }
    }

    /// Returns `None` if another process holds the lock.
    pub(super) fn try_exchange(&self, report: &Report) -> Option<Result<Answer, StoreError>> {
        let mut state = self.state();
        let began = clock::now();
        if state.slow_until.is_some_and(|until| began < until) {
            return Some(Err(StoreError::new("its file system is slow")));
        }
        for _ in 0..MAX_REOPENINGS {
            match state.try_exchange(&self.path, &self.open, report) {
                Ok(answer) => {
                    state.note_time(began.elapsed());
                    if self.open.load(Ordering::Relaxed) > MAX_OPEN {
                        state.file = None;
                    }
                    return Some(Ok(answer));
                }
                Err(Failure::Locked) => return None,
                Err(Failure::Replaced) => state.file = None,
                Err(Failure::Io(error)) => {
                    state.file = None;
                    return Some(Err(StoreError::new(error)));
                }
            }
        }
        Some(Err(StoreError::new("its file cannot be kept in place")))
    }

    pub(super) fn last_seen(&self) -> (Ledger, LedgerTime) {
        (self.state().last.clone(), now())
    }

    pub(super) fn location(&self) -> String {
        let folder = self.path.parent().unwrap_or(&self.path);
        folder.display().to_string()
    }

    fn state(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileState {
    fn try_exchange(
        &mut self,
        path: &Path,
        open: &Arc<AtomicUsize>,
        report: &Report,
    ) -> Result<Answer, Failure> {
        let process = std::process::id();
        let open = match self.file.take() {
            Some(file) if file.process == process => file,
            _ => OpenFile::open(path, open, process)?,
        };
        let open = self.file.insert(open);
        open.file.try_lock().map_err(io::Error::from)?;
        let answer = exchange(open, path, &mut self.last, &mut self.buffer, report);
        open.file.unlock()?;
        answer
    }

    /// Notes how long an exchange has taken.
    fn note_time(&mut self, time: Duration) {
        if time <= MAX_TIME {
            self.slow_exchanges = 0;
            return;
        }
        self.slow_exchanges += 1;
        if self.slow_exchanges > 1 {
            self.slow_until = Some(clock::now() + SLOW_PAUSE);
        }
    }
}

/// Makes an exchange with a file that is locked.
fn exchange(
    open: &OpenFile,
    path: &Path,
    last: &mut Ledger,
    buffer: &mut Vec<u8>,
    report: &Report,
) -> Result<Answer, Failure> {
    if !open.identity.is_at(path)? {
        return Err(Failure::Replaced);
    }
    let mut ledger = match read(&open.file, buffer)? {
        Some(stored) if !stored.is_older_than(last) => stored,
        // The file is new or damaged, or an old one is back. What this process knows is better, but others may have
        // sent meanwhile.
        _ => last.clone().doubted(),
    };
    // A time from before the lock would be old by the time that it took to get it.
    let answer = ledger.exchange(report, now());
    write(&open.file, &ledger, buffer)?;
    *last = ledger;
    Ok(answer)
}

impl OpenFile {
    /// Opens a file that only this user can read. Creates it, and its folder, if they are missing.
    fn open(path: &Path, open: &Arc<AtomicUsize>, process: u32) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            create_folder(folder)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        #[cfg(windows)]
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, SHARED_ON_WINDOWS);
        let file = options.open(path)?;
        let identity = Identity::of(&file.metadata()?);
        open.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            file,
            identity,
            process,
            _counted: Counted(Arc::clone(open)),
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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

    /// No numbers are needed: [`SHARED_ON_WINDOWS`] keeps an open file and its folder in their place.
    #[cfg(not(unix))]
    fn of(_: &std::fs::Metadata) -> Self {
        Self {}
    }

    /// Returns whether other processes find this file at its path.
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        use io::ErrorKind::{NotADirectory, NotFound};

        match std::fs::metadata(path) {
            Ok(found) => Ok(Self::of(&found) == *self),
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Creates a folder that only this user can access.
fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Returns the ledger in a file; `None` if the file is new or damaged.
fn read(mut file: &File, buffer: &mut Vec<u8>) -> io::Result<Option<Ledger>> {
    /// Most ledgers are shorter than this, and are read in one piece.
    const PAGE: usize = 4_096;

    file.rewind()?;
    buffer.resize(PAGE, 0);
    let mut length = file.read(buffer)?;
    if length == PAGE {
        length += file.take(MAX_LENGTH as u64).read_to_end(buffer)?;
    }
    let ledger = parse(&buffer[..length]);
    if ledger.is_none() && length > 0 {
        file.set_len(0)?;
    }
    Ok(ledger)
}

fn parse(bytes: &[u8]) -> Option<Ledger> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let field = |at: usize| {
        let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        u32::from_le_bytes(bytes)
    };
    if header[..4] != MAGIC {
        return None;
    }
    let stored = rest.get(..usize::try_from(field(8)).ok()?)?;
    if crc32fast::hash(stored) != field(12) {
        return None;
    }
    // Its times are of an earlier boot.
    if field(4) != *BOOT {
        return Some(Ledger::default());
    }
    let ledger: Ledger = postcard::from_bytes(stored).ok()?;
    ledger.is_plausible().then_some(ledger)
}

/// Writes a file in one piece, so that a process that is killed leaves no half of it.
fn write(mut file: &File, ledger: &Ledger, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    buffer.resize(HEADER, 0);
    let header = std::mem::take(buffer);
    *buffer = postcard::to_extend(ledger, header).map_err(io::Error::other)?;
    let length = u32::try_from(buffer.len() - HEADER).map_err(io::Error::other)?;
    let checksum = crc32fast::hash(&buffer[HEADER..]);
    buffer[..4].copy_from_slice(&MAGIC);
    buffer[4..8].copy_from_slice(&BOOT.to_le_bytes());
    buffer[8..12].copy_from_slice(&length.to_le_bytes());
    buffer[12..16].copy_from_slice(&checksum.to_le_bytes());
    file.rewind()?;
    file.write_all(buffer)
}

/// Identifies this boot of the machine, in which the times of a file are counted.
#[cfg(target_os = "linux")]
static BOOT: LazyLock<u32> = LazyLock::new(|| {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id");
    crc32fast::hash(&id.unwrap_or_default())
});

/// Times are those of the wall clock, which goes on.
#[cfg(not(target_os = "linux"))]
static BOOT: LazyLock<u32> = LazyLock::new(|| 0);

/// Returns the time since the machine was started, including the time in which it was suspended. Nobody can
/// set this clock.
#[cfg(target_os = "linux")]
fn now() -> LedgerTime {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let since = Duration::try_from(since).unwrap_or_default();
    LedgerTime(micros(clock::on_runtime(since)))
}

/// Returns the wall clock's time, because the other clocks of processes differ.
#[cfg(not(target_os = "linux"))]
fn now() -> LedgerTime {
    let since = clock::wall().duration_since(std::time::UNIX_EPOCH);
    LedgerTime(micros(clock::on_runtime(since.unwrap_or_default())))
}
