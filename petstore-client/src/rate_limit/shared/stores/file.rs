//! A store for the processes of one machine: a file for each key.
//!
//! An update locks the file, reads a page, writes it and unlocks the file: a few system calls that
//! do not block. An update only tries the lock, because a suspended process may hold it. An update
//! counts only if the file is still at its path. So if the folder is deleted, moved or replaced,
//! all processes continue with the same new file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::folder::{self, PlacedFile, Secret, member_path};
use crate::clock;
use crate::rate_limit::shared::slot::{MEMBER_LEASE, MemberId};
use crate::rate_limit::shared::store::{Change, LimitStore, RecordKey, StoreError, StoreTime};

/// The start of a file. The record's length (2 bytes) and CRC (4 bytes) follow.
const MAGIC: [u8; 4] = *b"PSL1";
const HEADER: usize = 10;
const PAGE: usize = 4_096;
/// An update tries the lock for this long, with pauses of 1, 2, 4, 8 and then 16 ms. A process
/// normally holds it for microseconds, but may not be scheduled for a while.
const LOCK_TIMEOUT: Duration = Duration::from_millis(600);
/// How often an update opens the files again because they were deleted, moved or replaced meanwhile.
const MAX_REOPENINGS: u32 = 8;
/// How often the store checks whether a member still runs.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// A longer update blocks the runtime for too long. The file may be on a network.
const MAX_UPDATE_TIME: Duration = Duration::from_millis(100);
/// The maximum number of keys with open files. Each key has two.
const MAX_OPEN_KEYS: usize = 64;
/// How long a file is not used after two slow updates in a row.
const SLOW_PAUSE: Duration = Duration::from_secs(10);

/// Shares limits between the processes of one machine, through files in a folder.
///
/// There is one file for each key and origin, and one for each process that uses it. The folder is
/// created if it is missing, for this user only. Neither files nor their names show a key. The folder
/// should be on a local disk: on a network, one machine may not see the locks of another. A file that is
/// damaged or deleted is replaced.
///
/// Clones share the open files, so a program can keep one to [`close`](Self::close) them.
///
/// ```no_run
/// use petstore_client::{Client, rate_limit::FileStore};
///
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .shared_limits(FileStore::new("/var/lib/kennel/limits"))
///     .build()?;
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FileStore {
    folder: PathBuf,
    open: Arc<Mutex<OpenKeys>>,
}

/// The open files of a store.
#[derive(Debug)]
struct OpenKeys {
    /// The process that opened the files. After a fork, parent and child share them and their
    /// locks.
    process: u32,
    secret: Option<Arc<Secret>>,
    keys: HashMap<RecordKey, OpenKey>,
    /// When files were last found to be deleted, moved or replaced.
    replaced_at: Option<Instant>,
}

#[derive(Debug)]
struct OpenKey {
    files: Arc<KeyFiles>,
    used_at: Instant,
}

/// The files of a key.
#[derive(Debug)]
struct KeyFiles {
    secret: Arc<Secret>,
    record: PlacedFile,
    /// After files were replaced, until when a member without a file may still be alive: it may not
    /// have noticed yet.
    settled_at: Option<Instant>,
    state: Mutex<KeyState>,
    /// When members were last seen alive.
    members: Mutex<HashMap<MemberId, Instant>>,
}

#[derive(Debug, Default)]
struct KeyState {
    own: Option<OwnFile>,
    is_swept: bool,
    slow_updates: u32,
    slow_until: Option<Instant>,
}

/// The file of this process, which it keeps locked while it runs.
#[derive(Debug)]
struct OwnFile {
    member: MemberId,
    file: PlacedFile,
}

/// Why a record was not updated.
enum Failure {
    /// Another process holds a lock.
    Locked,
    /// Files were deleted, moved or replaced.
    Replaced,
    Slow,
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::WouldBlock {
            Self::Locked
        } else if folder::is_missing(&error) {
            Self::Replaced
        } else {
            Self::Io(error)
        }
    }
}

impl FileStore {
    /// Creates a store in a folder. It opens nothing before the first update.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            open: Arc::new(Mutex::new(OpenKeys::new())),
        }
    }

    /// Closes all files, and removes those of this process. Call it before a process ends, after
    /// [`Client::synchronize_rate_limits`](crate::Client::synchronize_rate_limits). A later update opens
    /// them again.
    pub fn close(&self) {
        let keys = std::mem::take(&mut self.open_keys().keys);
        for open in keys.into_values() {
            lock(&open.files.state).remove_own();
        }
    }

    fn open_keys(&self) -> MutexGuard<'_, OpenKeys> {
        let mut open = lock(&self.open);
        if open.process != std::process::id() {
            *open = OpenKeys::new();
        }
        open
    }

    fn try_update(&self, key: &RecordKey, change: &mut Change<'_>) -> Result<(), Failure> {
        let files = self.open_keys().files(&self.folder, key)?;
        files.update(change)
    }
}

