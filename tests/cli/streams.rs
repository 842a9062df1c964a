//! Tests of a standard output that closes or is full, and of an input that ends early.

use std::io::{self, Write};

use super::harness::Petstore;

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
async fn a_full_disk_is_an_error() {
    for line in COMMANDS {
        let full = Petstore::bare().stdout(Broken(io::ErrorKind::StorageFull));
        let ran = full.run(line).await;
        assert!(
            ran.stderr.contains("error: cannot write the result: "),
            "{}",
            ran.stderr
        );
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
