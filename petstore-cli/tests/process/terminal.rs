//! Tests of `petstore` at a real pseudo-terminal: prompts, the status line, and Ctrl-C.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use petstore_mock::{Clock, FaultGuard, MockServer, Operation, Plan, Seed, Window};
use rexpect::session::{PtySession, spawn_command};

use super::support::{KEY, PETSTORE, pause, petstore, rows};

/// A mock whose minute begins with the first request.
fn serve(plan: Plan) -> MockServer {
    MockServer::builder()
        .key(KEY, plan)
        .window(Window::Sliding)
        .start_blocking()
        .unwrap()
}

/// Runs a command in a shell at a terminal. The shell prints the exit code, and `as it was` if the
/// terminal's modes are unchanged.
fn typed(line: &str, home: &Path, url: &str) -> PtySession {
    let mut shell = Command::new("sh");
    let script = format!(
        "trap : INT; before=$(stty -g); \"$0\" {line}; echo \"exit $?\"; \
         [ \"$before\" = \"$(stty -g)\" ] && echo as it was"
    );
    shell
        .args(["-c", &script, PETSTORE])
        .env_clear()
        .env("HOME", home);
    shell.env("PATH", "/usr/bin:/bin").env("TERM", "xterm");
    shell.env("PETSTORE_BASE_URL", url).current_dir(home);
    // Only a program that hangs takes longer.
    spawn_command(shell, Some(120_000)).unwrap()
}

fn kill(signal: &str, process: &str) {
    let status = Command::new("kill").args([signal, process]).status();
    assert!(status.unwrap().success());
}

#[test]
fn asks_for_a_key_without_showing_it() {
    let (server, home) = (serve(Plan::Free), tempfile::tempdir().unwrap());
    let mut terminal = typed("auth login", home.path(), server.url());
    terminal.exp_string("API key (not shown): ").unwrap();
    terminal.send_line(KEY).unwrap();
    let shown = terminal.exp_eof().unwrap();
    assert!(shown.contains("exit 0"), "{shown}");
    assert!(!shown.contains(KEY), "{shown}");
    let kept = home.path().join(".config/petstore/keys/default");
    assert!(std::fs::read_to_string(kept).unwrap().contains(KEY));
}

#[test]
fn ctrl_c_at_the_question_leaves_the_terminal_as_it_was() {
    let (server, home) = (serve(Plan::Free), tempfile::tempdir().unwrap());
    let mut terminal = typed("auth login", home.path(), server.url());
    terminal.exp_string("API key (not shown): ").unwrap();
    terminal.send_control('c').unwrap();
    let shown = terminal.exp_eof().unwrap();
    assert!(shown.contains("exit 130"), "{shown}");
    assert!(shown.contains("as it was"), "{shown}");
}

#[test]
fn a_signal_at_the_question_leaves_the_terminal_as_it_was() {
    let (server, home) = (serve(Plan::Free), tempfile::tempdir().unwrap());
    let line = r#"--version; sh -c 'echo "pid $$."; exec "$0" auth login' "$0""#;
    let mut terminal = typed(line, home.path(), server.url());
    terminal.exp_string("pid ").unwrap();
    let process = terminal.exp_string(".").unwrap();
    terminal.exp_string("API key (not shown): ").unwrap();
    kill("-INT", &process);
    let shown = terminal.exp_eof().unwrap();
    assert!(
        shown.contains("exit 130") && shown.contains("as it was"),
        "{shown}"
    );
}

#[test]
fn counts_down_while_it_waits_and_stops_at_ctrl_c() {
    let (server, home) = (
        serve(Plan::enterprise(1, 100)),
        tempfile::tempdir().unwrap(),
    );
    let mut orders = petstore();
    orders
        .args(["store", "orders"])
        .env("PETSTORE_BASE_URL", server.url());
    assert!(orders.status().unwrap().success());
    let line = format!("--version; PETSTORE_API_KEY={KEY} \"$0\" pets list");
    let mut terminal = typed(&line, home.path(), server.url());
    let wait = r"minute quota used up; continues in \d+ s \(";
    terminal.exp_regex(wait).unwrap();
    terminal.exp_regex(wait).unwrap();
    terminal.send_control('c').unwrap();
    let shown = terminal.exp_eof().unwrap();
    assert!(shown.contains("interrupted"), "{shown}");
    assert!(shown.contains("exit 130"), "{shown}");
}

