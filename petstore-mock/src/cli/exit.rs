//! The exit statuses of the command line, where they are not those of a command that it ran.

/// All is well.
pub const DONE: u8 = 0;
/// It could not serve, or the mock that was asked for its health does not.
pub const FAILED: u8 = 1;
/// It was typed wrong.
pub const USAGE: u8 = 2;
/// The compliance report has what `--fail-on` names.
pub const FINDINGS: u8 = 3;
/// The command of `exec` can't be run, as shells have it.
pub const NOT_EXECUTABLE: u8 = 126;
/// The command of `exec` is not there, as shells have it.
pub const NOT_FOUND: u8 = 127;
/// To this the number of the signal is added that ended the command of `exec`, as shells have it.
pub const SIGNALLED: u8 = 128;
