//! The journal: what became of each row, in a file beside the input, so that no row is sent twice,
//! however the program ends.
//!
//! Each line is a checksum and an entry. Before rows are sent, a block of them is announced and made
//! durable (one `fsync` for many rows), and each row has an entry before it is sent, which is
//! written and not made durable by itself. Where the program was killed, what it wrote is there: a
//! row without an entry was not sent. Where the machine lost power, entries may be missing: then
//! every row of the announced blocks without a durable result counts as unknown, which is at most
//! [`BLOCK`] rows beyond those in flight, and `--unknown check` finds out about them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// So many rows are announced at once.
pub(crate) const BLOCK: usize = 256;

/// The version of the format.
const VERSION: u32 = 2;

/// What a line says. Rows are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Record {
    /// The first line: the service that the pets go to.
    #[serde(rename_all = "camelCase")]
    Import {
        version: u32,
        base_url: String,
    },
    Run(Run),
    /// Rows from this one on may be sent from now on; a digest of each, in hexadecimal digits.
    Block {
        from: usize,
        digests: String,
    },
    /// They are about to be sent.
    Sending(Vec<usize>),
    Created(usize, i64),
    /// It was created, as the list of pets shows.
    Found(usize, i64),
    Rejected(usize, String),
    /// Whether it was created is not known.
    Unknown(usize),
    /// They were not processed, and may be sent.
    Unsent(Vec<usize>),
    /// A file with rejected or unknown rows is written by this import.
    Writes(PathBuf),
    /// The run ended in order: rows without an entry were not sent.
    End,
}

/// A process that imports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) pid: u32,
    /// When it began, in seconds since 1970.
    pub(crate) started: u64,
    /// Identifies the start of the machine: what was written since then is not lost.
    pub(crate) boot: Option<String>,
}

/// What is known of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum RowState {
    /// It is still to be sent.
    #[default]
    Todo,
    Created(i64),
    Rejected(String),
    /// It was sent, or may have been.
    Unknown,
}

/// What a journal says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) base_url: String,
    pub(crate) rows: Vec<RowState>,
    /// What each announced row was.
    pub(crate) digests: Vec<Option<u64>>,
    /// The identifier below which no pet is of this import, if that is certain.
    pub(crate) first_id: Option<i64>,
    /// Files that this import writes.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) last_run: Option<Run>,
    /// The first damaged line, if one is.
    pub(crate) damaged: Option<usize>,
    /// Whether the last line was cut.
    pub(crate) is_cut: bool,
    /// How many rows were sent so far.
    sent: usize,
    /// The rows that the last run announced.
    announced: Vec<(usize, usize)>,
    has_ended: bool,
    /// How many bytes are whole lines.
    whole: usize,
}

