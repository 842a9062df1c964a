//! The file in which the processes of one machine keep a key's ledger together.
//!
//! Whoever looks at the ledger locks the file, reads it, and writes it again before it lets go: a
//! process that is killed leaves no lock, and what it had in flight ends with its leases. Waiting
//! for the lock is short and bounded, since it blocks the thread.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock::{LocalTime, SECOND, ServiceTime};
use super::ledger::Ledger;
use crate::clock;

/// Changes with each change of what is written.
const VERSION: u32 = 3;
/// How often the lock is tried, and the pause in between: 50 ms in all. It is held for some
/// microseconds at a time.
const MAX_LOCK_ATTEMPTS: u32 = 500;
const LOCK_INTERVAL: Duration = Duration::from_micros(100);
/// For how long the file is left alone after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// And where it can be read and not written: what it says is out of date.
const READ_ONLY_RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// A larger file is not ours.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct SharedFile {
    path: PathBuf,
    /// What the wall clock showed when the local clock began: by the sum of both, processes agree.
    started: ServiceTime,
    /// Set while the file is out of reach: when it is tried again.
    retry_at: Option<LocalTime>,
    locked: Option<LockedFile>,
}

/// The file, locked until this is dropped, and what it held.
#[derive(Debug)]
struct LockedFile {
    file: File,
    text: Vec<u8>,
}

/// What stands in the file. Local times are on the wall clock.
#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    written: ServiceTime,
    ledger: Ledger,
}

impl SharedFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, started: clock::wall().into(), retry_at: None, locked: None }
    }

    /// Locks the file and takes over what other processes have written.
    pub(super) fn read(&mut self, ledger: &mut Ledger, now: LocalTime) {
        self.lock(now);
        let Some(locked) = &self.locked else {
            ledger.requests.expire(now);
            ledger.set_cut_off(true);
            return;
        };
        ledger.set_cut_off(false);
        if locked.text.is_empty() {
            return;
        }
        match decode(&locked.text, now, self.started.moved(now.0)) {
            Some(other) => ledger.adopt(other),
            None => {
                let path = self.path.display();
                tracing::warn!(%path, "the file of shared rate limits is damaged, and is replaced");
            }
        }
        ledger.requests.expire(now);
    }

    /// Writes what other processes have to know, and unlocks the file.
    pub(super) fn write(&mut self, ledger: &mut Ledger, now: LocalTime) {
        let Some(locked) = self.locked.take() else { return };
        if let Err(problem) = locked.write(&encode(ledger, now, self.started.moved(now.0))) {
            tracing::warn!(%problem, "cannot write the file of shared rate limits");
            self.retry_at = Some(now.plus(READ_ONLY_RETRY_INTERVAL));
            ledger.set_cut_off(true);
        }
    }

    /// Locks and reads the file, unless it is out of reach, which is logged once.
    fn lock(&mut self, now: LocalTime) {
        if self.retry_at.is_some_and(|at| now < at) {
            return;
        }
        match self.open() {
            Ok(locked) => {
                self.retry_at = None;
                self.locked = Some(locked);
            }
            Err(problem) => {
                if self.retry_at.is_none() {
                    let path = self.path.display();
                    tracing::warn!(%path, %problem, "rate limits are not shared: cannot open the file");
                }
                self.retry_at = Some(now.plus(RETRY_INTERVAL));
            }
        }
    }

    fn open(&self) -> io::Result<LockedFile> {
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
        (&file).take(MAX_BYTES).read_to_end(&mut text)?;
        Ok(LockedFile { file, text })
    }
}

impl LockedFile {
    fn write(mut self, text: &[u8]) -> io::Result<()> {
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
    for _ in 0..MAX_LOCK_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_INTERVAL),
            Err(TryLockError::Error(problem)) => return Err(problem),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds its lock"))
}

