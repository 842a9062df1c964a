//! The command as it was typed, for hints.

use std::ffi::OsString;

use crate::escape;

/// What a hint changes in the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Without `--unknown`.
    Continue,
    /// With `--unknown check`.
    Check,
    /// With `--accept-uncertain`, and without `--unknown`.
    Accept,
}

/// Returns the command as typed, with its journal and profile, and with another `--unknown`.
pub(super) fn typed(args: &[OsString], change: Change) -> String {
    let args = args.iter().skip(1);
    let args: Vec<_> = args.map(|arg| arg.to_string_lossy()).collect();
    let end = args.iter().position(|arg| arg == "--");
    let (options, files) = args.split_at(end.unwrap_or(args.len()));
    let mut words = vec!["petstore".to_owned()];
    let mut is_value = false;
    for option in options {
        let is_name = !is_value && option == "--unknown";
        let is_left_out = option.starts_with("--unknown=") || option == "--accept-uncertain";
        if !is_value && !is_name && !is_left_out {
            words.push(escape::shell(option));
        }
        is_value = is_name;
    }
    match change {
        Change::Continue => {}
        Change::Check => words.push("--unknown check".to_owned()),
        Change::Accept => words.push("--accept-uncertain".to_owned()),
    }
    words.extend(files.iter().map(|file| escape::shell(file)));
    words.join(" ")
}
