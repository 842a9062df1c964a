//! Tests of real processes that share a key's limits through the default file.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use petstore_mock::{MockServer, Operation, Plan, Seed};
use tokio::time::Instant;

use super::support::{self, KEY, Signal, rows, said, wait_for_hits};

/// A folder for temporary files that cannot be used.
const NOWHERE: &str = "/dev/null";

fn petstore(server: &MockServer, home: &Path, line: &str) -> Command {
    let mut command = support::petstore();
    command
        .env("PETSTORE_BASE_URL", server.url())
        .env("PETSTORE_LIMITS_STORE", "file")
        .env("XDG_STATE_HOME", home)
        .env("TMPDIR", NOWHERE);
    command
        .args(line.split(' '))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn start(server: &MockServer, home: &Path, line: &str) -> Child {
    petstore(server, home, line).spawn().unwrap()
}

fn run(server: &MockServer, home: &Path, line: &str) -> Option<i32> {
    start(server, home, line).wait().unwrap().code()
}

async fn mock(plan: Plan) -> MockServer {
    MockServer::builder()
        .key(KEY, plan)
        .seed(Seed::none())
        // No test has more requests under way.
        .senders(64)
        .start()
        .await
        .unwrap()
}

fn statuses(server: &MockServer, status: u16) -> usize {
    let requests = server.requests(..).into_iter();
    requests
        .filter(|request| request.status == Some(status))
        .count()
}

/// Several imports at once, each with more rows than the minute allows.
#[tokio::test(flavor = "multi_thread")]
async fn four_processes_on_a_free_key_are_never_refused_and_use_it_up() {
    const LIMIT: usize = 60;
    let (server, home) = (mock(Plan::Free).await, tempfile::tempdir().unwrap());
    let began = Instant::now();
    let imports: Vec<_> = (0..4)
        .map(|number| {
            let file = home.path().join(format!("pets{number}.ndjson"));
            std::fs::write(&file, rows(3 * LIMIT)).unwrap();
            // This is long enough to also get what is left by processes that have ended.
            let line = format!("pets import {} --max-wait 3", file.display());
            start(&server, home.path(), &line)
        })
        .collect();
    for import in imports {
        let output = import.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    }
    assert_eq!(statuses(&server, 429), 0);
    let created = statuses(&server, 201);
    // The processes wait for each other. If the minute ends meanwhile, they also use the next
    // window.
    let windows = usize::try_from(began.elapsed().as_secs() / 60).unwrap() + 2;
    // A process that gets nothing for three seconds ends. On a loaded machine, that may be the
    // last one.
    let expected = LIMIT - LIMIT / 10..=windows * LIMIT;
    assert!(expected.contains(&created), "{created}, {windows} windows");
    server.report().assert_compliant();
}

/// Kills or suspends a process while its first request, the probe for all processes, is in flight.
async fn disturbed(signal: Signal) {
    let (server, home) = (mock(Plan::Pro).await, tempfile::tempdir().unwrap());
    let lists = server.faults().on(Operation::ListPets);
    let slow = lists.nth(1).delay(Duration::from_secs(600));
    let mut probing = start(&server, home.path(), "pets list");
    wait_for_hits(&slow, 1);
    support::signal(&probing, signal);
    let began = Instant::now();
    let other = petstore(&server, home.path(), "pets list").output();
    let (code, waited) = (other.unwrap().status.code(), began.elapsed());
    assert_eq!(code, Some(0));
    // Another first request goes after a second. The rest is slack.
    assert!(waited < Duration::from_secs(20), "{waited:?}");
    let _ = probing.kill();
    probing.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_or_stopped_as_it_asks_does_not_hold_others_up() {
    for signal in [Signal::KILL, Signal::STOP] {
        disturbed(signal).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_tell_how_many_other_processes_use_the_key() {
    let (server, home) = (mock(Plan::Pro).await, tempfile::tempdir().unwrap());
    assert_eq!(run(&server, home.path(), "store orders"), Some(0));
    let lists = server.faults().on(Operation::ListPets);
    let slow = lists.delay(Duration::from_secs(600));
    let running = [(); 2].map(|()| start(&server, home.path(), "pets list"));
    wait_for_hits(&slow, 2);
    let mut limits = petstore(&server, home.path(), "limits -o table");
    let output = limits.output().unwrap();
    for mut child in running {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let said = said(&output);
    assert!(
        said.contains("note: 2 processes use the key now\n"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_store_is_reported_once_and_the_command_continues() {
    let (server, home) = (mock(Plan::Pro).await, tempfile::tempdir().unwrap());
    std::fs::create_dir(home.path().join("petstore")).unwrap();
    std::fs::write(home.path().join("petstore/limits"), "a file in its place").unwrap();
    let output = petstore(&server, home.path(), "pets list")
        .output()
        .unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let warnings = said.matches("warning: rate limits are not shared").count();
    assert_eq!(warnings, 1, "{said}");
    let hint = "hint: `petstore doctor` checks the store";
    assert!(said.contains(hint), "{said}");
    let off = petstore(&server, home.path(), "pets list --limits-store off").output();
    assert!(off.unwrap().stderr.is_empty());
    assert_eq!(server.requests(..).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_without_a_state_folder_share_another() {
    let (server, home) = (mock(Plan::Free).await, tempfile::tempdir().unwrap());
    let command = |line: &str| {
        // Like in a container whose user has no home folder.
        let mut command = petstore(&server, Path::new(NOWHERE), line);
        command.env("TMPDIR", home.path());
        command
    };
    let runs: Vec<_> = (0..64)
        .map(|_| command("pets list --max-wait 1").spawn().unwrap())
        .collect();
    let mut done = 0;
    for run in runs {
        let output = run.wait_with_output().unwrap();
        assert!(!said(&output).contains("warning"), "{}", said(&output));
        done += usize::from(output.status.success());
    }
    assert_eq!(statuses(&server, 429), 0);
    assert!(done >= 40, "{done}");
    server.report().assert_compliant();
    let user = rustix::process::geteuid().as_raw();
    let place = home.path().join(format!("petstore-{user}"));
    let left = std::fs::read_dir(place).unwrap().count();
    assert_eq!(left, 1, "what is known of the key");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_can_be_forgotten() {
    let server = mock(Plan::enterprise(1, 1_000)).await;
    let home = tempfile::tempdir().unwrap();
    for (line, code, sent) in [
        ("pets list --max-wait 0", 0, 1),
        ("pets list --max-wait 0", 7, 1),
        ("limits --forget", 0, 1),
        // Now it sends a request, and is refused.
        ("pets list --max-wait 0", 7, 2),
    ] {
        assert_eq!(run(&server, home.path(), line), Some(code), "{line}");
        assert_eq!(server.requests(..).len(), sent, "{line}");
    }
}
