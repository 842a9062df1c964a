//! The journal: a file next to the input with the outcome of each row, so that no row is sent
//! twice, however the program ends.
//!
//! A row is recorded as sent, and the file is synced, before the row is sent. So a row without that
//! record was not sent, whatever happens. Outcomes are written without a sync: a lost one leaves an
//! unknown row.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::records::{Record, RowState, Run, State, Totals, foreign};
use super::rows::{Digest, Row, Rows};
use crate::env::System;
use crate::error::{CliError, Kind, Result};
use crate::files;

/// A journal that is open for writing, with its content.
pub(super) struct Journal {
    /// `None` if nothing is kept.
    log: Option<Log>,
    state: State,
    /// The first records of this run, until they are written.
    start: Vec<Record>,
    /// The outcomes of this run.
    run: Totals,
    /// Until then, requests that were sent before may still arrive.
    quiet_at: Instant,
    /// How long a request may take to arrive.
    limit: Duration,
}

impl Journal {
    /// Returns a journal without a file.
    pub(super) fn nowhere() -> Self {
        Self {
            log: None,
            state: State::default(),
            start: Vec::new(),
            run: Totals::default(),
            quiet_at: Instant::now(),
            limit: Duration::ZERO,
        }
    }

    /// Opens and locks a journal, or creates it. Leaves an existing file as it is. If a journal in the
    /// usual place cannot be created, there is none yet, and it may be in another place.
    pub(super) fn open(path: &Path, is_usual: bool, run: Run, system: &System) -> Result<Self> {
        let limit = run.limit();
        let first = Record::Run(run);
        let (log, state) = Log::open(path, is_usual, &first, system)?;
        let mut journal = Self::nowhere();
        journal.log = Some(log);
        journal.limit = limit;
        if let Some(state) = state {
            journal.quiet_at += state.restless();
            journal.state = state;
            journal.start.push(first);
        }
        Ok(journal)
    }