impl State {
    /// Reads a journal; `None` where it is not one.
    pub(crate) fn read(bytes: &[u8], boot: Option<&str>) -> Option<Self> {
        let mut state = Self { has_ended: true, ..Self::default() };
        if bytes.is_empty() {
            return Some(state);
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        state.whole = whole;
        state.is_cut = whole < bytes.len();
        let lines =
            bytes.get(..whole)?.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for (number, line) in lines.enumerate() {
            match (number, parse(line)) {
                (0, Some(Record::Import { version: VERSION, base_url })) => {
                    state.base_url = base_url;
                }
                (0, _) => return None,
                (_, Some(entry)) => state.apply(entry),
                (number, None) => state.damaged = state.damaged.or(Some(number + 1)),
            }
        }
        // Of a foreign file no byte may be thrown away.
        if whole == 0 && !is_start(bytes) {
            return None;
        }
        state.settle(boot);
        Some(state)
    }

    /// Counts rows as unknown whose entries may be lost.
    fn settle(&mut self, boot: Option<&str>) {
        let last_boot = self.last_run.as_ref().and_then(|run| run.boot.as_deref());
        let is_same_boot = boot.is_some() && boot == last_boot;
        let may_lack_entries = !self.has_ended && !is_same_boot;
        if self.damaged.is_none() && !may_lack_entries {
            return;
        }
        for (from, to) in std::mem::take(&mut self.announced) {
            for row in from..to {
                let state = self.row(row);
                if *state == RowState::Todo {
                    *state = RowState::Unknown;
                }
            }
        }
    }

    fn row(&mut self, row: usize) -> &mut RowState {
        if self.rows.len() <= row {
            self.rows.resize(row + 1, RowState::Todo);
        }
        &mut self.rows[row]
    }

    /// Takes an entry over.
    pub(crate) fn apply(&mut self, entry: Record) {
        match entry {
            Record::Import { base_url, .. } => self.base_url = base_url,
            Record::Run(run) => {
                // Blocks of a run before this one were settled when this one began.
                self.last_run = Some(run);
                self.has_ended = false;
                if self.damaged.is_none() {
                    self.announced.clear();
                }
            }
            Record::Block { from, digests } => {
                let digests = digests.as_bytes().chunks(16).map(|chunk| {
                    let text = std::str::from_utf8(chunk).ok()?;
                    u64::from_str_radix(text, 16).ok()
                });
                let digests: Vec<_> = digests.collect();
                let to = from + digests.len();
                if self.digests.len() < to {
                    self.digests.resize(to, None);
                }
                self.digests[from..to].copy_from_slice(&digests);
                self.announced.push((from, to));
            }
            Record::Sending(rows) => {
                self.sent += rows.len();
                rows.into_iter().for_each(|row| *self.row(row) = RowState::Unknown);
            }
            Record::Created(row, id) => {
                // The first row goes alone, so that no other can have a lower identifier.
                if self.sent == 1 {
                    self.first_id = self.first_id.or(Some(id));
                }
                *self.row(row) = RowState::Created(id);
            }
            Record::Found(row, id) => *self.row(row) = RowState::Created(id),
            Record::Rejected(row, reason) => *self.row(row) = RowState::Rejected(reason),
            Record::Unknown(row) => *self.row(row) = RowState::Unknown,
            Record::Unsent(rows) => {
                rows.into_iter().for_each(|row| *self.row(row) = RowState::Todo);
            }
            Record::Writes(path) => self.files.push(path),
            Record::End => self.has_ended = true,
        }
    }

    /// Returns how many rows were sent so far.
    pub(crate) fn sent(&self) -> usize {
        self.sent
    }

    /// Returns the rows in a state, counted from 0.
    pub(crate) fn rows_where(&self, is: impl Fn(&RowState) -> bool) -> Vec<usize> {
        (0..self.rows.len()).filter(|row| is(&self.rows[*row])).collect()
    }

    pub(crate) fn count(&self, is: impl Fn(&RowState) -> bool) -> usize {
        self.rows.iter().filter(|row| is(row)).count()
    }
}

fn line(entry: &Record) -> io::Result<String> {
    let text = serde_json::to_string(entry)?;
    Ok(format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes())))
}

fn parse(line: &[u8]) -> Option<Record> {
    let (checksum, text) = line.split_at_checked(9)?;
    let checksum = std::str::from_utf8(checksum).ok()?.strip_suffix(' ')?;
    let is_intact = u32::from_str_radix(checksum, 16).ok()? == crc32fast::hash(text);
    serde_json::from_slice(text).ok().filter(|_| is_intact)
}

/// Returns whether these bytes may be the beginning of a journal's first line.
fn is_start(bytes: &[u8]) -> bool {
    let start = br#"{"import":"#;
    let (checksum, text) = bytes.split_at(bytes.len().min(9));
    let is_checksum = |(at, byte): (usize, &u8)| match at {
        8 => *byte == b' ',
        _ => byte.is_ascii_hexdigit(),
    };
    checksum.iter().enumerate().all(is_checksum)
        && start.starts_with(&text[..text.len().min(start.len())])
}

/// Where a journal is kept.
pub(crate) trait Storage: Send + Sync {
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// Makes durable what was appended.
    fn sync(&self) -> io::Result<()>;
}

