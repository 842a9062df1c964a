//! Tests of `petstore` as a process, with real pipes, signals and exit codes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use petstore_mock::{Clock, MockServer, Plan};

use super::support::{KEY, PETSTORE, Signal, petstore, signal};

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
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.trim_end(), "0");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    let output = shell(r#""$PETSTORE" --mock pets list > /dev/full"#);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("error: cannot write the result: no space left"),
        "{stderr}"
    );
    assert_eq!(output.status.code(), Some(1));
}

/// If standard output is closed, Rust opens `/dev/null` in its place before `main` starts. If a
/// program in Node.js ignores a child's output, libuv passes the same file, opened in the same way.
/// So the two cannot be told apart.
#[test]
fn a_closed_stdout_counts_as_ignored_output() {
    let output = shell(r#""$PETSTORE" --mock pets list --limit 1 >&-"#);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("note: there are more pets"), "{stderr}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_proxy_that_refuses_is_what_to_check() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://me:{KEY}@{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4_096]);
            let _ = stream.write_all(b"HTTP/1.1 407 Expired\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let line = [
        "--base-url",
        "https://petstore.example/v1",
        "pets",
        "list",
        "--retries",
        "0",
    ];
    let output = petstore()
        .env("https_proxy", proxy)
        .args(line)
        .output()
        .unwrap();
    let expected = "error: cannot connect to petstore.example, or to its proxy\n\
        hint: check the proxy in https_proxy, or correct the base URL\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    assert_eq!(output.status.code(), Some(6));
}

#[test]
fn ctrl_c_stops_a_call_in_flight() {
    // A server that accepts a request and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    let child = petstore()
        .args(["--base-url", &base_url, "pets", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut connection, _) = listener.accept().unwrap();
    connection.read_exact(&mut [0; 3]).unwrap();
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: interrupted\n"
    );
    assert_eq!(output.status.code(), Some(130));
}

#[test]
fn signals_stop_a_command_whose_reader_does_not_read() {
    // The output exceeds the buffer of a pipe that nobody reads.
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut command = petstore();
        command.args([
            "--mock",
            "pets",
            "list",
            "--all",
            "-o",
            "json",
            "--jq",
            "range(200000)",
        ]);
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

#[test]
fn a_signal_stops_an_import_in_order_and_says_how_to_continue() {
    // In real time, the quota could reset in the meantime.
    let noon = Clock::frozen(UNIX_EPOCH + Duration::from_secs(1_800_014_400));
    let builder = MockServer::builder()
        .key(KEY, Plan::enterprise(5, 100))
        .clock(noon);
    let (server, folder) = (
        builder.start_blocking().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let rows: String = (0..9).map(|row| format!("pet {row},{row}\n")).collect();
    std::fs::write(
        folder.path().join("pets.csv"),
        format!("name,categoryId\n{rows}"),
    )
    .unwrap();
    let mut import = petstore();
    import
        .args(["pets", "import", "pets.csv", "-o", "table"])
        .current_dir(folder.path());
    import
        .env("PETSTORE_BASE_URL", server.url())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = import.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    // It waits for the next minute.
    assert!(
        said.by_ref()
            .any(|line| line.unwrap().contains("minute quota used up; continues in"))
    );
    signal(&child, Signal::TERM);
    let stderr: String = said.map(|line| line.unwrap() + "\n").collect();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.contains("created          5      5\n"),
        "{stdout}{stderr}"
    );
    let end = "error: terminated after 5 of 9 rows\nhint: `petstore pets import pets.csv -o table` continues\n";
    assert!(stderr.ends_with(end), "{stderr}");
    assert_eq!(output.status.code(), Some(143));
}

#[test]
fn ctrl_c_stops_a_command_that_reads_its_input() {
    for command in [
        ["pets", "create", "--file", "-"],
        ["api", "/pets", "--input", "-"],
    ] {
        let mut child = petstore()
            .arg("--mock")
            .args(command)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The program reads all of this, and then waits for more.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&vec![b' '; 256 * 1024]).unwrap();
        signal(&child, Signal::INT);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{command:?}");
    }
}

#[test]
fn a_command_under_a_mock_with_tls_trusts_it_automatically() {
    let script = "\"$PETSTORE\" pets list --limit 1 -o id && echo \"$PETSTORE_BASE_URL\" && \
                  grep -c BEGIN \"$SSL_CERT_FILE\"";
    let folder = tempfile::tempdir().unwrap();
    let theirs = folder.path().join("theirs.pem");
    let other = MockServer::builder().tls().start_blocking().unwrap();
    std::fs::write(&theirs, other.ca_certificate().unwrap()).unwrap();
    let output = petstore()
        .args(["mock", "exec", "--tls", "--", "/bin/sh", "-c", script])
        .current_dir(folder.path())
        .env("PETSTORE", PETSTORE)
        .env("PATH", "/usr/bin:/bin")
        .env("SSL_CERT_FILE", &theirs)
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = stdout.lines().collect();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        lines.len() == 3 && lines[0] == "1" && lines[1].starts_with("https://"),
        "{stdout}{stderr}"
    );
    assert_eq!(lines[2], "2", "theirs and the mock's");
}

#[test]
fn settings_that_are_changed_at_the_same_time_are_all_kept() {
    let home = tempfile::tempdir().unwrap();
    let set = |profile: &str| {
        let mut command = Command::new(PETSTORE);
        command.args(["config", "set", "retries", "1", "--profile", profile]);
        command
            .env_clear()
            .env("HOME", home.path())
            .spawn()
            .unwrap()
    };
    let profiles: Vec<_> = (0..16).map(|number| format!("p{number}")).collect();
    let children: Vec<_> = profiles.iter().map(|profile| set(profile)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let config = std::fs::read_to_string(home.path().join(".config/petstore/config.toml")).unwrap();
    assert_eq!(config.matches("retries = 1").count(), 16, "{config}");
}
