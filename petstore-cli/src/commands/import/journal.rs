//! The journal: a file beside the input with the outcome of each row, so that no row is sent twice,
//! however the program ends.
//!
//! Each line is a checksum and a record. Rows are announced in blocks, and a block is made durable
//! (one `fsync` for many rows) before its first row is sent. Just before a row is sent, a record of it
//! is written without `fsync`. After a kill all written records are there, so a row without a record
//! was not sent. After a power cut records may be missing, so every announced row without an outcome
//! counts as unknown: at most [`BLOCK`] rows, about which `--unknown check` finds out.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::error::{CliError, Kind, os_text};

/// The number of rows that are announced at once.
pub(crate) const BLOCK: usize = 512;
/// The first line.
const HEADER: &[u8] = b"journal of petstore pets import, version 3\n";

/// What a line says. Rows are numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Record {
    Run(Run),
    /// Rows from this one on may be sent from now on; a digest of each.
    Block {
        from: usize,
        digests: Vec<u32>,
    },
    Rows(RowState, Vec<usize>),
    /// The run ended in order: no record is missing.
    End,
}

/// A process that imports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    pub(crate) pid: u32,
    pub(crate) started: SystemTime,
    /// Identifies the start of the machine: what was written since then is there.
    pub(crate) boot: Option<String>,
    pub(crate) base_url: String,
    /// The number of rows of the input.
    pub(crate) rows: usize,
    /// The files of rejected and of unknown rows.
    pub(crate) files: Vec<PathBuf>,
    /// The damaged lines before this one, which were taken into account.
    pub(crate) damaged: Vec<usize>,
}

/// What is known of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum RowState {
    Left,
    /// To be sent in this run.
    Announced,
    /// About to be sent, or sent without a response.
    Unknown,
    Created(i64),
    Rejected(String),
}

impl RowState {
    pub(crate) fn is_left(&self) -> bool {
        matches!(self, Self::Left | Self::Announced)
    }
}

/// The number of rows in each state.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(crate) struct Totals {
    pub(crate) created: usize,
    pub(crate) rejected: usize,
    pub(crate) unknown: usize,
    pub(crate) left: usize,
}

impl Totals {
    pub(crate) fn count(&mut self, row: &RowState) {
        *match row {
            RowState::Left | RowState::Announced => &mut self.left,
            RowState::Unknown => &mut self.unknown,
            RowState::Created(_) => &mut self.created,
            RowState::Rejected(_) => &mut self.rejected,
        } += 1;
    }
}

/// What a journal says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) rows: Vec<RowState>,
    /// The digest of each row that was announced.
    pub(crate) digests: Vec<Option<u32>>,
    /// The lowest identifier of the import's pets, if that is certain.
    pub(crate) first_id: Option<i64>,
    pub(crate) last_run: Option<Run>,
    /// When the last run that created a pet began.
    pub(crate) imported: Option<SystemTime>,
    /// The files that runs of this import wrote.
    pub(crate) files: Vec<PathBuf>,
    /// The damaged lines that no run has taken into account.
    pub(crate) damaged: Vec<usize>,
    /// Whether the last line was cut.
    pub(crate) is_cut: bool,
    /// The number of rows that were sent.
    sent: usize,
    has_ended: bool,
    /// The number of bytes in whole lines.
    whole: usize,
}

