//! The store in a file: what was answered 201 is there after the process was killed, or the power failed.
//!
//! The file is a log: a first line that says what it is, then a line a commit, `CHECKSUM LENGTH EDITS`,
//! where the edits are a JSON array. One thread writes: it takes all changes that wait, appends them as
//! one line, syncs it, makes them in memory, and only then answers. A last line that is too short was
//! never answered, so it is cut off; any other line that is wrong means that the file is damaged.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
};

use tokio::sync::oneshot;

use super::store::{Applied, Change, ChangeError, Edit, Planned, Store};

/// The first line, with the version of the format.
const FORMAT: &str = "petstore-mock data 1\n";
/// How it begins in every version.
const FORMAT_NAME: &str = "petstore-mock data ";

/// No more changes than these go into one commit, so that the first of them does not wait for ever.
const MAX_COMMIT: usize = 10_000;

/// Why a data file can't be used; the file is left as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system does not let it be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Another server has it open.
    #[error("another petstore-mock is using it: stop that one, or choose another file")]
    InUse,
    /// It is another kind of file.
    #[error("it is not a data file of petstore-mock, and is left as it is: choose another file")]
    Foreign,
    /// It was written by a version with another format.
    #[error(
        "a later petstore-mock has written it, in format {0}: use that one, or choose another file"
    )]
    Later(String),
    /// It was one, but something is wrong with it.
    #[error("it is damaged, and is left as it is ({0}): restore a copy, or choose another file")]
    Damaged(String),
}

/// An open log.
#[derive(Debug)]
struct Log {
    file: File,
    /// Where the last whole line ends; what a failed write left after it is cut off before the next one.
    end: u64,
    is_torn: bool,
    /// The length of the last line that could not be written.
    needed: usize,
    /// The file as it was found: it stays locked, for whoever opened it before it was replaced.
    _found: File,
}

impl Log {
    /// Opens a file, or makes one that holds `first`, and writes it anew without what is not needed any
    /// more.
    fn open(path: &Path, first: Store) -> Result<(Self, Store), DataError> {
        let options = || OpenOptions::new().read(true).write(true).to_owned();
        let mut found = options().create(true).truncate(false).open(path)?;
        match found.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DataError::InUse),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let mut bytes = Vec::new();
        found.read_to_end(&mut bytes)?;
        let is_new = bytes.is_empty();
        let LogContent { store, end, commits } =
            if is_new { LogContent { store: first, end: 0, commits: 0 } } else { read(&bytes)? };
        drop(bytes);
        if commits == 1 {
            let file = found.try_clone()?;
            return Ok((Self { file, end, is_torn: true, needed: 0, _found: found }, store));
        }
        let beside = beside(path);
        match Self::replace(&beside, path, &store) {
            Ok((file, end)) => {
                Ok((Self { file, end, is_torn: false, needed: 0, _found: found }, store))
            }
            Err(error) => {
                // It may not even exist; the first error is the one to report.
                let _ = fs::remove_file(&beside);
                if is_new || error.kind() != io::ErrorKind::StorageFull {
                    return Err(error.into());
                }
                // Without room to write it anew, it is used as it is.
                let file = found.try_clone()?;
                Ok((Self { file, end, is_torn: true, needed: 0, _found: found }, store))
            }
        }
    }

    /// Puts a file that holds a store in the place of another, at once; it is locked before it is there.
    fn replace(beside: &Path, path: &Path, store: &Store) -> io::Result<(File, u64)> {
        let mut file = File::create(beside)?;
        file.lock()?;
        let all = [FORMAT.as_bytes(), &line(&[Edit::Replace(store.clone())])?].concat();
        file.write_all(&all)?;
        file.sync_all()?;
        fs::rename(beside, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok((file, all.len() as u64))
    }

    /// Appends a commit, or leaves the log as it was.
    fn append(&mut self, edits: &[Edit]) -> io::Result<()> {
        if self.is_torn {
            self.cut()?;
        }
        let line = line(edits)?;
        self.is_torn = true;
        if let Err(error) = self.file.write_all(&line).and_then(|()| self.file.sync_data()) {
            // Where this fails too, it is tried again before the next commit.
            let _ = self.cut();
            self.needed = line.len();
            return Err(error);
        }
        self.is_torn = false;
        self.end += line.len() as u64;
        Ok(())
    }

    /// Finds out whether what could not be written can be by now.
    fn probe(&mut self) -> io::Result<()> {
        self.is_torn = true;
        let written = self.file.write_all(&vec![b' '; self.needed]);
        let written = written.and_then(|()| self.file.sync_data());
        self.cut().and(written)
    }

    /// Cuts off what follows the last whole line.
    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.sync_data()?;
        self.is_torn = false;
        Ok(())
    }
}

