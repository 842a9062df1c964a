//! Tests of a standard output that closes or is full, and of an input that ends early.

use std::io::{self, Write};
use std::time::Duration;

use petstore_mock::Operation;

use super::harness::Petstore;
use super::scene::Scene;

/// A stream that fails at the first write.
struct Broken(io::ErrorKind);

const BROKEN_PIPE: Broken = Broken(io::ErrorKind::BrokenPipe);
const FULL_DISK: Broken = Broken(io::ErrorKind::StorageFull);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_closed_pipe_ends_quietly_and_a_full_disk_is_an_error() {
    for line in [
        "--mock pets list",
        "--mock pets list -o json",
        "--mock api /pets -i",
        "--mock limits",
        "--help",
        "--version",
    ] {
        let ran = Petstore::bare().stdout(BROKEN_PIPE).run(line).await;
        let error = ran.stderr.lines().find(|line| !line.starts_with("note: "));
        assert_eq!((error, ran.code), (None, 0), "{line}");
        let ran = Petstore::bare().stdout(FULL_DISK).run(line).await;
        ran.says("error: cannot write the result: ");
        ran.ended(1);
    }
}

#[tokio::test]
async fn all_files_are_imported_although_the_reader_has_gone() {
    for (refused, code) in [(0, 0), (1, 8), (2, 8)] {
        let scene = Scene::new().await;
        scene.write("a.csv", "name,categoryId\nA,1\n");
        scene.write("b.csv", "name,categoryId\nB,2\n");
        let faults = scene.server.faults().on(Operation::CreatePet);
        let _refusing = (refused > 0).then(|| faults.nth(refused).status(400));
        let closed = |petstore: Petstore| petstore.stdout(BROKEN_PIPE);
        let line = "pets import DIR/a.csv DIR/b.csv -o csv";
        let ran = scene.run_with(closed, line).await;
        assert_eq!((scene.sent(), ran.code), (2, code), "{}", ran.stderr);
        scene.follow_hints().await;
    }
}

#[tokio::test]
async fn a_summary_that_cannot_be_written_hides_no_rejected_row() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\nRex,7\n");
    let _refusing = scene.server.faults().on(Operation::CreatePet).status(400);
    let full = |petstore: Petstore| petstore.stdout(FULL_DISK);
    let import = "pets import DIR/pets.csv -o csv";
    let ran = scene.run_with(full, import).await;
    ran.says("note: 0 of 1 row created, 1 rejected\n");
    ran.says("error: cannot write the result: no space left on the disk\n");
    ran.says("error: the import is not complete: 1 rejected\n");
    ran.ended(8);
    scene.follow_hints().await;
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_that_ends_the_inputs_writer_stops_the_command() {
    for (line, input) in [
        ("--mock pets import", ""),
        ("--mock api /pets --input -", "{\"name\":"),
    ] {
        let petstore = Petstore::bare().stdin(input);
        // Ctrl-C reaches the command just after the end of its input.
        let petstore = petstore.interrupted_after(Duration::from_millis(1));
        let ran = petstore.run(line).await;
        ran.says("error: interrupted\n");
        assert_eq!((&*ran.stdout, ran.code), ("", 130), "{line}");
    }
}
