//! The journal: a file next to the input with the outcome of each row, so that no row is sent
//! twice, however the program ends.
//!
//! A row is recorded as sent, and the file is synced, before the row is sent. So a row without that
//! record was not sent, whatever happens. Outcomes are written without a sync: a lost one leaves an
//! unknown row.

mod state;

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio::time::Instant;

use self::state::Unreadable;
pub(super) use self::state::{Record, RowState, Run, State, Totals};
use super::rows::{Digest, Row, Rows};
use crate::env::System;
use crate::error::{CliError, Kind, Result, os_text};

/// What helps if a journal is lost. A new one would create all pets again.
const LIST: &str = "`petstore pets list --all` shows which pets exist";

/// Ends when a record is on the disk.
pub(super) type Syncing = Pin<Box<dyn Future<Output = io::Result<()>>>>;

/// A journal that is open for writing, with its content.
pub(super) struct Journal {
    /// The file, locked while it is open; `None` if nothing is kept.
    file: Option<Arc<File>>,
    path: Option<PathBuf>,
    /// What messages call the journal.
    name: String,
    /// Whether this run has created the file, with its first record.
    is_new: bool,
    /// The number of bytes of whole records.
    length: u64,
    /// Whether other bytes follow them, which are cut before the next record.
    is_torn: bool,
    state: State,
    /// The outcomes of this run.
    run: Totals,
    /// The outcomes that could not be written.
    unwritten: usize,
    began: Instant,
    /// How long requests of earlier runs may still arrive, from the beginning of this one.
    restless: Duration,
}

impl Journal {
    fn new(path: Option<&Path>, name: String) -> Self {
        Self {
            file: None,
            path: path.map(Path::to_owned),
            name,
            is_new: false,
            length: 0,
            is_torn: true,
            state: State::default(),
            run: Totals::default(),
            unwritten: 0,
            began: Instant::now(),
            restless: Duration::ZERO,
        }
    }

    /// Returns a journal without a file.
    pub(super) fn nowhere() -> Self {
        Self::new(None, "the journal".to_owned())
    }

    /// Opens and locks a journal, or creates it. Leaves an unusable file as it is.
    pub(super) fn open(path: &Path, run: &Run, system: &System) -> Result<Self> {
        let name = format!("the journal {}", system.shown(path));
        let mut journal = Self::new(Some(path), name);
        let name = &journal.name;
        if path.exists() && !path.is_file() {
            return Err(unreadable(name, path, &Unreadable::Foreign));
        }
        let file = match create(path, run) {
            Ok(file) => {
                journal.is_new = true;
                file
            }
            Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {
                let opened = File::options().read(true).write(true).open(path);
                opened.map_err(|problem| unusable(name, path, &problem))?
            }
            Err(problem) => return Err(not_created(name, &problem)),
        };
        let lock = file.try_lock();
        let read = load(&file, path, name);
        match lock {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(busy(read, name)),
            Err(TryLockError::Error(problem)) => return Err(unusable(name, path, &problem)),
        }
        let (state, whole) = read?;
        // What this run has just written says nothing about earlier ones.
        if !journal.is_new {
            journal.restless = state.restless();
            journal.state = state;
        }
        journal.length = whole as u64;
        journal.file = Some(Arc::new(file));
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
        self.path.as_deref()
    }

    /// Returns the number of outcomes that could not be written.
    pub(super) fn unwritten(&self) -> usize {
        self.unwritten
    }

    /// Returns whether the file was removed, so that the next run does not find it.
    pub(super) fn is_removed(&self) -> bool {
        self.path().is_some_and(|path| !path.exists())
    }

    /// Returns how much longer a request of an earlier run may take to arrive.
    pub(super) fn until_all_arrived(&self) -> Duration {
        self.restless.saturating_sub(self.began.elapsed())
    }