impl State {
    /// Reads the journal in a file.
    pub(crate) fn load(mut file: &File, path: &Path, context: &Context) -> Result<Self, CliError> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(unusable)?;
        Self::read(&bytes, boot().as_deref()).ok_or_else(|| foreign(path, context))
    }

    fn read(bytes: &[u8], boot: Option<&str>) -> Option<Self> {
        let mut state = Self { has_ended: true, ..Self::default() };
        if !bytes.starts_with(HEADER) {
            state.is_cut = !bytes.is_empty();
            return HEADER.starts_with(bytes).then_some(state);
        }
        for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let Some(text) = line.strip_suffix(b"\n") else {
                state.is_cut = true;
                break;
            };
            state.whole += line.len();
            match parse(text) {
                Some(record) => state.apply(record),
                None if number > 0 => state.damaged.push(number + 1),
                None => {}
            }
        }
        let last_boot = state.last_run.as_ref().and_then(|run| run.boot.as_deref());
        let is_same_boot = boot.is_some() && boot == last_boot;
        let is_complete = state.damaged.is_empty() && (state.has_ended || is_same_boot);
        state.settle(if is_complete { &RowState::Left } else { &RowState::Unknown });
        Some(state)
    }

    /// Gives a state to the rows that were announced, but have no outcome.
    fn settle(&mut self, to: &RowState) {
        let announced = self.rows.iter_mut().filter(|row| **row == RowState::Announced);
        announced.for_each(|row| row.clone_from(to));
    }

    pub(crate) fn apply(&mut self, record: Record) {
        match record {
            Record::Run(run) => {
                self.damaged.retain(|line| !run.damaged.contains(line));
                if self.damaged.is_empty() {
                    self.settle(&RowState::Left);
                }
                self.files.extend(run.files.iter().cloned());
                self.last_run = Some(run);
                self.has_ended = false;
            }
            Record::Block { from, digests } => {
                for (row, digest) in digests.into_iter().enumerate() {
                    let row = from + row;
                    if self.digests.len() <= row {
                        self.digests.resize(row + 1, None);
                    }
                    self.digests[row] = Some(digest);
                    if self.rows.get(row).is_none_or(|state| *state == RowState::Left) {
                        self.set(row, RowState::Announced);
                    }
                }
            }
            Record::Rows(state, rows) => {
                match state {
                    RowState::Unknown => self.sent += rows.len(),
                    RowState::Created(id) => {
                        // The first row is sent alone, so no other has a lower identifier.
                        if self.sent == 1 {
                            self.first_id = self.first_id.or(Some(id));
                        }
                        self.imported = self.last_run.as_ref().map(|run| run.started);
                    }
                    _ => {}
                }
                rows.into_iter().for_each(|row| self.set(row, state.clone()));
            }
            Record::End => self.has_ended = true,
        }
    }

    fn set(&mut self, row: usize, state: RowState) {
        if self.rows.len() <= row {
            self.rows.resize(row + 1, RowState::Left);
        }
        self.rows[row] = state;
    }

    /// Returns the numbers of the rows in a state.
    pub(crate) fn rows_where(&self, is: impl Fn(&RowState) -> bool) -> Vec<usize> {
        (0..self.rows.len()).filter(|row| is(&self.rows[*row])).collect()
    }

    pub(crate) fn unknown(&self) -> Vec<usize> {
        self.rows_where(|row| *row == RowState::Unknown)
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.rows.iter().for_each(|row| totals.count(row));
        totals
    }
}

fn line(record: &Record) -> io::Result<String> {
    let text = serde_json::to_string(record)?;
    Ok(format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes())))
}

fn parse(line: &[u8]) -> Option<Record> {
    let (checksum, text) = line.split_at_checked(9)?;
    let checksum = std::str::from_utf8(checksum).ok()?.strip_suffix(' ')?;
    let is_intact = u32::from_str_radix(checksum, 16).ok()? == crc32fast::hash(text);
    serde_json::from_slice(text).ok().filter(|_| is_intact)
}

/// Makes durable what was written.
type SyncFn = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// A journal that is open for writing, and what it says.
pub(crate) struct Journal {
    out: Box<dyn Write>,
    sync: SyncFn,
    pub(crate) state: State,
    /// The time between its last change and its opening.
    pub(crate) opened_after: Option<Duration>,
}

impl Journal {
    fn new(out: impl Write + 'static, sync: SyncFn, state: State) -> Self {
        Self { out: Box::new(out), sync, state, opened_after: None }
    }

    /// Returns a journal that is not kept.
    pub(crate) fn nowhere() -> Self {
        Self::new(io::sink(), Arc::new(|| Ok(())), State::default())
    }

