//! Keeps the store in a file. A pet confirmed with 201 survives a kill of the process.
//!
//! The file is a log: a first line with the format, then one line of JSON per change. A change is
//! appended before it is made in memory. An incomplete last line was never confirmed, so it is
//! dropped. Opening a file replaces its lines with one that contains everything.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
    thread,
    time::Duration,
};

use super::store::{Change, ChangeError, Store};

/// The first line, with the version of the format.
pub(crate) const FORMAT: &str = "{\"format\":\"petstore-mock data 2\"}\n";

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

/// An open data file.
pub(super) struct DataFile {
    file: File,
    /// The end of the last complete line.
    end: u64,
    /// The length of the line that could not be written, of which a part may follow; 0 if the last
    /// one was written.
    unwritten: usize,
    /// The original file. It stays locked against servers that opened it before it was replaced.
    _found: File,
}

impl DataFile {
    /// Opens a file, or creates one with `first`. Also returns its content.
    pub(super) fn open(path: &Path, first: Store) -> Result<(Self, Store), DataError> {
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
        let (store, end) = match bytes.is_empty() {
            true => (first, 0),
            false => read(&bytes)?,
        };
        let mut data = Self {
            file: found.try_clone()?,
            end,
            unwritten: 1,
            _found: found,
        };
        match data.replace(path, &store) {
            // The file cannot be compacted, for example because the disk is full or the folder
            // cannot be written. Then it is used as it is.
            Err(_) if !bytes.is_empty() => {}
            replaced => replaced?,
        }
        Ok((data, store))
    }

    /// Atomically replaces this file with one that contains a store, or does not change it.
    fn replace(&mut self, path: &Path, store: &Store) -> io::Result<()> {
        // The new file is in the same folder, because a rename is atomic only within a file system.
        let mut beside = OsString::from(path);
        beside.push(format!(".{}.tmp", std::process::id()));
        let all = [FORMAT.as_bytes(), &line(&Change::Replace(store.clone()))?].concat();
        let written = File::create(&beside).and_then(|mut file| {
            // The new file is locked before it appears under its name.
            file.lock()?;
            file.write_all(&all)?;
            file.sync_all()?;
            fs::rename(&beside, path)?;
            Ok(file)
        });
        if written.is_err() {
            // The new file may not exist. In any case, the first error is the one to report.
            let _ = fs::remove_file(&beside);
        }
        (self.file, self.end, self.unwritten) = (written?, all.len() as u64, 0);
        Ok(())
    }

    /// Appends a change, or does not change the file.
    pub(super) fn append(&mut self, change: &Change) -> Result<(), ChangeError> {
        let written = line(change).and_then(|line| self.write(&line));
        written.map_err(|error| ChangeError::Unsaved(error.to_string()))
    }

    /// Returns whether the file can be written. If the last change could not be written, tries it
    /// with a blank line of the same length.
    pub(super) fn is_ready(&mut self) -> bool {
        let mut blank = vec![b' '; self.unwritten];
        let Some(last) = blank.last_mut() else {
            return true;
        };
        *last = b'\n';
        self.write(&blank).is_ok()
    }

    /// Writes a line after the last complete one.
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.unwritten > 0 {
            self.file.set_len(self.end)?;
            self.file.seek(SeekFrom::Start(self.end))?;
        }
        self.unwritten = line.len();
        self.file.write_all(line)?;
        self.unwritten = 0;
        self.end += line.len() as u64;
        Ok(())
    }
}

/// Locks a file. Tries for 0.2 s, because a lock may outlive its server for a moment: a child process
/// that is just being started has a copy of each open file until it runs its program.
#[expect(
    clippy::disallowed_methods,
    reason = "it runs on a thread that may block"
)]
fn lock(file: &File) -> Result<(), DataError> {
    for _ in 0..20 {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
    Err(DataError::InUse)
}

/// Writes the line of a change.
pub(crate) fn line(change: &Change) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(change)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads a file. Also returns the end of its last complete line.
pub(crate) fn read(bytes: &[u8]) -> Result<(Store, u64), DataError> {
    let changes = bytes
        .strip_prefix(FORMAT.as_bytes())
        .ok_or(DataError::Foreign)?;
    let mut store = Store::default();
    let mut end = FORMAT.len();
    for (number, line) in (2..).zip(changes.split_inclusive(|byte| *byte == b'\n')) {
        // The last change may have been interrupted.
        if !line.ends_with(b"\n") {
            break;
        }
        let damaged = |what: String| DataError::Damaged(format!("line {number}: {what}"));
        // A blank line was a test whether the file can be written.
        if !line.trim_ascii().is_empty() {
            let change =
                serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
            let changed = store.change(change);
            changed.map_err(|error| damaged(error.to_string()))?;
        }
        end += line.len();
    }
    // The first change is written together with the file.
    if end == FORMAT.len() {
        return Err(DataError::Damaged("it has no complete line".to_owned()));
    }
    Ok((store, end as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SeedPet;

    fn add(id: i64) -> Change {
        Change::Add(SeedPet::new(format!("pet {id}"), 1).with_id(id))
    }

    fn file() -> Vec<u8> {
        let first = Change::Replace(Store::default());
        let lines = [first, add(1), add(2), add(3)].map(|change| line(&change).unwrap());
        [FORMAT.as_bytes(), &lines.concat()].concat()
    }

    fn pets(bytes: &[u8]) -> Result<usize, String> {
        read(bytes)
            .map(|(store, _)| store.pets().len())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_last_line_that_was_interrupted_is_cut_off_wherever_it_was() {
        let whole = file();
        let last = line(&add(3)).unwrap().len();
        assert_eq!(pets(&whole), Ok(3));
        for cut in 1..=last {
            assert_eq!(pets(&whole[..whole.len() - cut]), Ok(2), "{cut}");
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_file() {
        let with = |line: &str| [FORMAT, line].concat().into_bytes();
        for (bytes, wrong) in [
            (b"notes".to_vec(), "not a data file"),
            (
                b"petstore-mock data 1\n".to_vec(),
                "not a data file of this",
            ),
            (with(""), "it has no complete line"),
            (with("{\"remove\""), "it has no complete line"),
            (with("[]\n"), "line 2: "),
            (with("{\"remove\":7}\n"), "line 2: no pet has the id 7"),
        ] {
            let error = pets(&bytes).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
