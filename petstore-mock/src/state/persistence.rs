//! Keeps the store in a file. A pet confirmed with 201 survives a kill of the process and a power
//! failure.
//!
//! The file is a log: a first line with the format, then one line per commit, `CHECKSUM CHANGES`,
//! with the changes as a JSON array. A single thread writes. It takes all waiting changes, appends
//! them as one line, syncs the file, applies them in memory, and only then answers. The changes in
//! an incomplete last line were never confirmed, so the line is dropped. Any other invalid line
//! means that the file is damaged.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    iter, mem,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::sync::oneshot;

use super::store::{Change, ChangeError, Store};

/// The first line, with the version of the format.
pub(crate) const FORMAT: &str = "petstore-mock data 1\n";

/// The maximum number of changes per commit. It bounds how long the first of them waits.
const MAX_COMMIT: usize = 10_000;

/// How many times a lock is tried, and the pause between two tries: 0.2 s in all.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The error of a data file. The file stays unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Another server uses the file.
    #[error("another petstore-mock is using it: stop that one, or choose another file")]
    InUse,
    /// The file is not a data file.
    #[error("it is not a data file of this petstore-mock: choose another file")]
    Foreign,
    /// The file is damaged.
    #[error("it is damaged ({0}): restore a copy, or choose another file")]
    Damaged(String),
}

/// An open log.
#[derive(Debug)]
struct Log {
    file: File,
    /// The end of the last complete line.
    end: u64,
    /// Whether an incomplete line may follow. It is removed before the next commit.
    is_torn: bool,
    /// The length of the last line that failed to be written.
    needed: usize,
    /// The original file. It stays locked against servers that opened it before it was replaced.
    _found: File,
}

/// Locks a file. Tries again for a short time, because a lock may outlive its server for a moment:
/// a child process that is just being started has a copy of each open file until it runs its
/// program.
fn lock(file: &File) -> Result<(), DataError> {
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => pause(LOCK_PAUSE),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
    Err(DataError::InUse)
}

#[expect(
    clippy::disallowed_methods,
    reason = "it runs on a thread that may block"
)]
fn pause(length: Duration) {
    thread::sleep(length);
}

impl Log {
    /// Opens a file, or creates one with `first`. Compacts it if it has more than one commit.
    fn open(path: &Path, first: Store) -> Result<(Self, Store), DataError> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut found = options.open(path)?;
        // Reading a pipe or a device would never end, and replacing one would remove it.
        if !found.metadata()?.is_file() {
            return Err(DataError::Foreign);
        }
        // A link must stay a link, so the file that it names is replaced.
        let path = &fs::canonicalize(path)?;
        lock(&found)?;
        let mut bytes = Vec::new();
        found.read_to_end(&mut bytes)?;
        let is_new = bytes.is_empty();
        let content = if is_new {
            LogContent::new(first)
        } else {
            read(&bytes)?
        };
        drop(bytes);
        let LogContent {
            store,
            end,
            commits,
        } = content;
        let file = found.try_clone()?;
        let mut log = Self {
            file,
            end,
            is_torn: true,
            needed: 0,
            _found: found,
        };
        if commits != 1 {
            match log.replace(path, &store) {
                // The new name is durable only after its folder is synced.
                Ok(folder) => folder.map_or(Ok(()), |folder| folder.sync_all())?,
                // The file cannot be compacted, for example because the disk is full or the folder
                // cannot be written. Then it is used as it is.
                Err(_) if !is_new => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok((log, store))
    }

    /// Atomically replaces this file with one that contains a store, or does not change it. Returns
    /// its folder, to be synced. Only on Unix can a folder be opened like a file.
    fn replace(&mut self, path: &Path, store: &Store) -> io::Result<Option<File>> {
        // The new file is in the same folder, because a rename is atomic only within a file system.
        let mut beside = OsString::from(path);
        beside.push(format!(
            ".{}.{:?}.tmp",
            std::process::id(),
            thread::current().id()
        ));
        let all = [FORMAT.as_bytes(), &line(&[Change::Replace(store.clone())])?].concat();
        let written = File::create(&beside).and_then(|mut file| {
            // The new file is locked before it appears under its name.
            file.lock()?;
            file.write_all(&all)?;
            file.sync_all()?;
            let folder = path
                .parent()
                .filter(|_| cfg!(unix))
                .map(File::open)
                .transpose()?;
            fs::rename(&beside, path)?;
            Ok((file, folder))
        });
        if written.is_err() {
            // The new file may not exist. In any case, the first error is the one to report.
            let _ = fs::remove_file(&beside);
        }
        let (file, folder) = written?;
        (self.file, self.end, self.is_torn) = (file, all.len() as u64, false);
        Ok(folder)
    }

    /// Appends a commit, or does not change the log.
    fn append(&mut self, changes: &[Change]) -> io::Result<()> {
        let line = line(changes)?;
        self.write(&line)?;
        self.end += line.len() as u64;
        Ok(())
    }

    /// Checks whether the line that could not be written can be written now.
    fn probe(&mut self) -> io::Result<()> {
        self.write(&vec![b' '; self.needed])?;
        self.cut()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.cut()?;
        }
        self.is_torn = true;
        if let Err(error) = self
            .file
            .write_all(bytes)
            .and_then(|()| self.file.sync_data())
        {
            // If this fails too, it is tried again before the next commit.
            let _ = self.cut();
            self.needed = bytes.len();
            return Err(error);
        }
        self.is_torn = false;
        Ok(())
    }