    /// Opens the journal of an input, or begins one. Nothing is changed if it cannot be used.
    pub(crate) fn open(path: &Path, input: &str, context: &Context) -> Result<Self, CliError> {
        if path.exists() && !path.is_file() {
            return Err(foreign(path, context));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // It holds what the service said of rows: private.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(unusable)?;
        let modified = file.metadata().and_then(|data| data.modified()).map_err(unusable)?;
        let lock = file.try_lock();
        let state = State::load(&file, path, context);
        match lock {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(busy(state.ok().and_then(|state| state.last_run), input, context));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        let state = state?;
        trim(&mut file, path, state.whole).map_err(unusable)?;
        let file = Arc::new(file);
        let synced = Arc::clone(&file);
        let opened_after = modified.elapsed().ok();
        Ok(Self { opened_after, ..Self::new(file, Arc::new(move || synced.sync_data()), state) })
    }

    /// Begins a run.
    pub(crate) fn begin(
        &mut self,
        base_url: String,
        started: SystemTime,
        files: Vec<PathBuf>,
    ) -> Result<(), CliError> {
        let run = Run {
            pid: std::process::id(),
            started,
            boot: boot(),
            base_url,
            rows: self.state.rows.len(),
            files,
            damaged: self.state.damaged.clone(),
        };
        // Rows that count as unknown now stay so, whatever this run announces.
        let unknown = self.state.unknown();
        self.write(vec![Record::Rows(RowState::Unknown, unknown), Record::Run(run)])?;
        (self.sync)().map_err(unusable)
    }

    /// Writes records, and applies them to the state.
    pub(crate) fn write(&mut self, records: Vec<Record>) -> Result<(), CliError> {
        let lines: io::Result<String> = records.iter().map(line).collect();
        lines.and_then(|lines| self.out.write_all(lines.as_bytes())).map_err(unusable)?;
        records.into_iter().for_each(|record| self.state.apply(record));
        Ok(())
    }

    /// Announces rows: once this returns, they may be sent.
    pub(crate) async fn announce(
        &mut self,
        from: usize,
        digests: Vec<u32>,
    ) -> Result<(), CliError> {
        self.write(vec![Record::Block { from, digests }])?;
        let sync = Arc::clone(&self.sync);
        let synced = tokio::task::spawn_blocking(move || sync()).await;
        synced.map_err(io::Error::other).flatten().map_err(unusable)
    }

    /// Ends a run in order.
    pub(crate) fn end(&mut self) -> Result<(), CliError> {
        self.write(vec![Record::End])?;
        (self.sync)().map_err(unusable)
    }
}

/// Removes a cut line at the end of a journal, or writes the first line of a new one.
fn trim(file: &mut File, path: &Path, whole: usize) -> io::Result<()> {
    file.set_len(whole as u64)?;
    file.seek(SeekFrom::End(0))?;
    if whole == 0 {
        file.write_all(HEADER)?;
        // The name of a new file becomes durable with its folder: only Unix opens folders as files.
        if cfg!(unix) {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        }
    }
    Ok(())
}

/// Identifies this start of the machine, if the system says it.
fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

fn foreign(path: &Path, context: &Context) -> CliError {
    let path = context.env.shown(path);
    CliError::usage(format!("{path} exists and is not a journal of an import"))
        .hint("name another file with `--journal`")
}

fn busy(run: Option<Run>, input: &str, context: &Context) -> CliError {
    let problem = match run {
        Some(run) => {
            let since = context.facts.clock.instant(run.started);
            format!("process {} has been importing {input} since {since}", run.pid)
        }
        None => format!("another process is importing {input}"),
    };
    CliError::usage(problem).hint("wait until it ends; the same command then sends what is left")
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn unusable(error: io::Error) -> CliError {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull => "free some space and run the command again; it continues",
        _ => "`--journal FILE` names another file for it",
    };
    let problem = format!("cannot write the journal: {}", os_text(&error));
    CliError::new(Kind::Internal, problem).hint(hint)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const BOOT: &str = "this boot";

    fn run(damaged: &[usize]) -> Record {
        Record::Run(Run {
            pid: 7,
            started: SystemTime::UNIX_EPOCH,
            boot: Some(BOOT.to_owned()),
            base_url: String::new(),
            rows: 0,
            files: Vec::new(),
            damaged: damaged.to_vec(),
        })
    }

    fn records() -> Vec<Record> {
        vec![
            run(&[]),
            Record::Block { from: 0, digests: vec![1, 2, 3, 4] },
            Record::Rows(RowState::Unknown, vec![0]),
            Record::Rows(RowState::Created(7), vec![0]),
            Record::Rows(RowState::Unknown, vec![1, 2]),
            Record::Rows(RowState::Rejected("bad".into()), vec![1]),
            Record::Rows(RowState::Unknown, vec![3]),
            Record::Rows(RowState::Announced, vec![3]),
        ]
    }

    fn bytes(records: &[Record]) -> Vec<u8> {
        let lines: String = records.iter().map(|record| line(record).unwrap()).collect();
        [HEADER, lines.as_bytes()].concat()
    }

    fn states(bytes: &[u8], boot: &str) -> Vec<RowState> {
        State::read(bytes, Some(boot)).unwrap().rows
    }

    #[test]
    fn folds_its_records_into_the_state_of_each_row() {
        let state = State::read(&bytes(&records()), Some(BOOT)).unwrap();
        let rejected = RowState::Rejected("bad".into());
        assert_eq!(state.rows, [RowState::Created(7), rejected, RowState::Unknown, RowState::Left]);
        assert_eq!((state.first_id, state.digests[1]), (Some(7), Some(2)));
        assert!(state.damaged.is_empty() && !state.is_cut);
    }

    #[test]
    fn after_a_kill_at_any_byte_a_row_is_left_only_if_it_was_not_sent() {
        let whole = bytes(&records());
        for length in 0..=whole.len() {
            let Some(state) = State::read(&whole[..length], Some(BOOT)) else { panic!("{length}") };
            let lines = whole[..length].iter().filter(|byte| **byte == b'\n').count();
            let sent: Vec<usize> = records()[..lines.saturating_sub(1)]
                .iter()
                .flat_map(|record| match record {
                    Record::Rows(RowState::Unknown, rows) => rows.clone(),
                    _ => Vec::new(),
                })
                .filter(|row| *row != 3)
                .collect();
            for row in 0..3 {
                let is_left = state.rows.get(row).is_none_or(RowState::is_left);
                assert_eq!(is_left, !sent.contains(&row), "{length} {row}");
            }
            assert_eq!(state.is_cut, length > 0 && whole[length - 1] != b'\n', "{length}");
        }
    }

    #[test]
    fn after_a_power_cut_every_announced_row_without_an_outcome_is_unknown() {
        let whole = bytes(&records()[..4]);
        let unknown = || RowState::Unknown;
        let expected = [RowState::Created(7), unknown(), unknown(), unknown()];
        assert_eq!(states(&whole, "another boot"), expected);
        let left = [RowState::Created(7), RowState::Left, RowState::Left, RowState::Left];
        assert_eq!(states(&whole, BOOT), left);
        let ended = bytes(&[&records()[..4], &[Record::End]].concat());
        assert_eq!(states(&ended, "another boot"), left);
    }

    #[test]
    fn rows_that_a_damaged_line_may_concern_are_unknown_until_a_run_takes_it_into_account() {
        let whole = bytes(&records());
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            let number = whole[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            let Some(state) = State::read(&damaged, Some(BOOT)) else {
                assert_eq!(number, 1, "without its first line it is not a journal");
                continue;
            };
            assert!(!state.damaged.is_empty() || state.is_cut, "{at}");
            for row in 0..3 {
                let is_left = state.rows.get(row).is_none_or(RowState::is_left);
                // Without the announcement only rows with records are known.
                assert!(!is_left || number == 3, "{at}: {row}");
            }
            if !state.is_cut {
                assert_eq!(state.damaged, [number]);
                damaged.extend(line(&run(&state.damaged)).unwrap().bytes());
                assert_eq!(State::read(&damaged, Some(BOOT)).unwrap().damaged, [0; 0], "{at}");
                damaged.extend(b"more\n");
                assert_eq!(State::read(&damaged, Some(BOOT)).unwrap().damaged.len(), 1, "{at}");
            }
        }
    }

    #[test]
    fn what_a_run_announced_and_did_not_send_is_left_when_the_next_one_begins() {
        let first = [run(&[]), Record::Block { from: 0, digests: vec![1, 2, 3] }];
        let state = |between: &[u8]| {
            let bytes = [&*bytes(&first), between, line(&run(&[])).unwrap().as_bytes()].concat();
            State::read(&bytes, Some("another boot")).unwrap()
        };
        assert_eq!(state(b"").rows, vec![RowState::Left; 3]);
        assert_eq!(state(b"").digests, [Some(1), Some(2), Some(3)]);
        assert_eq!(state(b"damaged\n").rows, vec![RowState::Unknown; 3]);
    }

    #[test]
    fn a_cut_line_is_removed_before_more_is_written() {
        let mut file = tempfile::tempfile().unwrap();
        trim(&mut file, Path::new("journal"), 0).unwrap();
        let whole = bytes(&records());
        for written in [&whole[HEADER.len()..], b"cut"] {
            file.write_all(written).unwrap();
        }
        trim(&mut file, Path::new("journal"), whole.len()).unwrap();
        file.write_all(b"more\n").unwrap();
        let mut found = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut found).unwrap();
        assert_eq!(found, [&*whole, b"more\n"].concat());
    }

    #[test]
    fn a_foreign_file_is_not_a_journal() {
        for foreign in ["hello\n", "hello", "journal of petstore pets import, version 2\n"] {
            assert_eq!(State::read(foreign.as_bytes(), None), None, "{foreign}");
        }
    }

    /// A disk that loses what was not synced: its bytes, and how many of them were.
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
        disk.lock().unwrap().0.extend_from_slice(HEADER);
        journal.begin(String::new(), SystemTime::UNIX_EPOCH, vec![]).unwrap();
        let durable = || {
            let disk = disk.lock().unwrap();
            states(&disk.0[..disk.1], "another boot")
        };
        for from in [0, 2] {
            journal.announce(from, vec![1, 2]).await.unwrap();
            for row in [from, from + 1] {
                journal.write(vec![Record::Rows(RowState::Unknown, vec![row])]).unwrap();
                // Here it is sent.
                assert_eq!(durable()[row], RowState::Unknown, "{row}");
                journal.write(vec![Record::Rows(RowState::Created(1), vec![row])]).unwrap();
            }
        }
        journal.announce(4, vec![1]).await.unwrap();
        journal.end().unwrap();
        let created = vec![RowState::Created(1); 4];
        assert_eq!(durable(), [created, vec![RowState::Left]].concat());
    }
}
