//! Runs `petstore` without configuration, and makes rows to import.

use std::borrow::Cow;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use petstore_mock::FaultGuard;
pub(crate) use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

pub(crate) const PETSTORE: &str = env!("CARGO_BIN_EXE_petstore");
pub(crate) const KEY: &str = "sentinel-key";

/// A command with a key and an empty input. It shares no limits, because ports are reused, and the
/// limits of an earlier server could apply.
pub(crate) fn petstore() -> Command {
    let mut command = Command::new(PETSTORE);
    command
        .env_clear()
        .env("PETSTORE_API_KEY", KEY)
        .env("PETSTORE_LIMITS_STORE", "off")
        .stdin(Stdio::null());
    command
}

/// Returns what a command wrote to standard error.
pub(crate) fn said(output: &Output) -> Cow<'_, str> {
    String::from_utf8_lossy(&output.stderr)
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits a moment for something that happens in another process.
#[expect(
    clippy::disallowed_methods,
    reason = "no runtime runs on the test's thread"
)]
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}

/// Waits until a fault was applied this many times.
pub(crate) fn wait_for_hits(fault: &FaultGuard, hits: u64) {
    while fault.hits() < hits {
        pause();
    }
}

/// Returns rows with different names, as NDJSON.
pub(crate) fn rows(count: usize) -> String {
    (0..count)
        .map(|row| format!("{{\"name\":\"pet {row}\",\"categoryId\":{row}}}\n"))
        .collect()
}
