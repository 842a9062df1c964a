//! A store for the processes of one machine: a file for each key.
//!
//! An update locks the file, reads a page, writes it and unlocks the file: a few system calls that
//! do not block. It only tries the lock, because a suspended process may hold it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

use super::slot::MemberId;
use super::store::{Change, LimitStore, RecordKey, StoreError, StoreTime};
use crate::clock;

/// The start of a file. The record's length (2 bytes) and CRC (4 bytes) follow.
const MAGIC: [u8; 4] = *b"PSL1";
const HEADER: usize = 10;
const PAGE: usize = 4_096;
/// The length of a folder's secret, in hexadecimal digits.
const SECRET: usize = 64;
/// The lock is tried for this long, with pauses of 1, 2, 4, 8 and then 16 ms. A process normally holds it
/// for microseconds, but may not be scheduled for a while.
const LOCK_TIMEOUT: Duration = Duration::from_millis(600);
/// How often members are looked at, and whether the files are still in their place.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// An update that takes longer holds the runtime up: the file is on a network, perhaps.
const MAX_UPDATE_TIME: Duration = Duration::from_millis(100);
/// The most keys whose files are open: two each.
const MAX_OPEN_KEYS: usize = 64;
/// How long a file system is not used after it was slow twice.
const SLOW_PAUSE: Duration = Duration::from_secs(10);
/// The error in that time.
const SLOW: io::ErrorKind = io::ErrorKind::TimedOut;

/// Shares limits between the processes of one machine, through files in a folder.
///
/// There is one file for each key and origin, and one for each process that uses it. The folder is
/// created if it is missing, for this user only. Neither files nor their names show a key. The folder
/// should be on a local disk: on a network, one machine may not see the locks of another. A file that is
/// damaged or deleted is replaced.
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
#[derive(Debug)]
pub struct FileStore {
    folder: PathBuf,
    /// The open files of each key, and when they were last used.
    keys: Mutex<HashMap<RecordKey, (Arc<KeyFiles>, Instant)>>,
}

/// The files of a key.
#[derive(Debug)]
struct KeyFiles {
    path: PathBuf,
    open: Mutex<OpenFiles>,
    /// Which members run, and when that was checked.
    alive: Mutex<HashMap<MemberId, (Instant, bool)>>,
}

#[derive(Debug)]
struct OpenFiles {
    record: File,
    /// The file of this process, which it keeps locked while it runs.
    own: Option<(MemberId, File)>,
    looked_at: Instant,
    slow: u32,
    slow_until: Option<Instant>,
}

impl FileStore {
    /// Creates a store in a folder. It opens nothing before the first update.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            keys: Mutex::default(),
        }
    }

    fn files(&self, key: &RecordKey) -> io::Result<Arc<KeyFiles>> {
        let (mut keys, now) = (lock(&self.keys), clock::now());
        if let Some((files, used_at)) = keys.get_mut(key) {
            *used_at = now;
            return Ok(Arc::clone(files));
        }
        if keys.len() >= MAX_OPEN_KEYS {
            let first = keys.iter().min_by_key(|(_, (_, used_at))| *used_at);
            let first = first.map(|(key, _)| key.clone());
            first.and_then(|first| keys.remove(&first));
        }
        let path = self.path(key)?;
        let open = Mutex::new(OpenFiles::open(&path)?);
        let files = Arc::new(KeyFiles {
            path,
            open,
            alive: Mutex::default(),
        });
        keys.insert(key.clone(), (Arc::clone(&files), now));
        Ok(files)
    }

    /// Returns the path of a key's record. Without the folder's secret, nobody can check a guessed
    /// key against the name.
    fn path(&self, key: &RecordKey) -> io::Result<PathBuf> {
        create_folder(&self.folder)?;
        let digest = Sha256::new()
            .chain_update(secret(&self.folder)?)
            .chain_update(key.as_str())
            .finalize();
        Ok(self.folder.join(format!("{}.limits", hex(&digest[..16]))))
    }
}

