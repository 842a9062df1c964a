//! Runs the binary until its end, or until a test stops it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, ChildStdout, Command, Output, Stdio},
    time::Duration,
};

use tempfile::TempPath;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_petstore-mock");

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    // Sets the width of the help when there is no terminal.
    command
        .args(args)
        .stdin(Stdio::null())
        .env("COLUMNS", "100");
    // With these variables, the tests would write annotations into the workflow that runs them.
    for name in [
        "PETSTORE_MOCK_ADMIN_TOKEN",
        "GITHUB_ACTIONS",
        "GITHUB_STEP_SUMMARY",
    ] {
        command.env_remove(name);
    }
    command
}

/// Runs the program, and returns its status, stdout and stderr.
pub(crate) fn run(args: &[&str]) -> (i32, String, String) {
    ended(&mut command(args))
}

/// Runs a command, and returns its status, stdout and stderr.
pub(crate) fn ended(command: &mut Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// Returns the command that runs a script of bash under `exec`. There, `$MOCK` is the program, and
/// `ask PATH [KEY]` sends a GET with the given key or with that of `exec`, and prints the response.
#[cfg(unix)]
pub(crate) fn under_exec(flags: &[&str], script: &str) -> Command {
    const ASK: &str = r#"
ask() {
    exec 3<>/dev/tcp/127.0.0.1/${PETSTORE_MOCK_URL##*:}
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\nConnection: close\r\n' "$1" >&3
    printf 'Authorization: Bearer %s\r\n\r\n' "${2-$PETSTORE_API_KEY}" >&3
    cat <&3
}
"#;
    let script = format!("{ASK}{script}");
    let mut command = command(&[&["exec"], flags, &["--", "bash", "-c", &script]].concat());
    command.env("MOCK", BINARY);
    command
}

/// Runs a script under `exec`, and returns its status, stdout and stderr.
#[cfg(unix)]
pub(crate) fn exec(flags: &[&str], script: &str) -> (i32, String, String) {
    ended(&mut under_exec(flags, script))
}

/// Returns what a script under `exec` prints. Fails unless it succeeds.
#[cfg(unix)]
#[track_caller]
pub(crate) fn printed(flags: &[&str], script: &str) -> String {
    let (status, out, err) = exec(flags, script);
    assert_eq!(status, 0, "{out}{err}");
    out
}

/// A running server. It is killed if the test fails.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: BufReader<ChildStdout>,
    /// The line that said that the server is ready.
    pub(crate) ready: String,
}

impl Running {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::spawn(&mut command(args))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        stdout.read_line(&mut ready).unwrap();
        Self {
            child,
            stdout,
            ready,
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        let line = self.ready.strip_prefix("listening on http://").unwrap();
        line.strip_suffix("/v1\n").unwrap().parse().unwrap()
    }

    /// Sends a GET and returns the answer.
    pub(crate) fn get(&self, path: &str, key: &str) -> String {
        ask(self.addr(), &format!("GET {path}"), key, "").unwrap()
    }

    /// Sends a signal and returns the status, and what else was printed on stdout and stderr.
    pub(crate) fn stop(mut self, signal: &str) -> (Option<i32>, String, String) {
        send(signal, &self.child);
        let (mut out, mut err) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).unwrap();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code(), out, err)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // If the test passed, the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal.
pub(crate) fn send(signal: &str, child: &Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", signal, &pid]).status();
    assert!(sent.unwrap().success());
}

/// Sends a request, and returns everything up to the end of the connection; `None` if that fails.
pub(crate) fn ask(addr: SocketAddr, line: &str, key: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(addr).ok()?;
    // Only a program that hangs takes longer.
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .ok()?;
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Returns a unique path in cargo's folder for tests. Nothing exists there. It is removed when
/// dropped.
pub(crate) fn scratch(suffix: &str) -> TempPath {
    let mut path = tempfile::Builder::new();
    let path = path
        .suffix(suffix)
        .make_in(env!("CARGO_TARGET_TMPDIR"), |_| Ok(()));
    path.unwrap().into_temp_path()
}
