//! Tests of an export into a file that is killed, and continued by the same command.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use petstore_mock::{Effect, MockServer, Operation, Plan, Seed, SeedPet};

use super::support::{KEY, Signal, pause, petstore, signal};

/// The pets of the service: seven pages, of which the last one is not full.
const PETS: usize = 650;

struct Scene {
    server: MockServer,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let pets = (0..PETS).map(|number| SeedPet::new(format!("pet {number}"), 7));
        let seed = pets.fold(Seed::new(), Seed::pet);
        let plan = Plan::enterprise(1_000_000, 100_000_000);
        let builder = MockServer::builder().key(KEY, plan).seed(seed);
        Self {
            server: builder.start_blocking().unwrap(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn export(&self, arguments: &str) -> Command {
        let mut command = petstore();
        command
            .env("PETSTORE_BASE_URL", self.server.url())
            .args(["pets", "export"])
            .args(arguments.split(' '))
            .current_dir(self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn listed(&self) -> usize {
        self.server.requests(Operation::ListPets).len()
    }

    /// Starts an export, and sends it a signal after it has requested this many more pages.
    fn interrupt(&self, arguments: &str, pages: usize, sent: Signal) -> std::process::Output {
        let enough = self.listed() + pages;
        let mut child = self.export(arguments).spawn().unwrap();
        while self.listed() < enough && child.try_wait().unwrap().is_none() {
            pause();
        }
        signal(&child, sent);
        child.wait_with_output().unwrap()
    }
}

/// Returns the numbers in the names of a file's pets.
fn numbers(file: &Path) -> Vec<usize> {
    let text = std::fs::read_to_string(file).unwrap();
    let names = text.lines().filter_map(|line| line.split("pet ").nth(1));
    let digits = names.map(|name| name.split(|c: char| !c.is_ascii_digit()).next().unwrap());
    digits.map(|digits| digits.parse().unwrap()).collect()
}

#[test]
fn an_export_that_is_killed_continues_and_has_each_row_once() {
    for (name, format) in [
        ("pets.ndjson", ""),
        ("pets.txt", " -o ndjson --fields id,name"),
    ] {
        let scene = Scene::new();
        let arguments = format!("{name}{format}");
        let slow = scene
            .server
            .faults()
            .on(Operation::ListPets)
            .delay(Duration::from_millis(120));
        for pages in [1, 4, 2] {
            scene.interrupt(&arguments, pages, Signal::KILL);
            assert!(!scene.path(name).exists(), "{name} is not complete");
        }
        // The export may have been killed while it wrote where to continue.
        std::fs::write(scene.path(&format!("{name}.petstore-new-mark")), "{").unwrap();
        drop(slow);
        let before = scene.listed();
        let ended = scene.export(&arguments).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{said}");
        assert!(
            said.contains("of an interrupted export\n"),
            "{name}: {said}"
        );
        let expected: Vec<_> = (0..PETS).collect();
        assert_eq!(numbers(&scene.path(name)), expected, "{name}");
        // The export has not started over. A kill costs only the pages since the last mark.
        let pages = scene.listed() - before;
        assert!(pages < 7, "{name}: {pages} pages");
        let left = std::fs::read_dir(scene.folder.path()).unwrap().count();
        assert_eq!(left, 1, "{name}: only the file is left");
    }
}

#[test]
fn ctrl_c_says_how_far_an_export_is_and_how_to_continue() {
    let scene = Scene::new();
    let slow = scene
        .server
        .faults()
        .on(Operation::ListPets)
        .nth(4)
        .delay(Duration::from_secs(600));
    let output = scene.interrupt("pets.ndjson", 4, Signal::INT);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "error: interrupted after 300 pets\n  the same command continues\n"
    );
    assert_eq!(output.status.code(), Some(130));
    drop(slow);
    let other = scene.export("pets.ndjson --status sold").output().unwrap();
    let said = String::from_utf8(other.stderr).unwrap();
    assert_eq!(
        said,
        "error: pets.ndjson.petstore-part is the beginning of another export\n\
         hint: `rm pets.ndjson.petstore-part` lets this one start\n"
    );
    assert_eq!(other.status.code(), Some(2));
    let ended = scene.export("pets.ndjson").output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(
        said,
        "note: continuing after 300 pets of an interrupted export\nnote: wrote 650 pets\n"
    );
    assert_eq!(scene.listed(), 4 + 4);
    assert_eq!(numbers(&scene.path("pets.ndjson")).len(), PETS);
}

#[test]
fn an_export_in_another_format_starts_over() {
    let scene = Scene::new();
    let lists = scene.server.faults().on(Operation::ListPets);
    let slow = lists.nth(4).delay(Duration::from_secs(600));
    scene.interrupt("pets.csv", 4, Signal::KILL);
    drop(slow);
    let ended = scene.export("pets.csv").output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(said, "note: wrote 650 pets\n");
    let text = std::fs::read_to_string(scene.path("pets.csv")).unwrap();
    assert_eq!(text.lines().count(), 1 + PETS);
    let left = std::fs::read_dir(scene.folder.path()).unwrap().count();
    assert_eq!(left, 1, "only the file is left");
}

#[test]
fn pages_that_overlap_after_an_interruption_are_noticed() {
    let scene = Scene::new();
    let lists = scene.server.faults().on(Operation::ListPets);
    let slow = lists.nth(4).delay(Duration::from_secs(600));
    scene.interrupt("pets.ndjson", 4, Signal::INT);
    drop(slow);
    // The service lists the first page again in place of the fourth.
    let part = scene.path("pets.ndjson.petstore-part");
    let rows = std::fs::read_to_string(&part).unwrap();
    let again = format!("[{}]", rows.lines().take(2).collect::<Vec<_>>().join(","));
    let _again = scene
        .server
        .faults()
        .on(Operation::ListPets)
        .first(1)
        .apply(Effect::Body { text: again });
    let ended = scene.export("pets.ndjson").output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("error: pet 1 came twice"), "{said}");
    assert_eq!(ended.status.code(), Some(8));
    assert_eq!(
        numbers(&scene.path("pets.ndjson"))[..300],
        (0..300).collect::<Vec<_>>()
    );
}

#[test]
fn a_second_export_to_the_same_file_waits_for_the_first() {
    let scene = Scene::new();
    let slow = scene
        .server
        .faults()
        .on(Operation::ListPets)
        .delay(Duration::from_secs(600));
    let mut first = scene.export("pets.csv").spawn().unwrap();
    while scene.listed() == 0 {
        assert!(first.try_wait().unwrap().is_none());
        pause();
    }
    let second = scene.export("pets.csv").output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(
        said.starts_with("error: another command is exporting to "),
        "{said}"
    );
    assert_eq!(second.status.code(), Some(2));
    first.kill().unwrap();
    first.wait().unwrap();
    drop(slow);
    assert_eq!(scene.export("pets.csv").status().unwrap().code(), Some(0));
}