    /// Starts a run. Its rows must have been compared with the journal.
    pub(super) fn begin(&mut self, run: Run, rows: usize) -> Result<()> {
        self.began = Instant::now();
        self.state.resize(rows);
        if self.is_new {
            return Ok(());
        }
        let run = Record::Run(run);
        let written = self.write(std::slice::from_ref(&run));
        let synced = written.and_then(|()| self.sync());
        self.checked(synced)?;
        self.state.apply(&run);
        Ok(())
    }

    /// Records rows that are to be sent. They may be sent when the returned future has ended.
    pub(super) fn announce(&mut self, rows: Vec<(usize, Digest)>) -> Result<Syncing> {
        let sent = Record::Sent(rows);
        let written = self.write(std::slice::from_ref(&sent));
        self.checked(written)?;
        self.state.apply(&sent);
        let Some(file) = self.file.clone() else {
            return Ok(Box::pin(std::future::ready(Ok(()))));
        };
        let synced = tokio::task::spawn_blocking(move || file.sync_data());
        Ok(Box::pin(async move {
            synced.await.map_err(io::Error::other).flatten()
        }))
    }

    /// Writes the outcomes of rows. If that fails, they still count in this run, but the next run
    /// does not know them.
    pub(super) fn record(&mut self, outcomes: &[Record]) -> Result<()> {
        let written = self.write(outcomes);
        if written.is_err() {
            self.unwritten += outcomes.len();
        }
        for outcome in outcomes {
            self.state.apply(outcome);
            match outcome {
                Record::Created(..) => self.run.created += 1,
                Record::Found(..) => self.run.found += 1,
                Record::Rejected(..) => self.run.rejected += 1,
                Record::Unknown(..) => self.run.unknown += 1,
                Record::Run(_) | Record::Sent(_) | Record::Unsent(_) | Record::End(_) => {}
            }
        }
        self.checked(written)
    }

    /// Ends a run without requests in flight.
    pub(super) fn end(&mut self, at: String) -> Result<()> {
        let mut written = Ok(());
        if self.until_all_arrived().is_zero() {
            written = self.write(&[Record::End(at)]);
        }
        let synced = written.and_then(|()| self.sync());
        self.checked(synced)
    }

    fn write(&mut self, records: &[Record]) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let mut out: &File = file;
        if self.is_torn {
            file.set_len(self.length)?;
            out.seek(SeekFrom::Start(self.length))?;
        }
        let lines: String = records.iter().map(Record::line).collect();
        let written = out.write_all(lines.as_bytes());
        self.is_torn = written.is_err();
        if written.is_ok() {
            self.length += lines.len() as u64;
        }
        written
    }

    fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.sync_data())
    }

    /// Returns the error of a journal that cannot be written.
    pub(super) fn checked<T>(&self, result: io::Result<T>) -> Result<T> {
        result.map_err(|problem| {
            let action = format!("cannot write {}", self.name);
            CliError::io(Kind::Partial, action, &problem)
        })
    }
}

/// Reads a journal without opening it for writing. One that does not exist is empty.
pub(super) fn read(path: &Path, system: &System) -> Result<State> {
    let name = format!("the journal {}", system.shown(path));
    match File::open(path) {
        Ok(file) => Ok(load(&file, path, &name)?.0),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(State::default()),
        Err(problem) => Err(unusable(&name, path, &problem)),
    }
}

/// Creates a journal with its first record, so that it is never empty. Fails if there is one.
fn create(path: &Path, run: &Run) -> io::Result<File> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // It contains responses of the service, so it is private.
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(Record::Run(run.clone()).line().as_bytes())?;
    file.as_file().sync_all()?;
    let file = file.persist_noclobber(path)?;
    // Only on Unix can a folder be opened and synced.
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(file)
}

fn load(mut file: &File, path: &Path, name: &str) -> Result<(State, usize)> {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(0));
    if let Err(problem) = read.and_then(|_| file.read_to_end(&mut bytes)) {
        return Err(unusable(name, path, &problem));
    }
    State::read(&bytes).map_err(|problem| unreadable(name, path, &problem))
}

