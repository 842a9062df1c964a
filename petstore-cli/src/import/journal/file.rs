//! The journal's file: locked while it is used, and written so that many lines are made durable at
//! once.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;
use tokio::sync::oneshot;

use super::entry::{Entry, Event, Header};
use super::ledger::Ledger;

/// Why a journal can't be used.
#[derive(Debug, Error)]
pub(crate) enum JournalError {
    #[error("another import of this file is under way")]
    Busy,
    /// The number of the line that makes no sense.
    #[error("it is no journal of an import, or is damaged: line {0} makes no sense")]
    Damaged(usize),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A journal that is open for writing. Dropping it writes what is still to be written.
#[derive(Debug)]
pub(crate) struct Journal(Arc<Writer>);

#[derive(Debug)]
struct Writer {
    /// Is held by who writes.
    file: Mutex<File>,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    lines: Vec<Line>,
    /// Whether somebody is about to write what is there.
    is_minded: bool,
    /// Whether nothing more is written: what follows a line that is not whole could not be read
    /// again.
    is_closed: bool,
}

#[derive(Debug)]
struct Line {
    text: String,
    /// Is told once the line is on the disk.
    kept: oneshot::Sender<io::Result<()>>,
}

/// Opens a journal, or begins one with this header, and returns what it holds.
///
/// # Errors
///
/// Where another process has it, it is damaged, or can't be read or written. Nothing is changed
/// then.
pub(crate) fn open(path: &Path, header: &Header) -> Result<(Journal, Ledger), JournalError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    // It holds names of pets and reasons: nobody else's business.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(JournalError::Busy),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let ledger = match Ledger::read(&bytes).map_err(JournalError::Damaged)? {
        Some(ledger) => ledger,
        None => begin(&mut file, path, header)?,
    };
    file.set_len(ledger.whole as u64)?;
    file.seek(SeekFrom::End(0))?;
    let writer = Writer { file: Mutex::new(file), queue: Mutex::default() };
    Ok((Journal(Arc::new(writer)), ledger))
}

/// Writes the first line, and makes the file itself durable.
fn begin(file: &mut File, path: &Path, header: &Header) -> io::Result<Ledger> {
    let mut line = serde_json::to_vec(header)?;
    line.push(b'\n');
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&line)?;
    file.sync_all()?;
    #[cfg(unix)]
    {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(Ledger { whole: line.len(), ..Ledger::new(header.clone()) })
}

impl Journal {
    /// Writes down what happened to a row; when this returns, it is on the disk.
    pub(crate) async fn note(&self, row: usize, event: Event) -> io::Result<()> {
        let text = serde_json::to_string(&Entry { row, event })?;
        let (kept, is_kept) = oneshot::channel();
        let gone = || io::Error::other("what came before it could not be written");
        let is_minded = {
            let mut queue = locked(&self.0.queue);
            if queue.is_closed {
                return Err(gone());
            }
            queue.lines.push(Line { text, kept });
            mem::replace(&mut queue.is_minded, true)
        };
        if !is_minded {
            let writer = Arc::clone(&self.0);
            tokio::task::spawn_blocking(move || writer.write(&mut locked(&writer.file)));
        }
        is_kept.await.map_err(|_| gone())?
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let mut file = locked(&self.0.file);
        self.0.write(&mut file);
        locked(&self.0.queue).is_closed = true;
        let _ = file.unlock();
    }
}

impl Writer {
    /// Writes lines until there are none; those that came while others were written go together.
    fn write(&self, file: &mut File) {
        loop {
            let batch = {
                let mut queue = locked(&self.queue);
                queue.is_minded = !queue.lines.is_empty() && !queue.is_closed;
                if !queue.is_minded {
                    return;
                }
                mem::take(&mut queue.lines)
            };
            let text: String = batch.iter().map(|line| format!("{}\n", line.text)).collect();
            let result = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
            if result.is_err() {
                let mut queue = locked(&self.queue);
                queue.is_closed = true;
                queue.lines.clear();
            }
            for line in batch {
                let told = match &result {
                    Ok(()) => Ok(()),
                    Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
                };
                // Whoever asked may have been stopped meanwhile.
                let _ = line.kept.send(told);
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
