//! The journal: a file next to the input with the outcome of each row, so that no row is sent
//! twice, however the program ends.
//!
//! A row is recorded as sent, and the file is synced, before the row is sent. So a row without that
//! record was not sent, whatever happens. Outcomes are written without a sync: a lost one leaves an
//! unknown row.

mod state;

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::NamedTempFile;
use tokio::time::Instant;

pub(super) use self::state::{Record, RowState, Run, State, Totals};
use super::rows::{Digest, Row, Rows};
use crate::env::System;
use crate::error::{CliError, Kind, Result};

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
    /// Whether other bytes may follow them. They are cut before the next record.
    is_torn: bool,
    state: State,
    /// The first record of this run.
    header: Record,
    /// The outcomes of this run.
    run: Totals,
    began: Instant,
    /// How long requests of earlier runs may still arrive, from the beginning of this one.
    restless: Duration,
}

impl Journal {
    /// Returns a journal without a file.
    pub(super) fn nowhere(run: Run) -> Self {
        Self {
            header: Record::Run(run),
            file: None,
            path: None,
            name: String::new(),
            is_new: false,
            length: 0,
            is_torn: true,
            state: State::default(),
            run: Totals::default(),
            began: Instant::now(),
            restless: Duration::ZERO,
        }
    }

    /// Opens and locks a journal, or creates it. Leaves an unusable file as it is.
    pub(super) fn open(path: &Path, run: Run, system: &System) -> Result<Self> {
        let name = name(path, system);
        if path.exists() && !path.is_file() {
            return Err(state::foreign(&name));
        }
        let mut journal = Self {
            path: Some(path.to_owned()),
            name: name.clone(),
            ..Self::nowhere(run)
        };
        let file = match create(path, &journal.header) {
            Ok(file) => {
                journal.is_new = true;
                file
            }
            Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => {
                let opened = File::options().read(true).write(true).open(path);
                let file = opened.map_err(|problem| unusable(&name, &problem))?;
                match file.try_lock() {
                    Ok(()) => file,
                    Err(TryLockError::WouldBlock) => return Err(busy(&name)),
                    Err(TryLockError::Error(problem)) => {
                        return Err(unusable(&name, &problem));
                    }
                }
            }
            Err(problem) => return Err(not_created(&name, &problem)),
        };
        let (state, whole) = load(&file, &name)?;
        // What this run has just written says nothing about earlier ones.
        if !journal.is_new {
            journal.restless = state.restless();
            journal.state = state;
        }
        journal.length = whole;
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

    /// Returns how much longer a request of an earlier run may take to arrive.
    pub(super) fn until_all_arrived(&self) -> Duration {
        self.restless.saturating_sub(self.began.elapsed())
    }

    /// Starts a run. Its rows must have been compared with the journal.
    pub(super) fn begin(&mut self, rows: usize) -> Result<()> {
        self.began = Instant::now();
        self.state.resize(rows);
        if self.is_new {
            return Ok(());
        }
        self.record(vec![self.header.clone()])?;
        self.sync()
    }

    /// Records rows that are to be sent. They may be sent when the returned future has ended.
    pub(super) fn announce(
        &mut self,
        rows: Vec<(usize, Digest)>,
    ) -> Result<impl Future<Output = io::Result<()>> + use<>> {
        let sent = Record::Sent(rows);
        let written = self.write(std::slice::from_ref(&sent));
        self.checked(written)?;
        self.state.apply(sent);
        let file = self.file.clone();
        Ok(async move {
            match file {
                Some(file) => {
                    let synced = tokio::task::spawn_blocking(move || file.sync_data()).await;
                    synced.map_err(io::Error::other)?
                }
                None => Ok(()),
            }
        })
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
        self.checked(written)
    }

    /// Ends a run without requests in flight.
    pub(super) fn end(&mut self, at: String) -> Result<()> {
        if self.until_all_arrived().is_zero() {
            self.record(vec![Record::End(at)])?;
        }
        self.sync()
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
        self.is_torn = true;
        out.write_all(lines.as_bytes())?;
        self.is_torn = false;
        self.length += lines.len() as u64;
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        match &self.file {
            Some(file) => self.checked(file.sync_data()),
            None => Ok(()),
        }
    }

    /// Returns the error of a journal that cannot be written.
    pub(super) fn checked(&self, written: io::Result<()>) -> Result<()> {
        written.map_err(|problem| {
            let action = format!("cannot write {}", self.name);
            CliError::io(Kind::Partial, action, &problem)
        })
    }
}

/// Reads a journal without opening it for writing. One that does not exist is empty.
pub(super) fn read(path: &Path, system: &System) -> Result<State> {
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
/// if there is one.
fn create(path: &Path, header: &Record) -> io::Result<File> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // It contains responses of the service, so it is private.
    let mut file = NamedTempFile::new_in(folder)?;
    file.as_file().try_lock()?;
    file.write_all(header.line().as_bytes())?;
    file.as_file().sync_all()?;
    let file = file.persist_noclobber(path)?;
    // Only on Unix can a folder be opened and synced.
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(file)
}

/// Returns the content of a journal, and the number of bytes of whole records.
fn load(mut file: &File, name: &str) -> Result<(State, u64)> {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(0));
    if let Err(problem) = read.and_then(|_| file.read_to_end(&mut bytes)) {
        return Err(unusable(name, &problem));
    }
    let (state, whole) = State::read(name, &bytes)?;
    Ok((state, whole as u64))
}

fn unusable(name: &str, problem: &io::Error) -> CliError {
    CliError::io(Kind::Input, format!("cannot open {name}"), problem)
        .hint("the import needs it to continue: let this user read and write it")
}

fn not_created(name: &str, problem: &io::Error) -> CliError {
    let error = CliError::io(Kind::Input, format!("cannot create {name}"), problem);
    error.hint("`--journal FILE` keeps the journal in another folder")
}

fn busy(name: &str) -> CliError {
    CliError::usage(format!("another import is using {name}"))
        .hint("wait until it ends; the same command then sends what is left")
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
    for (row, row_state) in state.rows().iter().enumerate() {
        let Some(digest) = state.digest(row) else {
            continue;
        };
        let now = rows.all().get(row);
        if now.and_then(Row::digest) == Some(digest) {
            continue;
        }
        let became = match row_state {
            RowState::Rejected(_) if now.is_some() => {
                mended.push(row);
                continue;
            }
            RowState::Unsent | RowState::Rejected(_) => continue,
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