/// Describes a file that is not a journal of this version.
fn unreadable(name: &str, path: &Path, problem: &Unreadable) -> CliError {
    let owner = owner(path);
    match problem {
        Unreadable::Empty => {
            let problem = format!("{name} is empty{owner}: what it recorded is lost");
            CliError::input(problem).hint(LIST)
        }
        Unreadable::Version(version) => {
            let problem = format!("{name} has version {version}{owner}, not 6");
            let hint = "finish this import with the program that began it";
            CliError::input(problem).hint(hint)
        }
        Unreadable::Foreign => CliError::input(format!(
            "{name} exists, and is not a journal of an import{owner}"
        )),
        Unreadable::Line(line) => {
            let problem = format!("{name} is damaged{owner}: line {line} cannot be read");
            CliError::input(problem).hint(LIST)
        }
    }
}

fn unusable(name: &str, path: &Path, problem: &io::Error) -> CliError {
    let owner = owner(path);
    let problem = os_text(problem);
    let error = CliError::input(format!("cannot open {name}{owner}: {problem}"));
    error.hint("the import needs it to continue: let this user read and write it")
}

fn not_created(name: &str, problem: &io::Error) -> CliError {
    let error = CliError::io(Kind::Input, format!("cannot create {name}"), problem);
    error.hint("`--journal FILE` keeps the journal in another folder")
}

fn busy(read: Result<(State, usize)>, name: &str) -> CliError {
    let run = read.ok().and_then(|(state, _)| state.last_run().cloned());
    let since = run.map_or_else(String::new, |run| format!(" since {}", run.started));
    let problem = format!("another import is using {name}{since}");
    CliError::usage(problem).hint("wait until it ends; the same command then sends what is left")
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

/// Compares the rows of an input with a journal. Returns the rejected rows that were mended.
pub(super) fn compare(rows: &Rows, state: &State) -> Result<Vec<usize>> {
    let mut mended = Vec::new();
    let mut changed = None;
    let mut has_same = false;
    for (row, row_state) in state.rows().iter().enumerate() {
        let Some(digest) = state.digest(row) else {
            continue;
        };
        let now = rows.all().get(row);
        if now.and_then(Row::digest) == Some(digest) {
            has_same = true;
            continue;
        }
        match row_state {
            RowState::Rejected(_) if now.is_some() => mended.push(row),
            RowState::Unsent | RowState::Rejected(_) => {}
            RowState::Sent | RowState::Created(_) | RowState::Found(_) | RowState::Unknown(_) => {
                changed = changed.or(Some((row, row_state)));
            }
        }
    }
    let Some((row, row_state)) = changed else {
        return Ok(mended);
    };
    let name = rows.name();
    let became = match row_state.pet() {
        Some(id) => format!("became pet {id}"),
        None => "was sent".to_owned(),
    };
    let problem = match rows.all().get(row) {
        _ if !has_same && !is_known(rows, state) => {
            format!("{name} has none of the rows that its journal records")
        }
        Some(now) => format!("{name} {} has changed since it {became}", now.place()),
        None => format!("row {} of {name} is missing since it {became}", row + 1),
    };
    Err(CliError::input(problem)
        .hint("undo the change; add other pets at the end, or in a file of their own"))
}

/// Returns whether a recorded row is anywhere in the input.
fn is_known(rows: &Rows, state: &State) -> bool {
    let recorded: HashSet<_> = (0..state.rows().len())
        .filter_map(|row| state.digest(row))
        .collect();
    rows.all()
        .iter()
        .filter_map(Row::digest)
        .any(|digest| recorded.contains(&digest))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_journal_that_cannot_be_opened_is_named() {
        let file = Path::new("/etc/passwd");
        let problem = io::ErrorKind::PermissionDenied.into();
        let error = format!("{:?}", unusable("the journal j", file, &problem));
        let expected = match rustix::process::geteuid().is_root() {
            true => "cannot open the journal j: permission denied",
            false => "cannot open the journal j of root: permission denied",
        };
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("--journal"), "{error}");
    }
}
