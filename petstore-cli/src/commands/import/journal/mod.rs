//! The journal: a file next to the input with the outcome of each row, so that no row is sent
//! twice, however the program ends.
//!
//! Each line is a checksum and a record. Rows are announced in blocks, and each block is synced
//! (one `fsync` for many rows) before its first row is sent. Just before a row is sent, its record
//! is written without `fsync`. A kill loses no written records, so a row without a record was not
//! sent. A power failure may lose records, so announced rows without an outcome count as unknown:
//! at most [`BLOCK`] rows and those in flight, which `--unknown check` checks.

mod history;
mod lines;
mod record;
mod state;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

pub(super) use self::history::IdWindow;
use self::lines::Lines;
use self::record::millis;
pub(super) use self::record::{Checked, HEADER, Record, RowState, Run, line};
pub(super) use self::state::{RunTotals, State, Totals};
use crate::context::Context;
use crate::error::{CliError, Kind, Result};

/// The number of rows in a block.
pub(crate) const BLOCK: usize = 512;

/// Syncs the file.
type SyncFn = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// A journal that is open for writing, with its content.
pub(crate) struct Journal {
    out: Box<dyn Write>,
    sync: SyncFn,
    /// The file's path, if there is a file.
    path: Option<PathBuf>,
    /// What messages call the journal.
    name: String,
    /// The file, for a hook that may outlive this journal.
    file: Weak<File>,
    state: State,
    /// The time between the file's last change and its opening.
    opened_after: Duration,
    /// The time of that change. The file keeps it until this run sends a row, so that the next run
    /// does not wait longer for the rows of earlier runs.
    kept_time: Option<SystemTime>,
    /// The start of the run, on the wall clock and on the monotonic clock.
    started: (SystemTime, Instant),
    /// The outcomes that could not be written.
    unwritten: usize,
}

/// What a run records about itself.
pub(crate) struct Beginning {
    pub(crate) base_url: String,
    pub(crate) started: SystemTime,
    /// The longest time that a request may take to arrive.
    pub(crate) limit: Duration,
    pub(crate) files: Vec<PathBuf>,
}

impl Journal {
    fn new(out: impl Write + 'static, sync: SyncFn, state: State) -> Self {
        Self {
            out: Box::new(out),
            sync,
            path: None,
            name: "the journal".to_owned(),
            file: Weak::new(),
            state,
            opened_after: Duration::ZERO,
            kept_time: None,
            started: (SystemTime::UNIX_EPOCH, Instant::now()),
            unwritten: 0,
        }
    }

    /// Returns a journal without a file.
    pub(crate) fn nowhere() -> Self {
        Self::new(io::sink(), Arc::new(|| Ok(())), State::default())
    }