#[test]
fn a_slow_input_is_visible_and_stops_at_ctrl_c() {
    let home = tempfile::tempdir().unwrap();
    for command in ["pets import", "pets create --file -"] {
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
        assert!(
            shown.contains("\r\u{1b}[K\u{1b}[1m\u{1b}[31merror:"),
            "{shown}"
        );
        assert!(shown.contains("exit 130"), "{shown}");
    }
}

#[test]
fn a_table_is_for_the_terminal_and_its_width() {
    let (server, home) = (serve(Plan::Free), tempfile::tempdir().unwrap());
    let mut terminal = typed("--mock pets list --limit 1", home.path(), server.url());
    let shown = terminal.exp_eof().unwrap();
    assert!(shown.contains("\u{1b}[1mID  NAME"), "{shown}");
}

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// A server with a frozen clock, a home folder with twelve pets to import, and the command.
fn import(plan: Plan) -> (MockServer, tempfile::TempDir, String) {
    let clock = Clock::frozen(UNIX_EPOCH + Duration::from_secs(1_767_225_600));
    let server = MockServer::builder()
        .key(KEY, plan)
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

fn wait_for_hits(fault: &FaultGuard, hits: u64) {
    while fault.hits() < hits {
        pause();
    }
}

#[test]
fn ctrl_c_finishes_an_imports_rows_and_says_how_to_continue() {
    let (server, home, line) = import(Plan::Free);
    let first = server
        .faults()
        .on(Operation::CreatePet)
        .first(1)
        .delay(SECOND);
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
    assert!(
        shown.contains("interrupted") && shown.contains("exit 130"),
        "{shown}"
    );
    assert!(shown.contains("4 of 12 rows created, 8 left"), "{shown}");
    assert_eq!(server.requests(Operation::CreatePet).len(), 4);
    drop(slow);
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let resume = shown
        .split_once("`petstore ")
        .unwrap()
        .1
        .split_once("` continues");
    let resume = format!(
        "--version; PETSTORE_API_KEY={KEY} \"$0\" {}",
        resume.unwrap().0
    );
    let shown = typed(&resume, home.path(), server.url()).exp_eof().unwrap();
    assert!(shown.contains("exit 0"), "{shown}");
    assert_eq!(server.requests(Operation::CreatePet).len(), 12);
}

#[test]
fn a_second_ctrl_c_stops_an_import_at_once() {
    let (server, home, line) = import(Plan::Free);
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

#[test]
fn an_import_without_its_terminal_finishes_rows_in_flight() {
    let (server, home, line) = import(Plan::Free);
    let slow = all_but_the_first_are_slow(&server);
    let line = line.replace("\"$0\"", "sh -c 'echo \"pid $$.\"; exec \"$0\"") + "' \"$0\"";
    let mut terminal = typed(&line, home.path(), server.url());
    terminal.exp_string("pid ").unwrap();
    let process = terminal.exp_string(".").unwrap();
    wait_for_hits(&slow, 3);
    kill("-HUP", &process);
    terminal.exp_string("3 rows in flight").unwrap();
    server.clock().advance(HOUR);
    let shown = terminal.exp_eof().unwrap();
    assert!(shown.contains("hung up after 4 of 12 rows"), "{shown}");
    assert!(shown.contains("4 of 12 rows created, 8 left"), "{shown}");
}

#[test]
fn an_imports_bar_shows_the_quota_and_only_rows_in_flight() {
    let (server, home, line) = import(Plan::enterprise(5, 100));
    let mut terminal = typed(&line, home.path(), server.url());
    // Five rows now, five after a minute, two after another minute.
    terminal
        .exp_regex(r"########\.{12}  5 of 12  42%  minute quota: [0-9a-z ]+ \(")
        .unwrap();
    terminal.send_control('c').unwrap();
    let shown = terminal.exp_eof().unwrap();
    assert!(shown.contains("exit 130"), "{shown}");
    assert!(!shown.contains("in flight"), "{shown}");
    assert!(shown.contains("5 of 12 rows created, 7 left"), "{shown}");
    assert_eq!(server.requests(Operation::CreatePet).len(), 5);
}
