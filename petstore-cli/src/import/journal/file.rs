//! The journal's file: locked while it is used, and written by a thread that makes many lines durable
//! at once.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

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

/// A journal that is open for writing. Dropping it waits for what is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    /// `None` once it is closed.
    lines: Option<Sender<Line>>,
    writer: Option<thread::JoinHandle<()>>,
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
    let (lines, queue) = channel();
    let name = "petstore-journal".to_owned();
    let writer = thread::Builder::new().name(name).spawn(move || write(file, &queue))?;
    Ok((Journal { lines: Some(lines), writer: Some(writer) }, ledger))
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
        let gone = || io::Error::other("the journal's writer has ended");
        let lines = self.lines.as_ref().ok_or_else(gone)?;
        lines.send(Line { text, kept }).map_err(|_| gone())?;
        is_kept.await.map_err(|_| gone())?
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(writer) = self.writer.take() {
            // What it could not write it has told already.
            let _ = writer.join();
        }
    }
}

/// Writes lines as they come; those that came while others were written go together.
fn write(mut file: File, queue: &Receiver<Line>) {
    while let Ok(first) = queue.recv() {
        let batch: Vec<Line> = std::iter::once(first).chain(queue.try_iter()).collect();
        let mut text = String::new();
        for line in &batch {
            text.push_str(&line.text);
            text.push('\n');
        }
        let result = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        for line in batch {
            let told = match &result {
                Ok(()) => Ok(()),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            // Whoever asked may have been stopped meanwhile.
            let _ = line.kept.send(told);
        }
        // What follows a line that is not whole could not be read again.
        if result.is_err() {
            return;
        }
    }
}