/// Returns a ledger as one line. `wall` is the machine's clock.
pub(crate) fn encode(ledger: &Ledger, now: LocalTime, wall: ServiceTime) -> Vec<u8> {
    let ledger = ledger.clone().for_local_clock(wall.0.saturating_sub(now.0));
    // Nothing in it can fail to be written; an empty file is like none.
    let record = Record { version: VERSION, written: wall, ledger };
    let mut line = serde_json::to_vec(&record).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Reads what another process has written, unless it is damaged, of another version, or from
/// before the machine's clock was set back.
pub(crate) fn decode(text: &[u8], now: LocalTime, wall: ServiceTime) -> Option<Ledger> {
    // What is behind the line is the rest of an older, longer one.
    let line = text.split(|byte| *byte == b'\n').next()?;
    match serde_json::from_slice(line) {
        Ok(Record { version: VERSION, written, ledger }) if written <= wall.moved(SECOND) => {
            Some(ledger.for_local_clock(now.0.saturating_sub(wall.0)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::decision::{Decision, Policy};
    use super::super::ledger::ResponseHead;
    use super::super::outstanding::Reservation;
    use super::*;

    #[test]
    fn a_file_that_another_holds_is_out_of_reach_until_it_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("limits.json");
        let (mut one, mut two) = (SharedFile::new(path.clone()), SharedFile::new(path));
        let at = |millis: i64| LocalTime(millis * 1_000);
        one.lock(at(0));
        two.lock(at(0));
        assert!(two.locked.is_none());
        one.locked.take().unwrap().write(b"a longer line\n").unwrap();
        two.lock(at(999));
        assert!(two.locked.is_none(), "it is left alone for a while");
        two.lock(at(1_000));
        let page = two.locked.take().unwrap();
        assert_eq!(page.text, b"a longer line\n");
        page.write(b"a line\n").unwrap();
        one.lock(at(0));
        assert_eq!(one.locked.unwrap().text, b"a line\n");
    }

    fn new() -> Ledger {
        Ledger::new(LocalTime(0), ServiceTime(0))
    }

    fn share(from: &Ledger, to: &mut Ledger, at: i64) {
        let text = encode(from, LocalTime(at), ServiceTime(at));
        to.adopt(decode(&text, LocalTime(at), ServiceTime(at)).unwrap());
    }

    fn send(ledger: &mut Ledger, at: i64) -> Reservation {
        let decision = ledger.decide(LocalTime(at), &Policy::default());
        let Decision::Send { probe } = decision else { panic!("{decision:?}") };
        let mut reservation = ledger.requests.reserve(LocalTime(at), probe);
        assert!(ledger.requests.start(&mut reservation, LocalTime(at), Duration::from_secs(30)));
        reservation
    }

    fn answer(ledger: &mut Ledger, request: Reservation, now: i64, date: i64, wait: u64) {
        let retry_after = (wait > 0).then(|| Duration::from_secs(wait));
        let status = if wait > 0 { 429 } else { 200 };
        let date = Some(ServiceTime(date * SECOND));
        let head = ResponseHead { status, date, figure: None, retry_after };
        ledger.record_response(request, LocalTime(now), &head, |_| Duration::ZERO);
    }

    fn is_blocked(ledger: &Ledger, at: i64) -> bool {
        let decision = ledger.decide(LocalTime(at), &Policy::default());
        matches!(decision, Decision::WaitUntil(_))
    }

    #[test]
    fn a_process_that_knows_the_clock_better_is_not_early_for_that() {
        let mut one = new();
        let first = send(&mut one, 0);
        answer(&mut one, first, 100_000, 101, 0);
        let (refused, other) = (send(&mut one, 900_000), send(&mut one, 900_000));
        answer(&mut one, refused, SECOND, 101, 10);
        let mut two = new();
        share(&one, &mut two, SECOND);
        // The service's clock is nearly a second further than the first process knew.
        answer(&mut two, other, 1_010_000, 102, 0);
        assert!(is_blocked(&two, 10_990_000) && !is_blocked(&two, 11_000_000));
    }

    #[test]
    fn one_process_tells_the_others_that_the_services_clock_was_set() {
        let (mut one, mut two) = (new(), new());
        let first = send(&mut one, 0);
        answer(&mut one, first, SECOND, 9_001, 0);
        share(&one, &mut two, SECOND);
        let refused = send(&mut one, SECOND);
        answer(&mut one, refused, 2 * SECOND, 1_802, 10);
        share(&one, &mut two, 2 * SECOND);
        assert!(is_blocked(&two, 11_900_000) && !is_blocked(&two, 14 * SECOND));
        let off = two.clock.earliest(LocalTime(0)).0 - one.clock.earliest(LocalTime(0)).0;
        assert_eq!(off, -SECOND / 50, "but for how far two clocks of one machine may be apart");
    }

    #[test]
    fn a_record_from_before_the_machines_clock_was_set_back_is_none() {
        let text = encode(&new(), LocalTime(0), ServiceTime(3_600 * SECOND));
        assert!(decode(&text, LocalTime(0), ServiceTime(0)).is_none());
        assert!(decode(&text, LocalTime(0), ServiceTime(3_600 * SECOND)).is_some());
    }
}
