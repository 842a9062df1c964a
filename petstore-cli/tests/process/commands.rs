//! Tests of `petstore` as a process, with real pipes, signals and exit codes.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use petstore_mock::{Clock, MockServer, Operation, Plan};

use super::support::{KEY, PETSTORE, Signal, petstore, signal};

#[test]
fn a_signal_stops_an_import_in_order_and_says_how_to_continue() {
    for (sent, said, code) in [
        (Signal::TERM, "terminated", 143),
        (Signal::HUP, "hung up", 129),
    ] {
        // In real time, the quota could reset in the meantime.
        let noon = Clock::frozen(UNIX_EPOCH + Duration::from_secs(1_800_014_400));
        let plan = Plan::enterprise(5, 100);
        let builder = MockServer::builder().key(KEY, plan).clock(noon);
        let server = builder.start_blocking().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let rows: String = (0..9).map(|row| format!("pet {row},{row}\n")).collect();
        let file = folder.path().join("pets.csv");
        std::fs::write(&file, format!("name,categoryId\n{rows}")).unwrap();
        let mut import = petstore();
        let import = import
            .args(["pets", "import", "pets.csv"])
            .env("PETSTORE_BASE_URL", server.url())
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = import.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // It waits for the next minute.
        let waits = "minute quota used up; continues in";
        assert!(lines.by_ref().any(|line| line.unwrap().contains(waits)));
        signal(&child, sent);
        let stderr: String = lines.map(|line| line.unwrap() + "\n").collect();
        let expected = format!(
            "note: 5 of 9 rows created, 4 left\nerror: {said} after 5 of 9 rows\n\
             hint: `petstore pets import pets.csv` continues\n"
        );
        assert_eq!(stderr, expected);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        // Nothing is unknown, so nothing has to be waited for.
        let journal = folder.path().join("pets.csv.petstore-journal");
        let journal = std::fs::read_to_string(journal).unwrap();
        assert!(
            journal.lines().last().unwrap().starts_with("{\"end\":"),
            "{journal}"
        );
    }
}

#[test]
fn a_hang_up_does_not_stop_what_nohup_started() {
    let plan = Plan::enterprise(1_000, 10_000);
    let server = MockServer::builder()
        .key(KEY, plan)
        .start_blocking()
        .unwrap();
    let held = server
        .faults()
        .on(Operation::CreatePet)
        .nth(1)
        .delay(Duration::from_secs(1));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pets.csv"), "name,categoryId\nRex,7\n").unwrap();
    let mut command = Command::new("nohup");
    command.arg(PETSTORE).args(["pets", "import", "pets.csv"]);
    command
        .env_clear()
        .env("PETSTORE_API_KEY", KEY)
        .env("PETSTORE_LIMITS_STORE", "off");
    let command = command
        .env("PETSTORE_BASE_URL", server.url())
        .current_dir(folder.path());
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    while held.hits() == 0 {
        assert!(child.try_wait().unwrap().is_none());
        super::support::pause();
    }
    signal(&child, Signal::HUP);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn settings_that_are_changed_at_the_same_time_are_all_kept() {
    let home = tempfile::tempdir().unwrap();
    let set = |profile: &str| {
        let mut command = Command::new(PETSTORE);
        command.args(["config", "set", "retries", "1", "--profile", profile]);
        command
            .env_clear()
            .env("HOME", home.path())
            .spawn()
            .unwrap()
    };
    let profiles: Vec<_> = (0..16).map(|number| format!("p{number}")).collect();
    let children: Vec<_> = profiles.iter().map(|profile| set(profile)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let config = std::fs::read_to_string(home.path().join(".config/petstore/config.toml")).unwrap();
    assert_eq!(config.matches("retries = 1").count(), 16, "{config}");
}