/// A name in the same folder, since a rename is atomic only within a file system, and this thread's own.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{}.{:?}.tmp", std::process::id(), thread::current().id()));
    name.into()
}

/// Writes a commit.
fn line(edits: &[Edit]) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(edits)?;
    let mut line = format!("{:08x} {} ", crc32fast::hash(&json), json.len()).into_bytes();
    line.extend(json);
    line.push(b'\n');
    Ok(line)
}

/// What a file holds, and where its last whole line ends.
struct LogContent {
    store: Store,
    end: u64,
    commits: usize,
}

fn read(bytes: &[u8]) -> Result<LogContent, DataError> {
    let Some(mut rest) = bytes.strip_prefix(FORMAT.as_bytes()) else {
        let version = bytes.strip_prefix(FORMAT_NAME.as_bytes()).ok_or(DataError::Foreign)?;
        let version = version.split(|byte| *byte == b'\n').next().unwrap_or_default();
        return Err(DataError::Later(String::from_utf8_lossy(version).into_owned()));
    };
    let mut content = LogContent { store: Store::default(), end: FORMAT.len() as u64, commits: 0 };
    while !rest.is_empty() {
        let damaged =
            |what: &str| DataError::Damaged(format!("line {}: {what}", content.commits + 2));
        let Some(Line { edits, checksum, length }) = parse(rest) else {
            // The first commit is written together with the file.
            if is_cut_off(rest) && content.commits > 0 {
                break;
            }
            return Err(damaged("it is cut off, or not a commit"));
        };
        if crc32fast::hash(edits) != checksum {
            return Err(damaged("its checksum is wrong"));
        }
        let edits: Vec<Edit> =
            serde_json::from_slice(edits).map_err(|error| damaged(&error.to_string()))?;
        edits.into_iter().for_each(|edit| drop(content.store.apply(edit)));
        content.commits += 1;
        content.end += length as u64;
        rest = &rest[length..];
    }
    if content.commits == 0 {
        return Err(DataError::Damaged("it holds nothing".to_owned()));
    }
    Ok(content)
}

/// A commit as it stands in the file.
struct Line<'b> {
    edits: &'b [u8],
    checksum: u32,
    /// Of the whole line.
    length: usize,
}

/// Reads the head of a line: checksum, length of the edits, and where they begin.
fn head(bytes: &[u8]) -> Option<(u32, usize, usize)> {
    let mut spaces = bytes.iter().enumerate().filter(|(_, byte)| **byte == b' ').map(|(at, _)| at);
    let (first, second) = (spaces.next()?, spaces.next()?);
    let text = |range| std::str::from_utf8(bytes.get::<std::ops::Range<usize>>(range)?).ok();
    let checksum = u32::from_str_radix(text(0..first)?, 16).ok()?;
    Some((checksum, text(first + 1..second)?.parse().ok()?, second + 1))
}

fn parse(bytes: &[u8]) -> Option<Line<'_>> {
    let (checksum, length, start) = head(bytes)?;
    let end = start.checked_add(length)?;
    let edits = bytes.get(start..end)?;
    (bytes.get(end) == Some(&b'\n')).then_some(Line { edits, checksum, length: end + 1 })
}

/// Whether a line lacks its end, as a write that was interrupted leaves it.
fn is_cut_off(bytes: &[u8]) -> bool {
    const MAX_HEAD: usize = 32;
    match head(bytes) {
        Some((_, length, start)) => bytes.len() <= start.saturating_add(length),
        None => bytes.len() < MAX_HEAD && !bytes.contains(&b'\n'),
    }
}

type Outcome = Result<Option<i64>, ChangeError>;

/// A change, or nothing to find out whether the file can be written.
struct Job {
    change: Option<Change>,
    done: oneshot::Sender<Outcome>,
}

/// A data file that is open, until it is closed.
#[derive(Debug)]
pub(crate) struct Data {
    open: Mutex<Option<(mpsc::Sender<Job>, JoinHandle<()>)>>,
    /// Whether the last commit failed.
    is_failing: Arc<AtomicBool>,
}