impl LimitStore for FileStore {
    async fn update(&self, key: &RecordKey, mut change: Change<'_>) -> Result<(), StoreError> {
        let began = clock::now();
        let (mut tries, mut reopenings) = (0_u32, 0_u32);
        loop {
            match self.try_update(key, &mut change) {
                Ok(()) => return Ok(()),
                Err(Failure::Locked) if began.elapsed() <= LOCK_TIMEOUT => {
                    sleep(Duration::from_millis(1 << tries.min(4))).await;
                    tries += 1;
                }
                Err(Failure::Locked) => break,
                Err(Failure::Replaced) if reopenings < MAX_REOPENINGS => {
                    self.open_keys().close_replaced(key);
                    reopenings += 1;
                }
                Err(Failure::Replaced) => {
                    return Err(StoreError::new("its folder cannot be kept in place"));
                }
                Err(Failure::Slow) => return Err(StoreError::new("its file system is slow")),
                Err(Failure::Io(error)) => {
                    // The next update opens it again.
                    self.open_keys().keys.remove(key);
                    return Err(StoreError::new(error));
                }
            }
        }
        // Pages are written in one piece, so a page can be read without the lock.
        let files = self.open_keys().files(&self.folder, key);
        if let Ok(files) = files {
            files.show(&mut change);
        }
        Err(StoreError::new(
            "another process holds the lock of its file",
        ))
    }

    async fn forget(&self, key: Option<&RecordKey>) -> Result<(), StoreError> {
        let forgotten = match key {
            Some(key) => {
                let secret = self.open_keys().secret(&self.folder);
                secret.and_then(|secret| folder::remove(&secret.record_path(key)))
            }
            None => folder::empty(&self.folder),
        };
        forgotten.map_err(StoreError::new)
    }

