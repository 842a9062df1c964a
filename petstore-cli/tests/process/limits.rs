//! Tests of real processes that share a key's limits through the default file.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use petstore_mock::{MockServer, Operation, Plan, Seed};
use tokio::time::Instant;

use super::support::{self, KEY, Signal, rows};

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
    server
        .requests(..)
        .iter()
        .filter(|request| request.status == Some(status))
        .count()
}

/// Several imports at once, each with more rows than the minute allows.
async fn together(plan: Plan, limit: usize, processes: usize) {
    let (server, home) = (mock(plan).await, tempfile::tempdir().unwrap());
    let began = Instant::now();
    let imports: Vec<_> = (0..processes)
        .map(|number| {
            let file = home.path().join(format!("pets{number}.ndjson"));
            std::fs::write(&file, rows(3 * limit)).unwrap();
            // This is long enough to also get what is left by processes that have ended.
            let line = format!("pets import {} --max-wait 3", file.display());
            start(&server, home.path(), &line)
        })
        .collect();
    for import in imports {
        let output = import.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{said}");
    }
    assert_eq!(statuses(&server, 429), 0);
    let created = statuses(&server, 201);
    // The processes wait for each other. If the minute ends meanwhile, they also use the next
    // window.
    let windows = usize::try_from(began.elapsed().as_secs() / 60).unwrap() + 2;
    // A process that gets nothing for three seconds ends. On a loaded machine, that may be the
    // last one.
    let least = limit - limit / 10;
    assert!(
        (least..=windows * limit).contains(&created),
        "{created} of {limit}, {windows} windows"
    );
    server.report().assert_compliant();
}

#[tokio::test(flavor = "multi_thread")]
async fn four_processes_on_a_free_key_are_never_refused_and_use_it_up() {
    together(Plan::Free, 60, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_processes_on_a_pro_key_are_never_refused() {
    together(Plan::Pro, 300, 64).await;
}

/// Kills or suspends a process while its first request, the probe for all processes, is in flight.
async fn disturbed(signal: Signal) {
    let (server, home) = (mock(Plan::Pro).await, tempfile::tempdir().unwrap());
    let slow = server
        .faults()
        .on(Operation::ListPets)
        .nth(1)
        .delay(Duration::from_secs(600));
    let mut probing = start(&server, home.path(), "pets list");
    while server.requests(Operation::ListPets).is_empty() && slow.hits() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(probing.try_wait().unwrap(), None);
    }
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
async fn a_process_killed_as_it_asks_does_not_hold_others_up() {
    disturbed(Signal::KILL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_stopped_as_it_asks_does_not_hold_others_up() {
    disturbed(Signal::STOP).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_tell_how_many_other_processes_use_the_key() {
    let (server, home) = (mock(Plan::Pro).await, tempfile::tempdir().unwrap());
    assert_eq!(run(&server, home.path(), "store orders"), Some(0));
    let slow = server
        .faults()
        .on(Operation::ListPets)
        .delay(Duration::from_secs(600));
    let mut running = [(); 2].map(|()| start(&server, home.path(), "pets list"));
    while slow.hits() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        for child in &mut running {
            assert_eq!(child.try_wait().unwrap(), None);
        }
    }
    let mut limits = petstore(&server, home.path(), "limits -o table");
    let output = limits.stdout(Stdio::piped()).output().unwrap();
    for mut child in running {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("2 processes use the key now."), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_store_is_reported_once_and_the_command_continues() {
    let (server, home) = (mock(Plan::Pro).await, tempfile::tempdir().unwrap());
    std::fs::create_dir(home.path().join("petstore")).unwrap();
    std::fs::write(home.path().join("petstore/limits"), "a file in its place").unwrap();
    let output = petstore(&server, home.path(), "pets list").output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let warnings = said.matches("warning: rate limits are not shared").count();
    assert_eq!(warnings, 1, "{said}");
    assert!(
        said.contains("hint: `petstore doctor` checks the store"),
        "{said}"
    );
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
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("warning"), "{said}");
        done += usize::from(output.status.success());
    }
    assert_eq!(statuses(&server, 429), 0);
    assert!(done >= 40, "{done}");
    server.report().assert_compliant();
    let user = rustix::process::geteuid().as_raw();
    let place = home.path().join(format!("petstore-{user}"));
    let output = command("doctor -o tsv").stdout(Stdio::piped()).output();
    let said = String::from_utf8(output.unwrap().stdout).unwrap();
    let row = format!("limits store\tok\t{}", place.display());
    assert!(said.contains(&row), "{said}");
}

/// Returns the names of the files in the folder of shared limits.
fn files(home: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(home.join("petstore/limits")) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_leave_no_files_behind() {
    let (server, home) = (mock(Plan::Business).await, tempfile::tempdir().unwrap());
    for _ in 0..50 {
        let batch: Vec<_> = ["pets list", "limits", "limits --refresh", "store orders"]
            .map(|line| start(&server, home.path(), line))
            .into();
        for mut child in batch {
            assert!(child.wait().unwrap().success());
        }
    }
    let left = files(home.path());
    assert_eq!(left.len(), 1, "what is known of the key: {left:?}");
    assert_eq!(statuses(&server, 429), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_can_be_forgotten() {
    let (server, home) = (
        mock(Plan::enterprise(1, 1_000)).await,
        tempfile::tempdir().unwrap(),
    );
    assert_eq!(run(&server, home.path(), "pets list --max-wait 0"), Some(0));
    assert_eq!(run(&server, home.path(), "pets list --max-wait 0"), Some(7));
    assert_eq!(run(&server, home.path(), "limits --forget"), Some(0));
    // Now it sends a request, and is refused.
    assert_eq!(run(&server, home.path(), "pets list --max-wait 0"), Some(7));
    assert_eq!(server.requests(..).len(), 2);
}
