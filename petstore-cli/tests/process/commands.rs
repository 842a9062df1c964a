//! Tests of `petstore` as a process, with real pipes, signals and exit codes.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use petstore_mock::{Clock, MockServer, Operation, Plan};

use super::support::{KEY, PETSTORE, Signal, petstore, rows, signal, wait_for_hits};

#[test]
fn a_signal_stops_an_import_in_order_and_says_how_to_continue() {
    let hour = Duration::from_secs(3_600);
    for (sent, cause, code) in [
        (Signal::TERM, "terminated", 143),
        (Signal::HUP, "hung up", 129),
    ] {
        let noon = Clock::frozen(UNIX_EPOCH + Duration::from_secs(1_800_014_400));
        let builder = MockServer::builder().key(KEY, Plan::Business).clock(noon);
        let server = builder.start_blocking().unwrap();
        let creates = server.faults().on(Operation::CreatePet);
        let slow = creates.after(1).delay(hour);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("pets.ndjson"), rows(9)).unwrap();
        let mut import = petstore();
        let import = import
            .args(["pets", "import", "pets.ndjson", "--timeout=2h"])
            .args(["--concurrency", "3"])
            .env("PETSTORE_BASE_URL", server.url())
            .current_dir(folder.path())
            .stderr(Stdio::piped());
        let mut child = import.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = lines.map(Result::unwrap);
        wait_for_hits(&slow, 3);
        signal(&child, sent);
        // The rows in flight get their responses.
        let waits = "note: stopping: 3 rows in flight, at most 2 h";
        assert!(lines.any(|line| line.starts_with(waits)));
        server.clock().advance(hour);
        let rest = lines.collect::<Vec<_>>().join("\n");
        assert!(
            rest.contains("note: 4 of 9 rows created, 5 left\n"),
            "{rest}"
        );
        let stopped = format!("error: {cause} after 4 of 9 rows\n");
        assert!(rest.contains(&stopped), "{rest}");
        assert!(rest.ends_with("` continues"), "{rest}");
        assert_eq!(child.wait().unwrap().code(), Some(code));
        // Nothing is unknown, so nothing has to be waited for.
        let journal = folder.path().join("pets.ndjson.petstore-journal");
        let journal = std::fs::read_to_string(journal).unwrap();
        let last = journal.lines().last().unwrap();
        assert!(last.starts_with("{\"end\":"), "{journal}");
    }
}

#[test]
fn a_hang_up_does_not_stop_what_nohup_started() {
    let server = MockServer::start_blocking();
    let creates = server.faults().on(Operation::CreatePet);
    let held = creates.delay(Duration::from_secs(1));
    let create = ["pets", "create", "Rex", "--category-id", "7"];
    let mut command = Command::new("nohup");
    command.arg(PETSTORE).args(create).env_clear();
    command.env("PETSTORE_API_KEY", "pro-key");
    command.env("PETSTORE_LIMITS_STORE", "off");
    command.env("PETSTORE_BASE_URL", server.url());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    wait_for_hits(&held, 1);
    signal(&child, Signal::HUP);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn settings_that_are_changed_at_the_same_time_are_all_kept() {
    let home = tempfile::tempdir().unwrap();
    let set = |number: usize| {
        let profile = format!("--profile=p{number}");
        let mut command = petstore();
        command.args(["config", "set", "retries", "1", &profile]);
        command.env("HOME", home.path()).spawn().unwrap()
    };
    let children: Vec<_> = (0..16).map(set).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let config = std::fs::read_to_string(home.path().join(".config/petstore/config.toml")).unwrap();
    assert_eq!(config.matches("retries = 1").count(), 16, "{config}");
}

#[test]
fn a_file_keeps_what_is_in_it_if_it_is_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pets.csv"), "name,categoryId\nRex,7\n").unwrap();
    let script = "(
        echo before
        \"$0\" --mock pets export - --jq length
        \"$0\" --mock pets import pets.csv -q --created /dev/stdout
        echo after
    ) > log";
    let mut shell = Command::new("/bin/sh");
    let shell = shell.args(["-c", script, PETSTORE]).env_clear();
    assert!(shell.current_dir(folder.path()).status().unwrap().success());
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let expected = "before\n25\nname,categoryId,petId\nRex,7,";
    assert!(
        log.starts_with(expected) && log.ends_with("\nafter\n"),
        "{log}"
    );
}