impl LimitStore for FileStore {
    async fn update(&self, key: &RecordKey, mut change: Change<'_>) -> Result<(), StoreError> {
        let began = clock::now();
        for tries in 0_u32.. {
            let updated = self
                .files(key)
                .and_then(|files| lock(&files.open).update(&files.path, &mut change, now()));
            match updated {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if began.elapsed() > LOCK_TIMEOUT {
                        break;
                    }
                    sleep(Duration::from_millis(1 << tries.min(4))).await;
                }
                Err(error) => {
                    // The next update opens it again, unless it is known to be slow.
                    if error.kind() != SLOW {
                        lock(&self.keys).remove(key);
                    }
                    return Err(StoreError::new(error));
                }
            }
        }
        // A page is written whole, so that it can be read without the lock.
        if let Ok(files) = self.files(key) {
            lock(&files.open).show(&mut change, now());
        }
        Err(StoreError::new(
            "another process holds the lock of its file",
        ))
    }

    async fn forget(&self, key: Option<&RecordKey>) -> Result<(), StoreError> {
        let removed = |path: &Path| match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::new(error)),
            _ => Ok(()),
        };
        if let Some(key) = key {
            return removed(&self.path(key).map_err(StoreError::new)?);
        }
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(StoreError::new)?,
        };
        for entry in entries {
            let path = entry.map_err(StoreError::new)?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "limits")
            {
                removed(&path)?;
            }
        }
        Ok(())
    }

    fn location(&self) -> Cow<'_, str> {
        self.folder.to_string_lossy()
    }

    fn is_alive(&self, key: &RecordKey, member: MemberId) -> Option<bool> {
        let files = lock(&self.keys)
            .get(key)
            .map(|(files, _)| Arc::clone(files))?;
        let now = clock::now();
        let mut alive = lock(&files.alive);
        match alive.get(&member) {
            Some((at, alive)) if now.saturating_duration_since(*at) < CHECK_INTERVAL => {
                Some(*alive)
            }
            _ => {
                alive.retain(|_, (_, alive)| *alive);
                let is_alive = is_locked(&member_path(&files.path, member))?;
                alive.insert(member, (now, is_alive));
                Some(is_alive)
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenFiles {
    fn open(path: &Path) -> io::Result<Self> {
        let record = create(path)?;
        if record.metadata()?.len() < PAGE as u64 {
            // A full disk is detected here, before anything can be lost.
            write_page(&record, &[0; PAGE])?;
        }
        Ok(Self {
            record,
            own: None,
            looked_at: clock::now(),
            slow: 0,
            slow_until: None,
        })
    }

    /// Updates the record. Fails with `WouldBlock` where another process holds its lock.
    fn update(&mut self, path: &Path, change: &mut Change<'_>, now: StoreTime) -> io::Result<()> {
        let began = clock::now();
        if self.slow_until.is_some_and(|until| began < until) {
            return Err(io::Error::new(SLOW, "its file system is slow"));
        }
        self.look(path, change.member(), began)?;
        self.record.try_lock()?;
        let updated = self.update_locked(path, change, now);
        self.record.unlock()?;
        updated?;
        self.slow = if began.elapsed() > MAX_UPDATE_TIME {
            self.slow + 1
        } else {
            0
        };
        if self.slow > 1 {
            self.slow_until = Some(clock::now() + SLOW_PAUSE);
        }
        Ok(())
    }

    /// Shows the record to a member that cannot update it.
    fn show(&self, change: &mut Change<'_>, now: StoreTime) {
        let mut page = [0; PAGE];
        let length = read_page(&self.record, &mut page).unwrap_or(0);
        if let Some(current) = record_of(&page[..length]) {
            change.apply(Some(current), now);
        }
    }

    fn update_locked(
        &self,
        path: &Path,
        change: &mut Change<'_>,
        now: StoreTime,
    ) -> io::Result<()> {
        let mut page = [0; PAGE];
        let length = read_page(&self.record, &mut page)?;
        let current = record_of(&page[..length]);
        if current.is_none() && page[..MAGIC.len()] != [0; 4] {
            let path = path.display();
            tracing::warn!(%path, "the file of shared rate limits is damaged, and is replaced");
        }
        let record = change.apply(current, now);
        let length = u16::try_from(record.len()).unwrap_or(0).to_le_bytes();
        let crc = crc32fast::hash(&record).to_le_bytes();
        write_page(&self.record, &[&MAGIC[..], &length, &crc, &record].concat())
    }

    /// Checks at intervals whether the files still exist, and opens them again otherwise.
    fn look(&mut self, path: &Path, member: MemberId, now: Instant) -> io::Result<()> {
        let is_own = self.own.as_ref().is_some_and(|(own, _)| *own == member);
        if is_own && now.saturating_duration_since(self.looked_at) < CHECK_INTERVAL {
            return Ok(());
        }
        if is_deleted(&self.record)? {
            *self = Self::open(path)?;
        }
        self.looked_at = now;
        match &self.own {
            Some((own, file)) if *own == member && !is_deleted(file)? => {}
            _ => {
                let file = create(&member_path(path, member))?;
                file.try_lock()?;
                self.own = Some((member, file));
            }
        }
        Ok(())
    }
}

fn member_path(path: &Path, member: MemberId) -> PathBuf {
    path.with_extension(format!("{:016x}", member.get()))
}

/// Returns whether the process that locked a file still runs. Removes a leftover file.
fn is_locked(path: &Path) -> Option<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return (error.kind() == io::ErrorKind::NotFound).then_some(false),
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

/// Returns the record in a page, if it is intact.
fn record_of(page: &[u8]) -> Option<&[u8]> {
    let (header, rest) = page.split_at_checked(HEADER)?;
    let (magic, numbers) = header.split_at(MAGIC.len());
    let length = usize::from(u16::from_le_bytes(numbers[..2].try_into().ok()?));
    let record = rest.get(..length)?;
    let crc = u32::from_le_bytes(numbers[2..].try_into().ok()?);
    (magic == MAGIC && crc == crc32fast::hash(record)).then_some(record)
}

/// Creates a folder that only this user can access.
fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Opens a file that only this user can read. Creates it if it is missing.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Returns the folder's secret, which makes names that nobody else can make. Fails with `WouldBlock`
/// while another process reads or writes it.
fn secret(folder: &Path) -> io::Result<Vec<u8>> {
    let mut file = create(&folder.join("secret"))?;
    file.try_lock()?;
    let mut secret = Vec::new();
    file.read_to_end(&mut secret)?;
    if secret.len() != SECRET {
        // std seeds it with 128 random bits of the operating system.
        let random = RandomState::new();
        let parts = (0..4_u64).map(|part| format!("{:016x}", random.hash_one(part)));
        secret = parts.collect::<String>().into_bytes();
        file.set_len(0)?;
        write_page(&file, &secret)?;
    }
    Ok(secret)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(unix)]
fn is_deleted(file: &File) -> io::Result<bool> {
    Ok(std::os::unix::fs::MetadataExt::nlink(&file.metadata()?) == 0)
}

/// Windows does not delete an open file.
#[cfg(not(unix))]
fn is_deleted(_: &File) -> io::Result<bool> {
    Ok(false)
}

fn read_page(mut file: &File, page: &mut [u8]) -> io::Result<usize> {
    file.rewind()?;
    file.read(page)
}

fn write_page(mut file: &File, page: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(page)
}

/// Returns the time since boot, on a clock that all processes of the machine share and nobody
/// changes.
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