    /// Opens the journal of an input, or creates one. Leaves an unusable file unchanged.
    pub(crate) fn open(path: &Path, context: &Context) -> Result<Self> {
        if path.exists() && !path.is_file() {
            return Err(foreign(path, context));
        }
        let name = journal_name(path, context);
        let unusable = |problem| unusable(&name, &problem);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // The journal contains responses of the service, so it is private.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(unusable)?;
        let modified = file
            .metadata()
            .and_then(|data| data.modified())
            .map_err(unusable)?;
        let lock = file.try_lock();
        let state = load(&file, path, context);
        match lock {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(busy(state.as_ref().ok(), &name, context));
            }
            Err(TryLockError::Error(problem)) => return Err(unusable(problem)),
        }
        let state = state?;
        if state.whole == 0 {
            sync_folder(path).map_err(unusable)?;
        }
        let at = SeekFrom::Start(state.whole);
        (&file).seek(at).map_err(unusable)?;
        let file = Arc::new(file);
        let synced = Arc::clone(&file);
        let weak = Arc::downgrade(&file);
        let is_cut = state.is_cut();
        let out = Lines::new(file, state.whole, state.length, is_cut);
        // A time in the future is not kept: each run would wait for the whole limit.
        let opened_after = modified.elapsed().ok();
        let sync = Arc::new(move || synced.sync_data());
        let journal = Self::new(out, sync, state);
        Ok(Self {
            path: Some(path.to_owned()),
            name,
            file: weak,
            opened_after: opened_after.unwrap_or_default(),
            kept_time: opened_after.map(|_| modified),
            ..journal
        })
    }

    fn checked<T>(&self, result: io::Result<T>) -> Result<T> {
        match result {
            Ok(value) => Ok(value),
            Err(problem) => Err(unusable(&self.name, &problem)),
        }
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Fits the states to the rows of the input. Adds those that the journal does not contain, and
    /// drops those that the input no longer contains.
    pub(crate) fn resize(&mut self, rows: usize) {
        self.state.resize(rows);
    }

    /// Starts a run.
    pub(crate) fn begin(&mut self, beginning: Beginning) -> Result<()> {
        let Beginning {
            base_url,
            started,
            limit,
            files,
        } = beginning;
        self.started = (started, Instant::now());
        let run = Run {
            pid: std::process::id(),
            started,
            boot: boot(),
            base_url,
            limit,
            rows: self.state.rows().len(),
            files,
            damaged: self.state.damaged().to_vec(),
        };
        if self.state.whole == 0 {
            let written = self.out.write_all(HEADER);
            self.checked(written)?;
        }
        // Unknown rows stay unknown, even if this run announces them.
        let is_unknown = |row: &RowState| *row == RowState::Unknown;
        let unknown = self.state.rows_where(is_unknown);
        self.write(vec![
            Record::Rows(RowState::Unknown, unknown),
            Record::Run(run),
        ])?;
        let synced = (self.sync)();
        self.checked(synced)
    }

    /// Writes records, and applies them to the state.
    pub(crate) fn write(&mut self, records: Vec<Record>) -> Result<()> {
        self.append(&records)?;
        records
            .into_iter()
            .for_each(|record| self.state.apply(record));
        Ok(())
    }

    /// Writes the outcomes of rows. If the write fails, the outcomes still count in this run, but
    /// the next run does not know them.
    pub(crate) fn record(&mut self, outcomes: Vec<Record>) -> Result<()> {
        let written = self.append(&outcomes);
        if written.is_err() {
            self.unwritten += outcomes.len();
        }
        outcomes
            .into_iter()
            .for_each(|outcome| self.state.apply(outcome));
        written
    }

    fn append(&mut self, records: &[Record]) -> Result<()> {
        if records.iter().any(is_about_sending) {
            self.kept_time = None;
        }
        let lines: io::Result<String> = records.iter().map(line).collect();
        let written = lines.and_then(|lines| {
            let bytes = lines.as_bytes();
            self.out.write_all(bytes)
        });
        let file = self.file.upgrade();
        if let (Some(time), Some(file)) = (self.kept_time, file) {
            // If this fails, the next run only waits longer.
            let _ = file.set_modified(time);
        }
        self.checked(written)
    }

    /// Returns the time for a record.
    pub(crate) fn now(&self) -> u64 {
        let (started, since) = self.started;
        millis(started + since.elapsed())
    }

    /// Returns the number of outcomes that could not be written.
    pub(crate) fn unwritten(&self) -> usize {
        self.unwritten
    }

    /// Returns how much longer a request of an earlier run may take to arrive.
    pub(crate) fn until_all_arrived(&self) -> Duration {
        let limit = self.state.history().limit();
        limit.saturating_sub(self.opened_after)
    }

    /// Returns a function that makes this moment the time of the file's last change. It is called
    /// just before a request is sent: its row may have waited in the client since the row was
    /// recorded, and after a kill, the time until it has arrived counts from the last change.
    pub(crate) fn touch(&self) -> impl Fn() + Send + 'static {
        let file = Weak::clone(&self.file);
        move || {
            if let Some(file) = file.upgrade() {
                // If the file belongs to another user, the time of the last record has to do.
                let _ = file.set_modified(file_time());
            }
        }
    }

    /// Announces rows. They may be sent after this has returned.
    pub(crate) async fn announce(&mut self, from: usize, digests: Vec<u32>) -> Result<()> {
        self.write(vec![Record::Block { from, digests }])?;
        let sync = Arc::clone(&self.sync);
        let synced = tokio::task::spawn_blocking(move || sync()).await;
        let synced = synced.map_err(io::Error::other).flatten();
        self.checked(synced)
    }

    /// Returns whether the file was removed, so that the next run does not find it.
    pub(crate) fn is_removed(&self) -> bool {
        self.path.as_ref().is_some_and(|path| !path.exists())
    }

    /// Ends a run normally.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.write(vec![Record::End])?;
        let synced = (self.sync)();
        self.checked(synced)
    }
}

/// Returns whether a record says that this run sends rows.
fn is_about_sending(record: &Record) -> bool {
    matches!(record, Record::Sent { .. })
}

/// Reads the journal in a file.
pub(crate) fn read(path: &Path, context: &Context) -> Result<State> {
    match File::open(path) {
        Ok(file) => load(&file, path, context),
        Err(problem) => {
            let name = journal_name(path, context);
            Err(unusable(&name, &problem))
        }
    }
}

fn load(mut file: &File, path: &Path, context: &Context) -> Result<State> {
    let mut bytes = Vec::new();
    if let Err(problem) = file.read_to_end(&mut bytes) {
        let name = journal_name(path, context);
        return Err(unusable(&name, &problem));
    }
    let boot = boot();
    match State::read(&bytes, boot.as_deref()) {
        Some(state) => Ok(state),
        None => Err(foreign(path, context)),
    }
}

/// Returns what messages call the journal.
fn journal_name(path: &Path, context: &Context) -> String {
    format!("the journal {}", context.system().shown(path))
}