impl Data {
    /// Opens a file, or makes one that holds `first`; returns what it holds, too.
    pub(crate) async fn open(
        path: PathBuf,
        first: Store,
    ) -> Result<(Self, Arc<Mutex<Store>>), DataError> {
        let (jobs, waiting) = mpsc::channel();
        let (opened, is_open) = oneshot::channel();
        let is_failing = Arc::new(AtomicBool::new(false));
        let failing = Arc::clone(&is_failing);
        let work = move || match Log::open(&path, first) {
            Ok((log, store)) => {
                let store = Arc::new(Mutex::new(store));
                // Where nobody waits for it any more, the queue is gone too.
                let _ = opened.send(Ok(Arc::clone(&store)));
                run(log, &store, &waiting, &failing);
            }
            Err(error) => drop(opened.send(Err(error))),
        };
        let thread = thread::Builder::new().name("petstore-mock-data".to_owned()).spawn(work)?;
        let gone = |_| Err(io::Error::other("the thread that opens it has ended").into());
        let store = is_open.await.unwrap_or_else(gone)?;
        Ok((Self { open: Mutex::new(Some((jobs, thread))), is_failing }, store))
    }

    /// Makes a change in the file and in memory, and returns when it is made in both.
    pub(crate) async fn change(&self, change: Change) -> Outcome {
        self.send(Some(change)).await
    }

    /// Returns whether the file can be written; after a failed write, tries it.
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

    /// Writes what waits, and closes the file: another server can open it when this returns.
    pub(crate) fn close(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((jobs, thread)) = open {
            drop(jobs);
            // It has ended all the same where it panicked.
            let _ = thread.join();
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        self.close();
    }
}

/// Makes changes until nobody can ask for one any more.
fn run(mut log: Log, store: &Mutex<Store>, waiting: &mpsc::Receiver<Job>, is_failing: &AtomicBool) {
    let lock = || store.lock().unwrap_or_else(PoisonError::into_inner);
    while let Ok(first) = waiting.recv() {
        let (mut edits, mut planned, mut probes) = (Vec::new(), Vec::new(), Vec::new());
        {
            // A copy, which is quick to make: planning is not.
            let base = lock().clone();
            let mut plan = Planned::new(&base);
            for Job { change, done } in
                [first].into_iter().chain(waiting.try_iter().take(MAX_COMMIT))
            {
                match change.map(|change| plan.plan(change)) {
                    Some(Ok(edit)) => {
                        edits.push(edit);
                        planned.push(done);
                    }
                    // Nobody waits where the client has left.
                    Some(Err(error)) => drop(done.send(Err(error))),
                    None => probes.push(done),
                }
            }
        }
        let written = match (edits.is_empty(), probes.is_empty()) {
            (true, true) => continue,
            (true, false) => log.probe(),
            (false, _) => log.append(&edits),
        };
        is_failing.store(written.is_err(), Ordering::Relaxed);
        match written {
            Ok(()) => {
                probes.into_iter().for_each(|done| drop(done.send(Ok(None))));
                let applied: Vec<Applied> = {
                    let mut store = lock();
                    edits.into_iter().map(|edit| store.apply(edit)).collect()
                };
                for (done, applied) in planned.into_iter().zip(applied) {
                    // The change is made also where nobody waits for it.
                    let _ = done.send(Ok(applied.id));
                }
            }
            Err(error) => {
                for done in planned.into_iter().chain(probes) {
                    let _ = done.send(Err(ChangeError::Unsaved(error.to_string())));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NewPet, Pet};

    fn edit(id: i64) -> Edit {
        let pet = NewPet { name: format!("pet {id}"), category_id: 1, status: None };
        Edit::Add((&Pet::new(id, pet)).into())
    }

    fn file() -> Vec<u8> {
        let lines = [&[Edit::Replace(Store::default())][..], &[edit(1), edit(2)], &[edit(3)]];
        let lines = lines.map(|edits| line(edits).unwrap()).concat();
        [FORMAT.as_bytes(), &lines].concat()
    }

    fn pets(bytes: &[u8]) -> Result<usize, String> {
        read(bytes).map(|content| content.store.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_last_line_that_was_interrupted_is_cut_off_wherever_it_was() {
        let whole = file();
        let last = line(&[edit(3)]).unwrap().len();
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
                // A length that became longer looks like an interrupted write only in the last line.
                let is_cut = read == Ok(2) && at > whole.len() - line(&[edit(3)]).unwrap().len();
                assert!(read.is_err() || is_cut, "byte {at}, bit {bit}: {read:?}");
            }
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_file() {
        for (bytes, wrong) in [
            (&b"notes"[..], "not a data file"),
            (b"petstore-mock data 7\n", "in format 7"),
            (FORMAT.as_bytes(), "it holds nothing"),
            (b"petstore-mock data 1\n00000000 2 []\n", "line 2: its checksum is wrong"),
            (b"petstore-mock data 1\n0000", "line 2: it is cut off"),
        ] {
            let error = pets(bytes).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
