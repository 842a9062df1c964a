//! Tests of an import that is killed, whose server is killed, and whose disk is full. A mock counts its
//! requests and pets.

use std::collections::BTreeMap;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use petstore_mock::{Builder, Effect, FaultGuard, MockServer, Operation, Plan, Seed};
use serde_json::Value;
use tempfile::TempDir;

use super::support::{KEY, PETSTORE, pause, petstore, rows, said};

fn mock() -> Builder {
    let plan = Plan::enterprise(1_000_000, 100_000_000);
    MockServer::builder().key(KEY, plan).seed(Seed::none())
}

/// An import of a file against a server.
struct Import {
    server: MockServer,
    folder: TempDir,
    rows: usize,
}

impl Import {
    fn new(rows: usize) -> Self {
        let server = mock().start_blocking().unwrap();
        Self::at(server, tempfile::tempdir().unwrap(), rows)
    }

    fn at(server: MockServer, folder: TempDir, rows: usize) -> Self {
        std::fs::write(folder.path().join("pets.ndjson"), self::rows(rows)).unwrap();
        Self {
            server,
            folder,
            rows,
        }
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = petstore();
        command
            .env("PETSTORE_BASE_URL", self.server.url())
            // The check waits for `--timeout`, which is 30 s by default.
            .args(["pets", "import", "pets.ndjson", "--timeout", "2"])
            .args(more)
            .current_dir(self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn start(&self, more: &[&str]) -> Child {
        self.command(more).spawn().unwrap()
    }

    fn run(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }

    /// Returns the number of requests that create a pet.
    fn sent(&self) -> usize {
        self.server.requests(Operation::CreatePet).len()
    }

    fn wait_for(&self, sent: usize, running: &mut Child) {
        while self.sent() < sent && running.try_wait().unwrap().is_none() {
            pause();
        }
    }

    /// Continues with `--unknown check`, which must create all remaining rows, each once.
    fn check(&self) {
        let output = self.run(&["--unknown", "check"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let pets = self.server.pets().all();
        let mut pets: Vec<_> = pets.iter().map(|pet| pet.category_id).collect();
        pets.sort_unstable();
        let expected: Vec<_> = (0..).take(self.rows).collect();
        assert_eq!(pets, expected);
        let again = self.run(&["-o", "json"]);
        let summary: Value = serde_json::from_slice(&again.stdout).unwrap();
        assert_eq!(summary["complete"], true);
        assert_eq!(self.server.pets().len(), self.rows);
    }
}

/// Kills an import `kills` times, each time after some more requests, and then lets it end.
fn killed_and_resumed(seed: usize, kills: usize) {
    let import = Import::new(120);
    let four = ["--concurrency", "4"];
    for kill in 0..kills {
        // A different number of requests each time, sometimes none.
        let some = (seed * 7 + kill * 5) % 19;
        let mut child = import.start(&four);
        import.wait_for(import.sent() + some, &mut child);
        // This sends SIGKILL. It fails if the process has just ended.
        let _ = child.kill();
        child.wait().unwrap();
    }
    let ended = import.run(&four);
    assert!(matches!(ended.status.code(), Some(0 | 8)), "{ended:?}");
    // Ignores requests whose body was not read because the sender was killed: they had no effect.
    let mut sent = BTreeMap::<_, usize>::new();
    for request in import.server.requests(Operation::CreatePet) {
        if !request.body.is_empty() || request.status.is_some() {
            *sent.entry(request.body).or_default() += 1;
        }
    }
    assert!(sent.values().all(|times| *times == 1), "{sent:?}");
    // Only rows in flight at a kill are missing: at most four each time.
    assert!(sent.len() >= import.rows - 4 * kills, "{}", sent.len());
    import.check();
}

#[test]
fn no_row_is_sent_twice_however_often_it_is_killed() {
    for seed in 0..3 {
        killed_and_resumed(seed, 5);
    }
}

/// The same with more than a hundred kills: `cargo test -p petstore-cli --test process kills --
/// --ignored`.
#[test]
#[ignore = "takes a while"]
fn no_row_is_sent_twice_in_a_hundred_kills() {
    for seed in 3..23 {
        killed_and_resumed(seed, 6);
    }
}

#[test]
fn an_import_goes_on_while_its_server_restarts() {
    let folder = tempfile::tempdir().unwrap();
    // The server keeps its pets. Dropping it ends it like a kill: requests in flight get no response.
    let data = folder.path().join("pets.data");
    let serve = |port: u16| mock().data(&data).port(port).start_blocking().unwrap();
    let journal = folder.path().join("pets.ndjson.petstore-journal");
    let failures = || {
        let journal = std::fs::read_to_string(&journal).unwrap_or_default();
        journal.matches("\"unknown\"").count() + journal.matches("\"unsent\"").count()
    };
    let server = serve(0);
    let port = server.addr().port();
    let mut import = Import::at(server, folder, 600);
    let mut running = import.start(&["--concurrency", "4"]);
    for enough in [30, 150, 1] {
        import.wait_for(enough, &mut running);
        let before = failures();
        // Meanwhile, there is a server at another port.
        let other = mock().start_blocking().unwrap();
        drop(std::mem::replace(&mut import.server, other));
        // The service stays away until the import has noticed.
        while failures() < before + 5 {
            let ended = running.try_wait().unwrap();
            assert!(ended.is_none(), "it ended without a pause");
            pause();
        }
        import.server = serve(port);
    }
    let output = running.wait_with_output().unwrap();
    // Only rows whose response was lost may be unknown: at most four in each outage, and one after
    // each answer.
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 8)), "{}", said(&output));
    let created = import.server.pets().len();
    assert!(created >= import.rows - 30, "{created}: {}", said(&output));
    import.check();
}

/// Kills an import while the server holds back a response.
fn kill_at(held: FaultGuard, import: &Import, arguments: &[&str]) {
    let mut child = import.start(arguments);
    while held.hits() == 0 {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "ended without a response");
        pause();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(held);
    import.check();
}

const FOREVER: Duration = Duration::from_secs(600);

#[test]
fn an_import_that_is_killed_as_it_sends_creates_each_row_once() {
    let unprocessed = Effect::All(vec![
        Effect::Status(500),
        Effect::Hang {
            after_body_bytes: None,
        },
    ]);
    for held in [unprocessed, Effect::Delay(FOREVER.into())] {
        let import = Import::new(12);
        let creates = import.server.faults().on(Operation::CreatePet);
        kill_at(creates.nth(1).apply(held), &import, &["--concurrency", "1"]);
    }
}

#[test]
fn an_import_that_is_killed_as_it_checks_creates_each_row_once() {
    for operation in [Operation::ListPets, Operation::CreatePet] {
        let import = Import::new(12);
        let faults = || import.server.faults();
        let lost = faults().on(Operation::CreatePet).nth(4).status(500);
        let code = import.run(&["--concurrency", "1"]).status.code();
        assert_eq!(code, Some(8));
        drop(lost);
        // A page of the list, or the row that is sent again.
        let held = faults().on(operation).nth(1).delay(FOREVER);
        kill_at(held, &import, &["--unknown", "check"]);
    }
}

#[test]
fn a_journal_on_a_full_disk_ends_the_import_and_figures_agree() {
    let import = Import::new(900);
    // The shell limits the size of files to 40 blocks, of 512 or 1,024 bytes.
    let mut limited = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 40; exec \"$0\" \"$@\"";
    limited.args(["-c", script, PETSTORE]).env_clear();
    let command = import.command(&["-o", "json"]);
    limited.args(command.get_args());
    for (name, value) in command.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    let output = limited.current_dir(import.folder.path()).output().unwrap();
    let problem = "rows: cannot write the journal pets.ndjson.petstore-journal: ";
    assert!(said(&output).contains(problem), "{}", said(&output));
    assert_eq!(output.status.code(), Some(8));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let created = import.server.pets().len();
    assert!(0 < created && created < import.rows, "{created}");
    assert_eq!(summary["run"]["created"], created, "{summary}");
    assert_eq!(summary["total"]["created"], created, "{summary}");
    assert_eq!(summary["total"]["left"], import.rows - created, "{summary}");
    import.check();
}