/// Returns the time for a file.
#[expect(
    clippy::disallowed_methods,
    reason = "the times of files follow the system's clock"
)]
fn file_time() -> SystemTime {
    SystemTime::now()
}

/// Makes the name of a new file durable. Only on Unix can a folder be opened and synced.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Identifies the boot of the machine, if the system provides that.
fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

fn foreign(path: &Path, context: &Context) -> CliError {
    let path = context.system().shown(path);
    let problem = format!("{path} exists and is not a journal of an import");
    let hint = "name another file with `--journal`";
    CliError::usage(problem).hint(hint)
}

fn busy(state: Option<&State>, name: &str, context: &Context) -> CliError {
    let problem = match state.and_then(State::last_run) {
        Some(run) => {
            let since = context.connector().clock().instant(run.started);
            format!("process {} has been using {name} since {since}", run.pid)
        }
        None => format!("another process is using {name}"),
    };
    let hint = "wait until it ends; the same command then sends what is left";
    CliError::usage(problem).hint(hint)
}

fn unusable(name: &str, problem: &io::Error) -> CliError {
    let hint = match problem.kind() {
        io::ErrorKind::StorageFull => "free some space and run the command again; it continues",
        _ => "`--journal FILE` names another file for it",
    };
    let action = format!("cannot use {name}");
    let error = CliError::io(Kind::Internal, action, problem);
    error.hint(hint)
}

#[cfg(test)]
pub(super) use self::record::parse;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A disk that loses what was not synced: its bytes, and the number of synced ones.
    type Disk = Arc<Mutex<(Vec<u8>, usize)>>;

    struct Writer(Disk);

    impl Write for Writer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_has_a_hint_of_its_own() {
        let error = |kind: io::ErrorKind| format!("{:?}", unusable("the journal j", &kind.into()));
        assert!(error(io::ErrorKind::StorageFull).contains("free some space"));
        assert!(error(io::ErrorKind::PermissionDenied).contains("`--journal FILE`"));
    }

    /// A disk that is full.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn outcomes_that_a_full_disk_does_not_take_are_counted() {
        let mut journal = Journal::new(Full, Arc::new(|| Ok(())), State::default());
        journal.resize(3);
        assert_eq!(journal.unwritten(), 0);
        let created = |row| Record::Rows(RowState::Created(7), vec![row]);
        assert!(journal.record(vec![created(0), created(1)]).is_err());
        assert!(journal.record(vec![created(2)]).is_err());
        assert_eq!(journal.unwritten(), 3);
        assert_eq!(journal.state().rows(), vec![RowState::Created(7); 3]);
    }

    #[test]
    fn the_time_of_a_record_follows_the_start_of_the_run() {
        let mut journal = Journal::nowhere();
        let hour = Duration::from_secs(3_600);
        let beginning = Beginning {
            base_url: String::new(),
            started: SystemTime::UNIX_EPOCH + hour,
            limit: Duration::ZERO,
            files: vec![],
        };
        journal.begin(beginning).unwrap();
        let second_hour = 3_600_000..7_200_000;
        assert!(second_hour.contains(&journal.now()), "{}", journal.now());
    }

    #[tokio::test]
    async fn after_a_power_cut_no_row_that_was_sent_is_left() {
        let disk = Disk::default();
        let synced = Arc::clone(&disk);
        let sync = move || {
            let mut disk = synced.lock().unwrap();
            disk.1 = disk.0.len();
            Ok(())
        };
        let mut journal = Journal::new(Writer(Arc::clone(&disk)), Arc::new(sync), State::default());
        journal
            .begin(Beginning {
                base_url: String::new(),
                started: SystemTime::UNIX_EPOCH,
                limit: Duration::ZERO,
                files: vec![],
            })
            .unwrap();
        let durable = || {
            let disk = disk.lock().unwrap();
            let bytes = [&disk.0[..disk.1], &[0]].concat();
            let state = State::read(&bytes, Some("another boot")).unwrap();
            state.rows().to_vec()
        };
        for from in [0, 2] {
            journal.announce(from, vec![1, 2]).await.unwrap();
            for row in [from, from + 1] {
                journal
                    .write(vec![Record::Sent {
                        at: 0,
                        rows: vec![row],
                    }])
                    .unwrap();
                // This is the point at which the row would be sent.
                assert_eq!(durable()[row], RowState::Unknown, "{row}");
                journal
                    .write(vec![Record::Rows(RowState::Created(1), vec![row])])
                    .unwrap();
            }
        }
        journal.announce(4, vec![1]).await.unwrap();
        journal.end().unwrap();
        let created = vec![RowState::Created(1); 4];
        assert_eq!(durable(), [created, vec![RowState::Left]].concat());
        let boot = journal.state.last_run().and_then(|run| run.boot.clone());
        assert_eq!(
            boot.map(|id| id.len()),
            cfg!(target_os = "linux").then_some(36)
        );
    }
}
