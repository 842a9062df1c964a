//! Tests of `petstore` at a real pseudo-terminal: prompts, the status line, and Ctrl-C.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use petstore_mock::{Clock, FaultGuard, MockServer, Operation, Plan, Seed};
use rexpect::session::{PtySession, spawn_command};

use super::support::{KEY, PETSTORE, rows, wait_for_hits};

/// Runs a command in a shell at a terminal. The shell prints the exit code, and `as it was` if the
/// terminal's modes are unchanged.
fn typed(line: &str, home: &Path, url: &str) -> PtySession {
    let mut shell = Command::new("sh");
    let script = format!(
        "trap : INT; before=$(stty -g); \"$0\" {line}; echo \"exit $?\"; \
         [ \"$before\" = \"$(stty -g)\" ] && echo as it was"
    );
    shell.args(["-c", &script, PETSTORE]).env_clear();
    shell.env("HOME", home).env("PATH", "/usr/bin:/bin");
    shell.env("TERM", "xterm").env("PETSTORE_BASE_URL", url);
    shell.current_dir(home);
    // Only a program that hangs takes longer.
    spawn_command(shell, Some(120_000)).unwrap()
}

#[test]
fn asks_for_a_key_without_showing_it() {
    let (server, home) = (MockServer::start_blocking(), tempfile::tempdir().unwrap());
    let mut terminal = typed("auth login", home.path(), server.url());
    terminal.exp_string("API key (not shown): ").unwrap();
    terminal.send_line("pro-key").unwrap();
    let shown = terminal.exp_eof().unwrap();
    assert!(shown.contains("exit 0"), "{shown}");
    assert!(!shown.contains("pro-key"), "{shown}");
    let kept = home.path().join(".config/petstore/keys/default");
    let kept = std::fs::read_to_string(kept).unwrap();
    assert!(kept.contains("pro-key"));
}

#[test]
fn ctrl_c_or_a_signal_at_the_question_leaves_the_terminal_as_it_was() {
    for is_typed in [true, false] {
        let home = tempfile::tempdir().unwrap();
        let line = r#"--version; sh -c 'echo "pid $$."; exec "$0" auth login' "$0""#;
        let mut terminal = typed(line, home.path(), "http://127.0.0.1:1/v1");
        terminal.exp_string("pid ").unwrap();
        let process = terminal.exp_string(".").unwrap();
        terminal.exp_string("API key (not shown): ").unwrap();
        if is_typed {
            terminal.send_control('c').unwrap();
        } else {
            let kill = Command::new("kill").args(["-INT", &process]).status();
            assert!(kill.unwrap().success());
        }
        let shown = terminal.exp_eof().unwrap();
        assert!(shown.contains("exit 130"), "{shown}");
        assert!(shown.contains("as it was"), "{shown}");
    }
}

#[test]
fn a_slow_input_is_visible_and_stops_at_ctrl_c() {
    let home = tempfile::tempdir().unwrap();
    for command in ["pets import", "api /pets --input -"] {
        // The pipe's writer survives Ctrl-C, because it runs in the background.
        let pipe = home.path().join(command.len().to_string());
        let pipe = pipe.display();
        let line = format!(
            "--version; mkfifo {pipe}; sleep 60 >{pipe} 2>/dev/null </dev/null & \
             \"$0\" --mock {command} <{pipe}"
        );
        let mut terminal = typed(&line, home.path(), "");
        terminal.exp_string("reading standard input, ").unwrap();
        terminal.send_control('c').unwrap();
        let shown = terminal.exp_eof().unwrap();
        let error = "\r\u{1b}[K\u{1b}[1m\u{1b}[31merror:";
        assert!(shown.contains(error), "{shown}");
        assert!(shown.contains("exit 130"), "{shown}");
    }
}

#[test]
fn a_table_is_for_the_terminal_and_its_width() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = typed("--mock pets list --limit 1", home.path(), "");
    let shown = terminal.exp_eof().unwrap();
    assert!(shown.contains("\u{1b}[1mID  NAME"), "{shown}");
}

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// A server with a frozen clock, a home folder with twelve pets to import, and the command.
fn import() -> (MockServer, tempfile::TempDir, String) {
    let clock = Clock::frozen(UNIX_EPOCH + Duration::from_secs(1_767_225_600));
    let server = MockServer::builder()
        .key(KEY, Plan::Free)
        .seed(Seed::none())
        .clock(clock);
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("pets.ndjson"), rows(12)).unwrap();
    let line = format!(
        "--version; PETSTORE_API_KEY={KEY} \"$0\" pets import pets.ndjson --concurrency 3 \
         --timeout 1h"
    );
    (server.start_blocking().unwrap(), home, line)
}

fn all_but_the_first_are_slow(server: &MockServer) -> FaultGuard {
    let creates = server.faults().on(Operation::CreatePet);
    creates.after(1).delay(HOUR)
}

#[test]
fn ctrl_c_finishes_an_imports_rows_and_says_how_to_continue() {
    let (server, home, line) = import();
    let creates = server.faults().on(Operation::CreatePet);
    let first = creates.first(1).delay(SECOND);
    let slow = all_but_the_first_are_slow(&server);
    let mut terminal = typed(&line, home.path(), server.url());
    terminal
        .exp_string("....................  0 of 12  0%  starting")
        .unwrap();
    wait_for_hits(&first, 1);
    server.clock().advance(SECOND);
    wait_for_hits(&slow, 3);
    terminal.send_control('c').unwrap();
    terminal
        .exp_string("3 rows in flight, at most 1 h; Ctrl-C again stops at once")
        .unwrap();
    server.clock().advance(HOUR);
    let shown = terminal.exp_eof().unwrap();
    for part in ["interrupted", "exit 130", "4 of 12 rows created, 8 left"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(server.requests(Operation::CreatePet).len(), 4);
    drop(slow);
    let shown = typed(&line, home.path(), server.url()).exp_eof().unwrap();
    assert!(shown.contains("exit 0"), "{shown}");
    assert_eq!(server.requests(Operation::CreatePet).len(), 12);
}

#[test]
fn a_second_ctrl_c_stops_an_import_at_once() {
    let (server, home, line) = import();
    let slow = all_but_the_first_are_slow(&server);
    let mut terminal = typed(&line, home.path(), server.url());
    wait_for_hits(&slow, 3);
    terminal.send_control('c').unwrap();
    terminal.exp_string("Ctrl-C again stops at once").unwrap();
    terminal.send_control('c').unwrap();
    let shown = terminal.exp_eof().unwrap();
    assert!(shown.contains("exit 130"), "{shown}");
    assert!(shown.contains("interrupted after 1 of 12 rows"), "{shown}");
}
