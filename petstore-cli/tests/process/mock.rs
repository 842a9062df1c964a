//! Tests of `petstore` as a process, with the embedded mock server.

use std::io::Read as _;
use std::process::{Command, Output, Stdio};

use super::support::{PETSTORE, Signal, petstore, said, signal};

fn shell(script: &str) -> Output {
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .env("PETSTORE", PETSTORE)
        .output()
        .unwrap()
}

#[test]
fn a_note_follows_the_result() {
    let out = shell("\"$PETSTORE\" --mock pets list --limit 1 -o json 2>&1");
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("\n]\nnote: there are more pets"), "{text}");
}

#[test]
fn a_closed_reader_is_not_an_error() {
    let output = shell(r#"{ "$PETSTORE" --mock pets list --all -o json; echo $? >&2; } | true"#);
    assert_eq!(said(&output), "0\n");
}

#[test]
#[cfg(target_os = "linux")]
fn a_filtered_export_onto_a_full_disk_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "cd '{}' && trap '' XFSZ && ulimit -f 1 && \
         \"$PETSTORE\" --mock pets export pets.txt -o json --jq 'range(1000)'",
        folder.path().display()
    );
    let output = shell(&script);
    let said = said(&output);
    assert!(said.starts_with("error: cannot write"), "{said}");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn signals_stop_a_command_whose_reader_does_not_read() {
    // The output exceeds the buffer of a pipe that nobody reads.
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut command = petstore();
        command.args(["--mock", "pets", "list", "--jq", "range(200000)"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 1]).unwrap();
        signal(&child, sent);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{sent:?}");
    }
}
