//! The file in which the processes of one machine keep a key's limits together.
//!
//! Whoever looks at the limits locks the file, reads it, and writes it again before it lets go: a
//! process that is killed leaves no lock, and what it had under way ends with its lease. Waiting
//! for the lock is short and bounded, since it blocks the thread. What the file says is `quota`'s.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use crate::quota::Local;

/// How often the lock is tried, and how long the pause in between is: 50 ms in all. It is held for
/// some microseconds at a time.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_micros(100);
/// After a failure the file is left alone for so long, in microseconds.
const REST: i64 = 1_000_000;
/// And for so long where it can be read, but not written: what it says is out of date.
const LONG_REST: i64 = 60_000_000;
/// A file that is larger is not ours.
const MOST: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    /// Set while the file is out of reach: when it is tried again.
    again: Option<Local>,
}

/// The file, locked until this is dropped.
#[derive(Debug)]
pub(super) struct Page {
    file: File,
    text: Vec<u8>,
}

impl Store {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, again: None }
    }

    /// Locks and reads the file; nothing where it is out of reach, which is logged once.
    pub(super) fn open(&mut self, now: Local) -> Option<Page> {
        if self.again.is_some_and(|again| now < again) {
            return None;
        }
        match self.locked() {
            Ok(page) => {
                self.again = None;
                Some(page)
            }
            Err(problem) => {
                if self.again.is_none() {
                    let path = self.path.display();
                    tracing::warn!(%path, %problem, "rate limits are not shared: no such file to be had");
                }
                self.again = Some(Local(now.0.saturating_add(REST)));
                None
            }
        }
    }

    /// Leaves a file alone that cannot be written.
    pub(super) fn rest(&mut self, now: Local) {
        self.again = Some(Local(now.0.saturating_add(LONG_REST)));
    }

    /// Says once that the file holds something else; it is written anew.
    pub(super) fn is_damaged(&self) {
        let path = self.path.display();
        tracing::warn!(%path, "the file of shared rate limits is damaged, and is replaced");
    }

    fn locked(&self) -> io::Result<Page> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&self.path).or_else(|problem| match self.path.parent() {
            Some(folder) if problem.kind() == io::ErrorKind::NotFound => {
                std::fs::create_dir_all(folder)?;
                options.open(&self.path)
            }
            _ => Err(problem),
        })?;
        lock(&file)?;
        let mut text = Vec::new();
        (&file).take(MOST).read_to_end(&mut text)?;
        Ok(Page { file, text })
    }
}

impl Page {
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Writes what is to be read next, unless it is what was read.
    pub(super) fn write(mut self, text: &[u8]) -> io::Result<()> {
        if self.text != text {
            // In place, and cut afterwards: a process that is killed in between leaves a whole
            // line with rests behind it.
            self.file.rewind()?;
            self.file.write_all(text)?;
            self.file.set_len(text.len() as u64)?;
        }
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "some microseconds, and bounded")]
fn lock(file: &File) -> io::Result<()> {
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(problem)) => return Err(problem),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds its lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_holds_is_out_of_reach_until_it_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("limits.json");
        let (mut one, mut two) = (Store::new(path.clone()), Store::new(path));
        let page = one.open(Local(0)).unwrap();
        assert!(two.open(Local(0)).is_none());
        page.write(b"a longer line\n").unwrap();
        assert!(two.open(Local(REST - 1)).is_none(), "it is left alone for a while");
        let page = two.open(Local(REST)).unwrap();
        assert_eq!(page.text(), b"a longer line\n");
        page.write(b"a line\n").unwrap();
        assert_eq!(one.open(Local(0)).unwrap().text(), b"a line\n");
    }
}