impl Storage for File {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&*self).write_all(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A journal that is not kept.
struct Nowhere;

impl Storage for Nowhere {
    fn append(&self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Why a journal can't be used.
#[derive(Debug)]
pub(crate) enum JournalError {
    /// Another process uses it.
    Busy(Option<Run>),
    NotAJournal,
    Io(io::Error),
}

impl From<io::Error> for JournalError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A journal that is open for writing, and what it says.
pub(crate) struct Journal {
    storage: Arc<dyn Storage>,
    pub(crate) state: State,
    /// How long after its last change it was opened.
    pub(crate) opened_after: Option<Duration>,
}

impl Journal {
    /// Returns a journal that is not kept.
    pub(crate) fn nowhere() -> Self {
        Self::new(Arc::new(Nowhere), State::default())
    }

    pub(crate) fn new(storage: Arc<dyn Storage>, state: State) -> Self {
        Self { storage, state, opened_after: None }
    }

    /// Opens a journal, or begins one. Nothing is changed where it can't be used.
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        if std::fs::metadata(path).is_ok_and(|file| !file.is_file()) {
            return Err(JournalError::NotAJournal);
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // It holds names of pets and reasons: private.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let opened_after = file.metadata()?.modified()?.elapsed().ok();
        let lock = file.try_lock();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let state = State::read(&bytes, boot().as_deref());
        match lock {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(JournalError::Busy(state.and_then(|state| state.last_run)));
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let state = state.ok_or(JournalError::NotAJournal)?;
        file.set_len(state.whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        #[cfg(unix)]
        if state.whole == 0 {
            // The file itself becomes durable with its folder.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(Self { opened_after, ..Self::new(Arc::new(file), state) })
    }

    /// Begins a run.
    pub(crate) fn begin(&mut self, base_url: &str, started: u64) -> io::Result<()> {
        let mut entries = Vec::new();
        if self.state.whole == 0 {
            entries.push(Record::Import { version: VERSION, base_url: base_url.to_owned() });
        }
        // What counts as unknown now must stay so, whatever this run announces.
        entries.extend(
            self.state.rows_where(|row| *row == RowState::Unknown).into_iter().map(Record::Unknown),
        );
        entries.push(Record::Run(Run { pid: std::process::id(), started, boot: boot() }));
        self.write(entries)?;
        self.storage.sync()
    }

    /// Writes entries, and takes them over.
    pub(crate) fn write(&mut self, entries: Vec<Record>) -> io::Result<()> {
        let lines: io::Result<String> = entries.iter().map(line).collect();
        self.storage.append(lines?.as_bytes())?;
        entries.into_iter().for_each(|entry| self.state.apply(entry));
        Ok(())
    }

    /// Announces rows; they may be sent once the returned work is done.
    pub(crate) fn announce(
        &mut self,
        from: usize,
        digests: &[u64],
    ) -> io::Result<impl FnOnce() -> io::Result<()> + Send + 'static> {
        let digests = digests.iter().map(|digest| format!("{digest:016x}")).collect();
        self.write(vec![Record::Block { from, digests }])?;
        let storage = Arc::clone(&self.storage);
        Ok(move || storage.sync())
    }

    /// Ends a run in order.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.write(vec![Record::End])?;
        self.storage.sync()
    }
}

/// Returns what identifies this start of the machine, where the system tells.
fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const BOOT: &str = "this boot";

    fn run() -> Record {
        Record::Run(Run { pid: 7, started: 0, boot: Some(BOOT.to_owned()) })
    }

    fn entries() -> Vec<Record> {
        let base_url = "http://127.0.0.1/v1".to_owned();
        vec![
            Record::Import { version: VERSION, base_url },
            run(),
            Record::Block { from: 0, digests: "00000000000000010000000000000002".repeat(2) },
            Record::Sending(vec![0]),
            Record::Created(0, 7),
            Record::Sending(vec![1, 2]),
            Record::Rejected(1, "bad".into()),
            Record::Sending(vec![3]),
            Record::Unsent(vec![3]),
        ]
    }

    fn bytes(entries: &[Record]) -> Vec<u8> {
        entries.iter().map(|entry| line(entry).unwrap()).collect::<String>().into_bytes()
    }

    fn states(bytes: &[u8], boot: &str) -> Vec<RowState> {
        State::read(bytes, Some(boot)).unwrap().rows
    }

    #[test]
    fn folds_its_entries_into_the_state_of_each_row() {
        let state = State::read(&bytes(&entries()), Some(BOOT)).unwrap();
        let rejected = RowState::Rejected("bad".into());
        assert_eq!(state.rows, [RowState::Created(7), rejected, RowState::Unknown, RowState::Todo]);
        assert_eq!((state.first_id, state.digests[1], state.damaged), (Some(7), Some(2), None));
    }

    #[test]
    fn after_a_kill_at_any_byte_no_row_that_was_sent_is_to_be_sent() {
        let whole = bytes(&entries());
        for length in 0..=whole.len() {
            let Some(state) = State::read(&whole[..length], Some(BOOT)) else { panic!("{length}") };
            let lines = whole[..length].iter().filter(|byte| **byte == b'\n').count();
            let sent: Vec<usize> = entries()[..lines]
                .iter()
                .flat_map(|entry| match entry {
                    Record::Sending(rows) => rows.clone(),
                    _ => Vec::new(),
                })
                .filter(|row| *row != 3)
                .collect();
            for row in 0..3 {
                let is_todo = state.rows.get(row).is_none_or(|row| *row == RowState::Todo);
                assert_eq!(is_todo, !sent.contains(&row), "{length} {row}");
            }
            assert_eq!(state.is_cut, length > 0 && whole[length - 1] != b'\n', "{length}");
        }
    }

    #[test]
    fn after_a_power_cut_every_announced_row_without_a_result_is_unknown() {
        let whole = bytes(&entries()[..5]);
        let unknown = RowState::Unknown;
        let expected = [RowState::Created(7), unknown.clone(), unknown.clone(), unknown];
        assert_eq!(states(&whole, "another boot"), expected);
        assert_eq!(states(&whole, BOOT), [RowState::Created(7)]);
        let ended = bytes(&[&entries()[..5], &[Record::End]].concat());
        assert_eq!(states(&ended, "another boot"), [RowState::Created(7)]);
    }

    #[test]
    fn a_damaged_line_is_found_and_the_rows_it_may_concern_are_unknown() {
        let whole = bytes(&entries());
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            let number = whole[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            let Some(state) = State::read(&damaged, Some(BOOT)) else {
                assert_eq!(number, 1, "only the first line makes it no journal");
                continue;
            };
            assert!(state.damaged.is_some() || state.is_cut, "{at}");
            for row in 0..3 {
                let is_todo = state.rows.get(row).is_none_or(|row| *row == RowState::Todo);
                // Without the announcement only rows with entries are known.
                assert!(!is_todo || number == 3, "{at}: {row}");
            }
        }
    }

    #[test]
    fn a_foreign_file_is_no_journal() {
        for foreign in ["hello\n", "hello", "{\"import\":1}\n", "0000000g {\"im", "00000000 {\"imx"]
        {
            assert_eq!(State::read(foreign.as_bytes(), None), None, "{foreign}");
        }
        for start in ["", "0", "0123456", "01234567 ", "01234567 {\"imp"] {
            assert!(State::read(start.as_bytes(), None).is_some(), "{start}");
        }
    }

    /// A disk that loses what was not synced.
    #[derive(Default)]
    struct Disk(Mutex<(Vec<u8>, usize)>);

    impl Storage for Disk {
        fn append(&self, bytes: &[u8]) -> io::Result<()> {
            self.0.lock().unwrap().0.extend_from_slice(bytes);
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            let mut disk = self.0.lock().unwrap();
            disk.1 = disk.0.len();
            Ok(())
        }
    }

    #[test]
    fn no_row_is_sent_before_a_power_cut_would_leave_it_unknown() {
        let disk = Arc::new(Disk::default());
        let mut journal = Journal::new(disk.clone(), State::default());
        journal.begin("http://127.0.0.1/v1", 0).unwrap();
        let durable = || {
            let disk = disk.0.lock().unwrap();
            states(&disk.0[..disk.1], "another boot")
        };
        for from in [0, 2] {
            journal.announce(from, &[1, 2]).unwrap()().unwrap();
            for row in [from, from + 1] {
                journal.write(vec![Record::Sending(vec![row])]).unwrap();
                // Here it is sent.
                assert_eq!(durable()[row], RowState::Unknown, "{row}");
                journal.write(vec![Record::Created(row, 1)]).unwrap();
            }
        }
        journal.end().unwrap();
        assert_eq!(durable(), vec![RowState::Created(1); 4]);
    }
}
