//! Tests of an export into a file that is killed, and continued by the same command.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use petstore_mock::{Effect, MockServer, Operation, Plan, Seed, SeedPet};

use super::support::{KEY, Signal, pause, petstore, said, signal, wait_for_hits};

/// The pets of the service: seven pages, of which the last one is not full.
const PETS: usize = 650;

struct Scene {
    server: MockServer,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let pets = (0..PETS).map(|number| SeedPet::new(format!("pet {number}"), 7));
        let seed = pets.fold(Seed::none(), Seed::pet);
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

    /// Starts an export, and sends it a signal when it is time.
    fn interrupt(
        &self,
        arguments: &str,
        is_time: impl Fn() -> bool,
        sent: Signal,
    ) -> std::process::Output {
        let mut child = self.export(arguments).spawn().unwrap();
        while !is_time() && child.try_wait().unwrap().is_none() {
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
        let lists = scene.server.faults().on(Operation::ListPets);
        let slow = lists.delay(Duration::from_millis(120));
        for pages in [1, 4, 2] {
            let enough = scene.listed() + pages;
            scene.interrupt(&arguments, || scene.listed() >= enough, Signal::KILL);
            assert!(!scene.path(name).exists(), "{name} is not complete");
        }
        drop(slow);
        let before = scene.listed();
        let ended = scene.export(&arguments).output().unwrap();
        let said = said(&ended);
        assert_eq!(ended.status.code(), Some(0), "{said}");
        assert!(said.contains("of an interrupted export\n"), "{said}");
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
    let lists = scene.server.faults().on(Operation::ListPets);
    let slow = lists.after(3).delay(Duration::from_secs(600));
    let is_held = || slow.hits() >= 1;
    let output = scene.interrupt("pets.ndjson", is_held, Signal::INT);
    let expected = "error: interrupted after 300 pets\n  the same command continues\n";
    assert_eq!(said(&output), expected);
    assert_eq!(output.status.code(), Some(130));
    drop(slow);
    let other = scene.export("pets.ndjson --status sold").output().unwrap();
    let expected = "error: pets.ndjson.petstore-part is the beginning of another export\n";
    assert!(said(&other).starts_with(expected), "{}", said(&other));
    assert_eq!(other.status.code(), Some(2));
    let ended = scene.export("pets.ndjson").output().unwrap();
    let expected = "note: continuing after 300 pets of an interrupted export\n";
    assert!(said(&ended).starts_with(expected), "{}", said(&ended));
    assert_eq!(scene.listed(), 4 + 4);
    assert_eq!(numbers(&scene.path("pets.ndjson")).len(), PETS);
}

#[test]
fn an_export_in_another_format_starts_over() {
    let scene = Scene::new();
    let lists = scene.server.faults().on(Operation::ListPets);
    let slow = lists.after(3).delay(Duration::from_secs(600));
    let is_held = || slow.hits() >= 1;
    scene.interrupt("pets.csv", is_held, Signal::KILL);
    drop(slow);
    let ended = scene.export("pets.csv").output().unwrap();
    assert_eq!(said(&ended), "note: wrote 650 pets\n");
    let text = std::fs::read_to_string(scene.path("pets.csv")).unwrap();
    assert_eq!(text.lines().count(), 1 + PETS);
    let left = std::fs::read_dir(scene.folder.path()).unwrap().count();
    assert_eq!(left, 1, "only the file is left");
}

#[test]
fn pages_that_overlap_after_an_interruption_are_noticed() {
    let scene = Scene::new();
    let lists = scene.server.faults().on(Operation::ListPets);
    let slow = lists.after(3).delay(Duration::from_secs(600));
    let is_held = || slow.hits() >= 1;
    scene.interrupt("pets.ndjson", is_held, Signal::INT);
    drop(slow);
    // The service lists the first page again in place of the fourth.
    let part = scene.path("pets.ndjson.petstore-part");
    let rows = std::fs::read_to_string(&part).unwrap();
    let again = format!("[{}]", rows.lines().take(2).collect::<Vec<_>>().join(","));
    let lists = scene.server.faults().on(Operation::ListPets);
    let _again = lists.first(1).apply(Effect::Body { text: again });
    let ended = scene.export("pets.ndjson").output().unwrap();
    let said = said(&ended);
    assert!(said.contains("error: pet 1 came twice"), "{said}");
    assert_eq!(ended.status.code(), Some(8));
    let expected: Vec<_> = (0..300).collect();
    assert_eq!(numbers(&scene.path("pets.ndjson"))[..300], expected);
}

#[test]
fn a_second_export_to_the_same_file_waits_for_the_first() {
    let scene = Scene::new();
    let lists = scene.server.faults().on(Operation::ListPets);
    let slow = lists.delay(Duration::from_secs(600));
    let mut first = scene.export("pets.csv").spawn().unwrap();
    wait_for_hits(&slow, 1);
    let second = scene.export("pets.csv").output().unwrap();
    let said = said(&second);
    let error = "error: another command is exporting to ";
    assert!(said.starts_with(error), "{said}");
    assert_eq!(second.status.code(), Some(2));
    first.kill().unwrap();
    first.wait().unwrap();
    drop(slow);
    assert_eq!(scene.export("pets.csv").status().unwrap().code(), Some(0));
}
