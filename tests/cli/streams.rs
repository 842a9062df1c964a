//! Tests of a standard output that closes or is full, and of an input that ends early.

use std::io::{self, Write};

use petstore_mock::Operation;

use super::harness::Petstore;
use super::scene::Scene;

/// A stream that fails at the first write.
struct Broken(io::ErrorKind);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const COMMANDS: [&str; 6] = [
    "--mock pets list",
    "--mock pets list -o json",
    "--mock api /pets -i",
    "--mock limits",
    "--help",
    "--version",
];

#[tokio::test]
async fn a_closed_pipe_ends_quietly() {
    for line in COMMANDS {
        let closed = Petstore::bare().stdout(Broken(io::ErrorKind::BrokenPipe));
        let ran = closed.run(line).await;
        let error = ran.stderr.lines().find(|line| !line.starts_with("note: "));
        assert_eq!((error, ran.code), (None, 0), "{line}");
    }
}

#[tokio::test]
async fn an_import_whose_reader_has_gone_ends_with_its_result() {
    let ran = Petstore::bare()
        .stdin("id,name,categoryId,status\n1,Rex,7,lost\n")
        .stdout(Broken(io::ErrorKind::BrokenPipe))
        .run("--mock pets import - -o csv")
        .await;
    ran.says("error: the import is not complete: 1 rejected\n");
    assert_eq!(ran.code, 8);
}

#[tokio::test]
async fn all_files_are_imported_although_the_reader_has_gone() {
    for (refused, code) in [(0, 0), (1, 8), (2, 8)] {
        let scene = Scene::new().await;
        scene.write("a.csv", "name,categoryId\nA,1\n");
        scene.write("b.csv", "name,categoryId\nB,2\n");
        let faults = scene.server.faults().on(Operation::CreatePet);
        let _refusing = (refused > 0).then(|| faults.nth(refused).status(400));
        let closed = |petstore: Petstore| petstore.stdout(Broken(io::ErrorKind::BrokenPipe));
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
    let full = |petstore: Petstore| petstore.stdout(Broken(io::ErrorKind::StorageFull));
    let ran = scene
        .run_with(full, "pets import DIR/pets.csv -o csv")
        .await;
    let said = "note: 0 of 1 row created, 1 rejected\n\
                error: cannot write the result: no space left on the disk\nerror: the import is not complete: 1 rejected\n";
    ran.says(said);
    assert_eq!(ran.code, 8);
    scene.follow_hints().await;
}

#[tokio::test]
async fn a_full_disk_is_an_error() {
    for line in COMMANDS {
        let full = Petstore::bare().stdout(Broken(io::ErrorKind::StorageFull));
        let ran = full.run(line).await;
        ran.says("error: cannot write the result: ");
        assert_eq!(ran.code, 1, "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_that_ends_the_inputs_writer_stops_the_command() {
    for (line, input) in [
        ("--mock pets import", ""),
        ("--mock pets create --file -", "{\"name\":"),
        ("--mock api /pets --input -", "{\"name\":"),
    ] {
        let ran = Petstore::bare()
            .stdin(input)
            .interrupted_with_its_input()
            .run(line)
            .await;
        let hint = ran.stderr.lines().find(|line| line.starts_with("error: "));
        assert_eq!(
            (hint, ran.code),
            (Some("error: interrupted"), 130),
            "{line}"
        );
        assert_eq!(ran.stdout, "", "{line}");
    }
}
