//! Tests of an import whose server is killed and started again, and of one that is killed at each step.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use petstore_mock::{Effect, FaultGuard, MockServer, Operation, Plan, Seed};
use serde_json::Value;

use super::support::{KEY, PETSTORE, pause, petstore, rows};

/// Starts a mock server at a port, or at any port for 0. It keeps its pets in a file. Dropping it ends
/// it like a kill: requests in flight get no response.
fn serve(folder: &Path, port: u16) -> MockServer {
    MockServer::builder()
        .key(KEY, Plan::enterprise(1_000_000, 100_000_000))
        .seed(Seed::none())
        .data(folder.join("pets.data"))
        .port(port)
        .start_blocking()
        .unwrap()
}

/// An import of a file against a server.
struct Import {
    folder: PathBuf,
    url: String,
}

impl Import {
    fn command(&self, more: &[&str]) -> Command {
        let mut command = petstore();
        command
            .env("PETSTORE_BASE_URL", &self.url)
            // The check waits for `--timeout`, which is 30 s by default.
            .args(["pets", "import", "pets.ndjson", "--timeout", "3"])
            .args(more)
            .current_dir(&self.folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }

    /// Returns the names of all pets, sorted.
    fn names(&self) -> Vec<String> {
        let mut command = petstore();
        let list = command
            .env("PETSTORE_BASE_URL", &self.url)
            .args(["pets", "list", "--all", "--jq", ".[].name"]);
        let text = String::from_utf8(list.output().unwrap().stdout).unwrap();
        let mut names: Vec<_> = text.lines().map(str::to_owned).collect();
        names.sort();
        names
    }
}

fn expected(count: usize) -> Vec<String> {
    let mut names: Vec<_> = (0..count).map(|row| format!("pet {row}")).collect();
    names.sort();
    names
}

/// Continues with `--unknown check`, which must create all remaining rows.
fn check(import: &Import) {
    let output = import.run(&["--unknown", "check"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn an_import_goes_on_while_its_server_restarts() {
    const ROWS: usize = 600;
    const PAUSE: &str = "of 600 rows done; ";

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pets.ndjson"), rows(ROWS)).unwrap();
    let mut server = serve(folder.path(), 0);
    let port = server.addr().port();
    let import = Import {
        folder: folder.path().to_owned(),
        url: server.url().to_owned(),
    };
    let mut running = import.command(&["--concurrency", "4"]).spawn().unwrap();
    let mut stderr = BufReader::new(running.stderr.take().unwrap());
    let mut said = String::new();
    for enough in [30, 150, 1] {
        while server.requests(Operation::CreatePet).len() < enough
            && running.try_wait().unwrap().is_none()
        {
            pause();
        }
        drop(server);
        // The service stays away until the import has noticed. It says so at most once a minute.
        while !said.contains(PAUSE) {
            let length = stderr.read_line(&mut said).unwrap();
            assert!(length > 0, "it ended without a pause: {said}");
        }
        server = serve(folder.path(), port);
    }
    stderr.read_to_string(&mut said).unwrap();
    let code = running.wait().unwrap().code();
    // Only rows whose response was lost may be unknown: at most four in each outage, and one after
    // each answer.
    assert!(matches!(code, Some(0 | 8)), "{said}");
    let names = import.names();
    assert!(names.len() >= ROWS - 30, "{}: {said}", names.len());
    check(&import);
    assert_eq!(import.names(), expected(ROWS));
}

/// The request that is in flight when the command is killed.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A row that the service does not process.
    Send,
    /// A row that the service has processed.
    Answer,
    /// A page of the check.
    Check,
    /// A row that the check has sent again.
    SendAgain,
}

/// Starts an import, and kills it while the server holds back a response.
fn kill_at(held: &FaultGuard, import: &Import, arguments: &[&str]) {
    let mut child = import.command(arguments).spawn().unwrap();
    while held.hits() == 0 {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "ended without a response");
        pause();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn killed_at(step: Step) {
    const ROWS: usize = 12;

    let plan = Plan::enterprise(100_000, 1_000_000);
    let builder = MockServer::builder().key(KEY, plan).seed(Seed::none());
    let server = builder.start_blocking().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pets.ndjson"), rows(ROWS)).unwrap();
    let import = Import {
        folder: folder.path().to_owned(),
        url: server.url().to_owned(),
    };
    let forever = Duration::from_secs(600);
    let create = || server.faults().on(Operation::CreatePet);
    let one: &[&str] = &["--concurrency", "1"];
    let again: &[&str] = &["--unknown", "check"];
    if let Step::Check | Step::SendAgain = step {
        let _lost = create().nth(4).status(500);
        assert_eq!(import.run(one).status.code(), Some(8));
    }
    let (held, arguments) = match step {
        Step::Send => {
            let effects = vec![
                Effect::status(500),
                Effect::Hang {
                    after_body_bytes: None,
                },
            ];
            (create().nth(1).apply(Effect::All(effects)), one)
        }
        Step::Answer => (create().nth(1).delay(forever), one),
        Step::Check => {
            let list = server.faults().on(Operation::ListPets);
            (list.nth(1).delay(forever), again)
        }
        Step::SendAgain => (create().nth(1).delay(forever), again),
    };
    kill_at(&held, &import, arguments);
    drop(held);
    check(&import);
    assert_eq!(import.names(), expected(ROWS), "{step:?}");
    let again = import.run(&["-o", "json"]);
    let summary: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(summary["complete"], true, "{step:?}");
}

#[test]
fn an_import_that_is_killed_at_any_step_creates_each_row_once() {
    for step in [Step::Send, Step::Answer, Step::Check, Step::SendAgain] {
        killed_at(step);
    }
}

#[test]
#[cfg(unix)]
fn a_journal_on_a_full_disk_ends_the_import_and_figures_agree() {
    const ROWS: usize = 900;

    let plan = Plan::enterprise(100_000, 1_000_000);
    let builder = MockServer::builder().key(KEY, plan).seed(Seed::none());
    let server = builder.start_blocking().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pets.ndjson"), rows(ROWS)).unwrap();
    let import = Import {
        folder: folder.path().to_owned(),
        url: server.url().to_owned(),
    };
    // The shell limits the size of files to 40 blocks, of 512 or 1,024 bytes.
    let mut limited = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 40; exec \"$0\" \"$@\"";
    limited.args(["-c", script, PETSTORE]).env_clear();
    let command = import.command(&["-o", "json"]);
    limited.args(command.get_args());
    for (name, value) in command.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    let output = limited.current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{said}");
    let problem = "error: cannot write the journal pets.ndjson.petstore-journal: ";
    assert!(said.contains(problem), "{said}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let created = server.pets().len();
    assert!(0 < created && created < ROWS, "{created}");
    assert_eq!(summary["run"]["created"], created, "{summary}");
    assert_eq!(summary["total"]["created"], created, "{summary}");
    assert_eq!(summary["total"]["left"], ROWS - created, "{summary}");
    check(&import);
    assert_eq!(import.names(), expected(ROWS));
}