    fn location(&self) -> Cow<'_, str> {
        self.folder.to_string_lossy()
    }

    fn is_alive(&self, key: &RecordKey, member: MemberId) -> Option<bool> {
        let files = self.open_keys().keys.get(key)?.files.clone();
        files.is_alive(member)
    }

    fn has_left(&self, key: &RecordKey, member: MemberId) {
        let files = self
            .open_keys()
            .keys
            .get(key)
            .map(|open| Arc::clone(&open.files));
        if let Some(files) = files {
            files.remove_own(member);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenKeys {
    fn new() -> Self {
        Self {
            process: std::process::id(),
            secret: None,
            keys: HashMap::new(),
            replaced_at: None,
        }
    }

    /// Returns the files of a key. Opens them if they are not open.
    fn files(&mut self, folder: &Path, key: &RecordKey) -> io::Result<Arc<KeyFiles>> {
        let now = clock::now();
        if let Some(open) = self.keys.get_mut(key) {
            open.used_at = now;
            return Ok(Arc::clone(&open.files));
        }
        if self.keys.len() >= MAX_OPEN_KEYS {
            self.close_unused();
        }
        let secret = self.secret(folder)?;
        let settled_at = self.replaced_at.map(|at| at + MEMBER_LEASE);
        let files = Arc::new(KeyFiles::open(secret, key, settled_at)?);
        let open = OpenKey {
            files: Arc::clone(&files),
            used_at: now,
        };
        self.keys.insert(key.clone(), open);
        Ok(files)
    }

    fn secret(&mut self, folder: &Path) -> io::Result<Arc<Secret>> {
        if let Some(secret) = &self.secret
            && secret.is_in_place()?
        {
            return Ok(Arc::clone(secret));
        }
        let secret = Arc::new(Secret::open(folder)?);
        self.secret = Some(Arc::clone(&secret));
        Ok(secret)
    }

    /// Closes the files of the least recently used key.
    fn close_unused(&mut self) {
        let first = self.keys.iter().min_by_key(|(_, open)| open.used_at);
        if let Some(key) = first.map(|(key, _)| key.clone()) {
            self.keys.remove(&key);
        }
    }

    /// Closes files that are no longer at their paths.
    fn close_replaced(&mut self, key: &RecordKey) {
        self.keys.remove(key);
        self.replaced_at = Some(clock::now());
    }
}

impl KeyFiles {
    fn open(secret: Arc<Secret>, key: &RecordKey, settled_at: Option<Instant>) -> io::Result<Self> {
        let record = PlacedFile::open(secret.record_path(key))?;
        if record.file().metadata()?.len() < PAGE as u64 {
            // A full disk is detected here, before anything can be lost.
            write_page(record.file(), &[0; PAGE])?;
        }
        Ok(Self {
            secret,
            record,
            settled_at,
            state: Mutex::default(),
            members: Mutex::default(),
        })
    }

    fn update(&self, change: &mut Change<'_>) -> Result<(), Failure> {
        let began = clock::now();
        let mut state = lock(&self.state);
        if state.slow_until.is_some_and(|until| began < until) {
            return Err(Failure::Slow);
        }
        self.record.file().try_lock().map_err(io::Error::from)?;
        let updated = self.update_locked(&mut state, change);
        self.record.file().unlock()?;
        updated?;
        if began.elapsed() <= MAX_UPDATE_TIME {
            state.slow_updates = 0;
            return Ok(());
        }
        state.slow_updates += 1;
        if state.slow_updates > 1 {
            state.slow_until = Some(clock::now() + SLOW_PAUSE);
        }
        Ok(())
    }

    fn update_locked(&self, state: &mut KeyState, change: &mut Change<'_>) -> Result<(), Failure> {
        if !(self.record.is_in_place()? && self.secret.is_in_place()?) {
            return Err(Failure::Replaced);
        }
        state.hold_own(self.record.path(), change.member())?;
        if !state.is_swept {
            folder::sweep(self.record.path())?;
            state.is_swept = true;
        }
        let mut page = [0; PAGE];
        let length = read_page(self.record.file(), &mut page)?;
        let current = record_of(&page[..length]);
        if current.is_none() && page[..MAGIC.len()] != [0; 4] {
            let path = self.record.path().display();
            tracing::warn!(%path, "the file of shared rate limits is damaged, and is replaced");
        }
        // A time from before the lock would be old by the time that it took to get it.
        let record = change.apply(current, now());
        let length = u16::try_from(record.len()).unwrap_or(0).to_le_bytes();
        let crc = crc32fast::hash(&record).to_le_bytes();
        let page = [&MAGIC[..], &length, &crc, &record].concat();
        Ok(write_page(self.record.file(), &page)?)
    }

    /// Shows the record to a member, although it cannot be updated.
    fn show(&self, change: &mut Change<'_>) {
        let mut page = [0; PAGE];
        let _state = lock(&self.state);
        let length = read_page(self.record.file(), &mut page).unwrap_or(0);
        if let Some(current) = record_of(&page[..length]) {
            change.apply(Some(current), now());
        }
    }

    fn is_alive(&self, member: MemberId) -> Option<bool> {
        let now = clock::now();
        let mut members = lock(&self.members);
        members.retain(|_, seen| now.saturating_duration_since(*seen) < CHECK_INTERVAL);
        if members.contains_key(&member) {
            return Some(true);
        }
        if folder::remove_unless_locked(&member_path(self.record.path(), member))? {
            members.insert(member, now);
            return Some(true);
        }
        let is_settled = self.settled_at.is_none_or(|settled_at| settled_at <= now);
        is_settled.then_some(false)
    }

    fn remove_own(&self, member: MemberId) {
        let mut state = lock(&self.state);
        if state.own.as_ref().is_some_and(|own| own.member == member) {
            state.remove_own();
        }
    }
}

impl KeyState {
    /// Makes sure that the member's file exists and is locked.
    fn hold_own(&mut self, record: &Path, member: MemberId) -> Result<(), Failure> {
        if let Some(own) = &self.own {
            if own.member == member && own.file.is_in_place()? {
                return Ok(());
            }
            self.remove_own();
        }
        let file = PlacedFile::open(member_path(record, member))?;
        file.file().try_lock().map_err(io::Error::from)?;
        self.own = Some(OwnFile { member, file });
        Ok(())
    }

    fn remove_own(&mut self) {
        if let Some(own) = self.own.take() {
            // If this fails, another process removes it.
            let _ = folder::remove(own.file.path());
        }
    }
}

/// Returns the record in a page, if it is intact.
fn record_of(page: &[u8]) -> Option<&[u8]> {
    let (header, rest) = page.split_at_checked(HEADER)?;
    let (magic, numbers) = header.split_at(MAGIC.len());
    let length = usize::from(u16::from_le_bytes(numbers[..2].try_into().ok()?));
    let record = rest.get(..length)?;
    let crc = u32::from_le_bytes(numbers[2..].try_into().ok()?);
    (magic == MAGIC && crc == crc32fast::hash(record)).then_some(record)
}

fn read_page(mut file: &File, page: &mut [u8]) -> io::Result<usize> {
    file.rewind()?;
    file.read(page)
}

fn write_page(mut file: &File, page: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(page)
}

/// Returns the time since boot. All processes of the machine share this clock, and nobody can set
/// it.
#[cfg(target_os = "linux")]
fn now() -> StoreTime {
    static BOOT: std::sync::LazyLock<u64> = std::sync::LazyLock::new(|| {
        let id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        crc32fast::hash(&id).into()
    });
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    StoreTime::new(
        *BOOT,
        clock::on_runtime(Duration::try_from(since).unwrap_or_default()),
    )
}

/// Returns the wall clock's time, because other clocks differ between processes.
#[cfg(not(target_os = "linux"))]
fn now() -> StoreTime {
    let since = clock::wall()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    StoreTime::new(0, clock::on_runtime(since))
}