    /// Removes what follows the last complete line.
    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.sync_data()?;
        self.is_torn = false;
        Ok(())
    }
}

/// Writes a commit.
pub(crate) fn line(changes: &[Change]) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(changes)?;
    let mut line = format!("{:08x} ", crc32fast::hash(&json)).into_bytes();
    line.extend(json);
    line.push(b'\n');
    Ok(line)
}

/// The content of a file, and the end of its last complete line.
pub(crate) struct LogContent {
    pub(crate) store: Store,
    end: u64,
    commits: usize,
}

impl LogContent {
    const fn new(store: Store) -> Self {
        Self {
            store,
            end: 0,
            commits: 0,
        }
    }

    /// Applies a commit, given without its line break.
    fn apply(&mut self, line: &[u8]) -> Result<(), String> {
        let (checksum, json) = line.split_at_checked(9).ok_or("it is not a commit")?;
        if checksum != format!("{:08x} ", crc32fast::hash(json)).as_bytes() {
            return Err("its checksum is wrong".to_owned());
        }
        let changes: Vec<Change> =
            serde_json::from_slice(json).map_err(|error| error.to_string())?;
        for mut change in changes {
            self.store
                .change(&mut change)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

pub(crate) fn read(bytes: &[u8]) -> Result<LogContent, DataError> {
    let commits = bytes
        .strip_prefix(FORMAT.as_bytes())
        .ok_or(DataError::Foreign)?;
    let mut content = LogContent::new(Store::default());
    content.end = FORMAT.len() as u64;
    for line in commits.split_inclusive(|byte| *byte == b'\n') {
        // The last commit may have been interrupted.
        let Some(commit) = line.strip_suffix(b"\n") else {
            break;
        };
        let number = content.commits + 2;
        content
            .apply(commit)
            .map_err(|what| DataError::Damaged(format!("line {number}: {what}")))?;
        content.commits += 1;
        content.end += line.len() as u64;
    }
    // The first commit is written together with the file.
    if content.commits == 0 {
        return Err(DataError::Damaged("it has no complete commit".to_owned()));
    }
    Ok(content)
}

type Outcome = Result<i64, ChangeError>;

/// A change, or `None` to check whether the file can be written.
struct Job {
    change: Option<Change>,
    done: oneshot::Sender<Outcome>,
}

/// An open data file.
#[derive(Debug)]
pub(crate) struct DataFile {
    open: Mutex<Option<(mpsc::Sender<Job>, JoinHandle<()>)>>,
    /// Whether the last commit failed.
    is_failing: Arc<AtomicBool>,
}

impl DataFile {
    /// Opens a file, or creates one with `first`. Also returns its content.
    pub(crate) async fn open(
        path: PathBuf,
        first: Store,
    ) -> Result<(Self, Arc<Mutex<Store>>), DataError> {
        let opened = tokio::task::spawn_blocking(move || Log::open(&path, first));
        let (log, store) = opened.await.map_err(io::Error::other)??;
        let store = Arc::new(Mutex::new(store));
        let is_failing = Arc::new(AtomicBool::new(false));
        let (jobs, waiting) = mpsc::channel();
        let work = {
            let (store, is_failing) = (Arc::clone(&store), Arc::clone(&is_failing));
            move || run(log, &store, &waiting, &is_failing)
        };
        let thread = thread::Builder::new()
            .name("petstore-mock-data".to_owned())
            .spawn(work)?;
        Ok((
            Self {
                open: Mutex::new(Some((jobs, thread))),
                is_failing,
            },
            store,
        ))
    }

    /// Makes a change in the file and in memory. Returns after both.
    pub(crate) async fn change(&self, change: Change) -> Outcome {
        self.send(Some(change)).await
    }

    /// Returns whether the file can be written. If the last write failed, tries again.
    pub(crate) async fn is_ready(&self) -> bool {
        !self.is_failing.load(Ordering::Relaxed) || self.send(None).await.is_ok()
    }

    async fn send(&self, change: Option<Change>) -> Outcome {
        let closed = || ChangeError::Unsaved("it is closed".to_owned());
        let (done, is_done) = oneshot::channel();
        match &*self.open.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((jobs, _)) => jobs.send(Job { change, done }).map_err(|_| closed())?,
            None => return Err(closed()),
        }
        is_done.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Writes waiting changes, and closes the file. After this has returned, another server can
    /// open it.
    pub(crate) fn close(&self) {
        let open = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((jobs, thread)) = open {
            drop(jobs);
            // A panicked thread has ended too.
            let _ = thread.join();
        }
    }
}

impl Drop for DataFile {
    fn drop(&mut self) {
        self.close();
    }
}

/// Applies changes until the data file is closed.
fn run(mut log: Log, store: &Mutex<Store>, waiting: &mpsc::Receiver<Job>, is_failing: &AtomicBool) {
    let lock = || store.lock().unwrap_or_else(PoisonError::into_inner);
    while let Ok(first) = waiting.recv() {
        // The changes are applied to a copy, which replaces the store when they are written.
        let mut next = lock().clone();
        let (mut changes, mut answers) = (Vec::new(), Vec::new());
        for Job { change, done } in iter::once(first).chain(waiting.try_iter().take(MAX_COMMIT)) {
            let Some(mut change) = change else {
                answers.push((done, 0));
                continue;
            };
            match next.change(&mut change) {
                Ok(id) => {
                    changes.push(change);
                    answers.push((done, id));
                }
                // If the client has left, nobody waits for the result.
                Err(error) => drop(done.send(Err(error))),
            }
        }
        if answers.is_empty() {
            continue;
        }
        let written = if changes.is_empty() {
            log.probe()
        } else {
            log.append(&changes)
        };
        is_failing.store(written.is_err(), Ordering::Relaxed);
        if written.is_ok() {
            let old = mem::replace(&mut *lock(), next);
            // The old pets are freed without the lock, because freeing a million of them takes
            // long.
            drop(old);
        }
        for (done, id) in answers {
            let error = |error: &io::Error| ChangeError::Unsaved(error.to_string());
            let _ = done.send(written.as_ref().map(|()| id).map_err(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SeedPet;

    fn add(id: i64) -> Change {
        Change::Add(SeedPet::new(format!("pet {id}"), 1).with_id(id))
    }

    fn file() -> Vec<u8> {
        let lines = [
            &[Change::Replace(Store::default())][..],
            &[add(1), add(2)],
            &[add(3)],
        ];
        let lines = lines.map(|changes| line(changes).unwrap()).concat();
        [FORMAT.as_bytes(), &lines].concat()
    }

    fn pets(bytes: &[u8]) -> Result<usize, String> {
        read(bytes)
            .map(|content| content.store.pets().len())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_last_line_that_was_interrupted_is_cut_off_wherever_it_was() {
        let whole = file();
        let last = line(&[add(3)]).unwrap().len();
        assert_eq!(pets(&whole), Ok(3));
        for cut in 1..=last {
            assert_eq!(pets(&whole[..whole.len() - cut]), Ok(2), "{cut}");
        }
    }

    #[test]
    fn a_changed_bit_is_found_wherever_it_is() {
        let whole = file();
        for at in FORMAT.len()..whole.len() {
            for bit in [0, 4, 6] {
                let mut changed = whole.clone();
                changed[at] ^= 1 << bit;
                let read = pets(&changed);
                // Without its end, the last line looks like an interrupted write.
                let is_cut = read == Ok(2) && at == whole.len() - 1;
                assert!(read.is_err() || is_cut, "byte {at}, bit {bit}: {read:?}");
            }
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_file() {
        for (bytes, wrong) in [
            (&b"notes"[..], "not a data file"),
            (
                b"petstore-mock data 7\n",
                "not a data file of this petstore-mock",
            ),
            (FORMAT.as_bytes(), "it has no complete commit"),
            (b"petstore-mock data 1\n0000", "it has no complete commit"),
            (
                b"petstore-mock data 1\n00000000 []\n",
                "line 2: its checksum is wrong",
            ),
            (b"petstore-mock data 1\n[]\n", "line 2: it is not a commit"),
        ] {
            let error = pets(bytes).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