    /// Reads a journal without opening it for writing.
    pub(super) fn read(path: &Path, system: &System) -> Result<Self> {
        let mut journal = Self::nowhere();
        journal.state = read(path, system)?;
        Ok(journal)
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Returns the outcomes of this run.
    pub(super) fn run(&self) -> Totals {
        self.run
    }

    /// Returns the path of the file, if there is one.
    pub(super) fn path(&self) -> Option<&Path> {
        self.log.as_ref().map(Log::path)
    }

    /// Notes that a request may still arrive, although its response was lost.
    pub(super) fn expect_late(&mut self) {
        self.quiet_at = self.quiet_at.max(Instant::now() + self.limit);
    }

    /// Returns when no request that was sent before can arrive any more.
    pub(super) fn quiet_at(&self) -> Instant {
        self.quiet_at
    }

    /// Has recorded rows sent again in this run.
    pub(super) fn send_again(&mut self, rows: Vec<usize>) {
        if !rows.is_empty() {
            self.start.push(Record::Unsent(rows));
        }
    }

    /// Starts a run. Its rows must have been compared with the journal.
    pub(super) async fn begin(&mut self) -> Result<()> {
        let start = std::mem::take(&mut self.start);
        self.record(start)?;
        self.sync().await
    }

    /// Records rows that are to be sent. They may be sent when the returned future has ended.
    pub(super) fn announce(
        &mut self,
        rows: Vec<(usize, Digest)>,
    ) -> Result<impl Future<Output = Result<()>> + use<>> {
        let sent = Record::Sent(rows);
        self.write(std::slice::from_ref(&sent))?;
        self.state.apply(sent);
        Ok(self.sync())
    }

    /// Writes records. If that fails, they still count in this run, but the next run does not know
    /// them.
    pub(super) fn record(&mut self, records: Vec<Record>) -> Result<()> {
        let written = self.write(&records);
        for record in records {
            match record {
                Record::Created(..) => self.run.created += 1,
                Record::Found(..) => self.run.found += 1,
                Record::Rejected(..) => self.run.rejected += 1,
                Record::Unknown(..) => self.run.unknown += 1,
                Record::Run(_) | Record::Sent(_) | Record::Unsent(_) | Record::End(_) => {}
            }
            self.state.apply(record);
        }
        written
    }

    /// Ends a run without requests in flight. Says that nothing can still arrive, if that is so.
    pub(super) async fn end(&mut self, at: String) -> Result<()> {
        if self.quiet_at <= Instant::now() {
            self.record(vec![Record::End(at)])?;
        }
        self.sync().await
    }

    fn write(&mut self, records: &[Record]) -> Result<()> {
        match &mut self.log {
            Some(log) => log.append(records),
            None => Ok(()),
        }
    }

    fn sync(&self) -> impl Future<Output = Result<()>> + use<> {
        let synced = self.log.as_ref().map(Log::sync);
        async move {
            match synced {
                Some(synced) => synced.await,
                None => Ok(()),
            }
        }
    }
}

/// Compares the rows of an input with a journal. Returns the rejected rows that were mended.
pub(super) fn compare(rows: &Rows, state: &State) -> Result<Vec<usize>> {
    let mut mended = Vec::new();
    for (row, digest, state) in state.sent() {
        let now = rows.all().get(row);
        if now.and_then(Row::digest).as_ref() == Some(digest) {
            continue;
        }
        let became = match state {
            RowState::Rejected(_) => {
                mended.push(row);
                continue;
            }
            RowState::Created(id) | RowState::Found(id) => format!("became pet {id}"),
            RowState::Sent | RowState::Unknown(_) => "was sent".to_owned(),
        };
        let (name, place) = (rows.name(), rows.place(row));
        let problem = match now {
            Some(_) => format!("{name} {place} has changed since it {became}"),
            None => format!("{place} of {name} is missing since it {became}"),
        };
        return Err(CliError::input(problem)
            .hint("undo the change; add other pets at the end, or in a file of their own"));
    }
    Ok(mended)
}

/// A file of records.
struct Log {
    file: Arc<File>,
    path: PathBuf,
    /// What messages call the journal.
    name: String,
    /// The number of bytes of whole records.
    length: u64,
    /// Whether other bytes may follow them. They are cut before the next record.
    is_torn: bool,
}

impl Log {
    /// Opens and locks a journal, and returns its content. Creates one with its first record if there
    /// is none. Leaves an existing file as it is.
    fn open(
        path: &Path,
        is_usual: bool,
        first: &Record,
        system: &System,
    ) -> Result<(Self, Option<State>)> {
        let name = name(path, system);
        if path.exists() && !path.is_file() {
            return Err(foreign(&name));
        }
        let (file, length, state) = match create(path, first) {
            Ok((file, length)) => (file, length, None),
            Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {
                let file = lock(path, &name)?;
                let (state, length) = load(&file, &name)?;
                (file, length, Some(state))
            }
            Err(problem) => {
                let error = CliError::io(Kind::Input, format!("cannot create {name}"), &problem);
                let elsewhere = "`--journal FILE` keeps the journal in another folder";
                return Err(error.hint_if(is_usual.then(|| elsewhere.to_owned())));
            }
        };
        let log = Self {
            file: Arc::new(file),
            path: path.to_owned(),
            name,
            length,
            is_torn: true,
        };
        Ok((log, state))
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// Appends records, without a sync.
    fn append(&mut self, records: &[Record]) -> Result<()> {
        let written = self.write(records);
        written.map_err(|problem| unwritable(&self.name, &problem))
    }

    fn write(&mut self, records: &[Record]) -> io::Result<()> {
        let mut file: &File = &self.file;
        if self.is_torn {
            file.set_len(self.length)?;
            file.seek(SeekFrom::Start(self.length))?;
        }
        let lines = Record::lines(records)?;
        self.is_torn = true;
        file.write_all(&lines)?;
        self.is_torn = false;
        self.length += lines.len() as u64;
        Ok(())
    }

    /// Puts on the disk what was appended.
    fn sync(&self) -> impl Future<Output = Result<()>> + use<> {
        let (file, name) = (Arc::clone(&self.file), self.name.clone());
        async move {
            let synced = spawn_blocking(move || file.sync_data()).await;
            let synced = synced.map_err(io::Error::other).flatten();
            synced.map_err(|problem| unwritable(&name, &problem))
        }
    }
}

/// Reads a journal without opening it for writing. One that does not exist is empty.
fn read(path: &Path, system: &System) -> Result<State> {
    let name = name(path, system);
    match File::open(path) {
        Ok(file) => Ok(load(&file, &name)?.0),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(State::default()),
        Err(problem) => Err(unusable(&name, &problem)),
    }
}

/// Returns what messages call a journal: its path, and its owner if that is not this user.
fn name(path: &Path, system: &System) -> String {
    format!("the journal {}{}", system.shown(path), owner(path))
}

/// Creates a locked journal with its first record, so that it is never empty or used by two. Fails
/// if there is one. Returns it with its length.
fn create(path: &Path, first: &Record) -> io::Result<(File, u64)> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let folder = files::folder(path);
    // It contains responses of the service, so it is private.
    let mut file = NamedTempFile::new_in(folder)?;
    file.as_file().try_lock()?;
    let line = Record::lines(std::slice::from_ref(first))?;
    file.write_all(&line)?;
    file.as_file().sync_all()?;
    let file = file.persist_noclobber(path)?;
    // Only on Unix can a folder be opened and synced.
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok((file, line.len() as u64))
}

/// Opens and locks a journal that exists.
fn lock(path: &Path, name: &str) -> Result<File> {
    let file = File::options().read(true).write(true).open(path);
    let file = file.map_err(|problem| unusable(name, &problem))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let problem = format!("another import is using {name}");
            let hint = "wait until it ends; the same command then sends what is left";
            Err(CliError::usage(problem).hint(hint))
        }
        Err(TryLockError::Error(problem)) => Err(unusable(name, &problem)),
    }
}

/// Returns the content of a journal, and the number of bytes of whole records.
fn load(mut file: &File, name: &str) -> Result<(State, u64)> {
    let mut bytes = Vec::new();
    if let Err(problem) = file.read_to_end(&mut bytes) {
        return Err(unusable(name, &problem));
    }
    let (state, whole) = State::read(name, &bytes)?;
    Ok((state, whole as u64))
}

fn unusable(name: &str, problem: &io::Error) -> CliError {
    CliError::io(Kind::Input, format!("cannot open {name}"), problem)
        .hint("the import needs it to continue: let this user read and write it")
}

fn unwritable(name: &str, problem: &io::Error) -> CliError {
    CliError::io(Kind::Partial, format!("cannot write {name}"), problem)
}

/// Returns the owner of a file if that is not this user: ` of user 0`.
#[cfg(unix)]
fn owner(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt as _;

    let user = rustix::process::geteuid().as_raw();
    match path.metadata().map(|data| data.uid()) {
        Ok(0) if user != 0 => " of root".to_owned(),
        Ok(owner) if owner != user => format!(" of user {owner}"),
        _ => String::new(),
    }
}

#[cfg(not(unix))]
fn owner(_: &Path) -> String {
    String::new()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_journal_is_named_if_it_is_another_user() {
        let expected = match rustix::process::geteuid().is_root() {
            true => "",
            false => " of root",
        };
        assert_eq!(owner(Path::new("/etc/passwd")), expected);
    }
}
