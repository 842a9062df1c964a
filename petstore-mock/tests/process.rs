//! The `petstore-mock` binary as a process: what it prints, how it ends, and with which status. What
//! it serves is tested in process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Output, Stdio},
};

const BINARY: &str = env!("CARGO_BIN_EXE_petstore-mock");

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    // The help is as wide as the terminal, where there is one, and else as this says.
    command.args(args).stdin(Stdio::null()).env("COLUMNS", "100");
    command
}

/// Runs to the end.
fn run(args: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// A server that is ready; it is killed if the test fails before it was stopped.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    ready: String,
}

impl Running {
    fn start(args: &[&str]) -> Self {
        Self::spawn(&mut command(args))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        stdout.read_line(&mut ready).unwrap();
        Self { child, stdout, ready }
    }

    fn addr(&self) -> SocketAddr {
        let line = self.ready.strip_prefix("listening on http://").unwrap();
        line.strip_suffix("/v1\n").unwrap().parse().unwrap()
    }

    /// Sends a request and returns the answer, read to the end of the connection.
    fn get(&self, path: &str, key: &str) -> String {
        let mut stream = TcpStream::connect(self.addr()).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Authorization: Bearer {key}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends a signal and returns the status, and what else was printed on stdout and stderr.
    fn stop(mut self, signal: &str) -> (Option<i32>, String, String) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.unwrap().success());
        let (mut out, mut err) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).unwrap();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code(), out, err)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A path of this test's own, below the folder that cargo gives tests.
fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

#[test]
fn prints_one_line_when_it_is_ready_and_ends_with_0_on_a_signal() {
    for (args, signal) in [(&["--port", "0"][..], "INT"), (&["serve", "--port", "0"], "TERM")] {
        let server = Running::start(args);
        assert!(server.addr().ip().is_loopback());
        assert!(server.get("/v1/pets", "free-key").starts_with("HTTP/1.1 200 OK\r\n"));
        // Neither an idle connection nor one that has not said anything may hold it up.
        let idle = TcpStream::connect(server.addr()).unwrap();
        let (status, out, err) = server.stop(signal);
        assert_eq!((status, &*out), (Some(0), ""));
        assert!(
            err.starts_with("petstore-mock: compliance: ") && err.lines().count() == 1,
            "{err}"
        );
        drop(idle);
    }
}

#[cfg(unix)]
#[test]
fn a_second_signal_does_not_wait_for_requests_at_hand() {
    let server = Running::start(&["--port", "0", "--grace", "86400"]);
    let mut stream = TcpStream::connect(server.addr()).unwrap();
    let head = b"POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free-key\r\n\
        Content-Type: application/json\r\nContent-Length: 32\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(head).unwrap();
    stream.read_exact(&mut [0; 12]).unwrap();
    let pid = server.child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    // The first has arrived when the port is closed.
    while TcpStream::connect(server.addr()).is_ok() {}
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(server.stop("INT").0));
    let status = told.recv_timeout(std::time::Duration::from_secs(60));
    assert_eq!(status, Ok(Some(0)), "it waits");
}

#[cfg(unix)]
#[test]
fn goes_on_when_file_descriptors_are_free_again_and_can_be_stopped_while_they_are_not() {
    let script = "ulimit -n 40 && exec \"$0\" --port 0";
    let server = Running::spawn(Command::new("sh").args(["-c", script, BINARY]));
    let silent =
        || -> Vec<_> { (0..60).map(|_| TcpStream::connect(server.addr()).unwrap()).collect() };
    let first = silent();
    drop(first);
    assert!(server.get("/v1/pets", "free-key").starts_with("HTTP/1.1 200 OK\r\n"));
    let second = silent();
    assert_eq!(server.stop("TERM").0, Some(0));
    drop(second);
}

#[test]
fn writes_the_port_file_before_it_says_that_it_is_ready() {
    let file = scratch("port");
    let server = Running::start(&["--port", "0", "--port-file", file.to_str().unwrap()]);
    let port = fs::read_to_string(&file).unwrap();
    assert_eq!(port, format!("{}\n", server.addr().port()));
    let folder = file.parent().unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let beside = fs::read_dir(folder).unwrap().filter(|entry| {
        let entry = entry.as_ref().unwrap().file_name();
        entry.to_str().is_some_and(|entry| entry.starts_with(name))
    });
    assert_eq!(beside.count(), 1, "the temporary file is gone");
    server.stop("TERM");
    fs::remove_file(file).unwrap();
}

#[test]
fn serves_what_its_flags_say() {
    let seed = scratch("seed.json");
    fs::write(&seed, r#"[{"name": "Rex", "categoryId": 7, "id": 5}]"#).unwrap();
    let seed_arg = seed.to_str().unwrap();
    let server = Running::start(&[
        "--port=0",
        "--seed",
        seed_arg,
        "--key=a=b=enterprise:9/9",
        "--key=c=pro",
        "--rate-headers=day",
        "--window=sliding",
        "--paging=off",
        "--default-status=sold",
        "--ban-after=1",
        "--ban-within=2",
        "--ban-for=3",
    ]);
    let answer = server.get("/v1/pets", "a=b");
    assert!(answer.contains("x-ratelimit-limit: 9\r\n"), "{answer}");
    assert!(answer.ends_with(r#"[{"id":5,"name":"Rex","categoryId":7}]"#), "{answer}");
    assert!(server.get("/v1/pets", "c").contains("x-ratelimit-limit: 10000\r\n"));
    assert!(server.get("/v1/pets", "free-key").starts_with("HTTP/1.1 401"));
    let empty = Running::start(&["--port=0", "--seed=none"]);
    assert!(empty.get("/v1/pets", "free-key").ends_with("\r\n\r\n[]"));
    fs::remove_file(seed).unwrap();
}

#[test]
fn a_port_in_use_is_one_line_that_names_the_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap();
    let (status, out, err) = run(&["--port", &addr.port().to_string()]);
    assert_eq!((status, &*out), (1, ""));
    assert!(err.starts_with(&format!("petstore-mock: can't listen on {addr}: ")), "{err}");
    assert!(err.ends_with("; choose another port with --port (0 takes a free one)\n"), "{err}");
    assert_eq!(err.lines().count(), 1);
}

#[test]
fn a_bad_seed_is_named_by_file_line_and_column() {
    let seed = scratch("bad.json");
    let path = seed.to_str().unwrap();
    fs::write(&seed, "[\n  {\"name\": \"Rex\", \"categoryId\": \"7\"}\n]").unwrap();
    let (status, out, err) = run(&["--port", "0", "--seed", path]);
    assert_eq!((status, &*out), (1, ""));
    let expected = format!(
        "petstore-mock: {path}:2:35: pets[0].categoryId: invalid type: string \"7\", expected i64\n"
    );
    assert_eq!(err, expected);
    fs::remove_file(&seed).unwrap();
    let (status, _, err) = run(&["--port", "0", "--seed", path]);
    assert_eq!(status, 1);
    assert!(err.starts_with(&format!("petstore-mock: can't read the seed {path}: ")), "{err}");
}

#[test]
fn a_port_file_that_can_not_be_written_is_an_error_and_nothing_is_said_to_be_ready() {
    let (status, out, err) = run(&["--port", "0", "--port-file", "/nowhere/port"]);
    assert_eq!((status, &*out), (1, ""));
    assert!(err.starts_with("petstore-mock: can't write the port file /nowhere/port: "), "{err}");
}

#[test]
fn what_was_typed_wrong_ends_with_2() {
    for args in [
        &["--nonsense"][..],
        &["--port", "65536"],
        &["--port", "x"],
        &["--addr", "localhost"],
        &["--paging", "maybe"],
        &["--window", "open"],
        &["--default-status", "lost"],
        &["--ban-after", "-1"],
        &["--ban-after", "100001"],
        &["--ban-for", "999999999999"],
        &["serve", "extra"],
        &["--port", "0", "serve"],
    ] {
        let (status, out, err) = run(args);
        assert_eq!((status, &*out), (2, ""), "{args:?}");
        assert!(err.starts_with("error: "), "{args:?}: {err}");
    }
}

#[test]
fn a_key_that_was_typed_wrong_is_not_repeated() {
    for (key, says) in [
        ("s3cr3t", "has no `=`"),
        ("s3cr3t=gold", "no known plan"),
        ("a=s3cr3t", "no known plan"),
        ("s3cr3t s3cr3t=free", "holds a space"),
        ("=free", "is empty"),
    ] {
        let (status, out, err) = run(&["--port", "0", "--key", key]);
        assert_eq!((status, &*out), (2, ""), "{key}");
        assert!(err.contains(says) && err.lines().count() == 1, "{err}");
        assert!(!err.contains("s3cr3t"), "{err}");
    }
}

#[test]
fn a_key_that_was_given_twice_is_refused_and_not_repeated() {
    for plan in ["pro", "free"] {
        let twice = ["--port", "0", "--key", "s3cr3t=free", "--key", &format!("s3cr3t={plan}")];
        let (status, out, err) = run(&twice);
        assert_eq!((status, &*out), (2, ""));
        assert!(err.contains("give each key once") && err.lines().count() == 1, "{err}");
        assert!(!err.contains("s3cr3t"), "{err}");
    }
}

#[test]
fn the_version_goes_to_stdout() {
    let (status, out, err) = run(&["--version"]);
    assert_eq!((status, &*err), (0, ""));
    assert_eq!(out, concat!("petstore-mock ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// The help, which goes to stdout, in two parts: before the assumptions, and those.
fn help() -> (String, String) {
    let (status, out, err) = run(&["--help"]);
    assert_eq!((status, &*err), (0, ""));
    let lines: Vec<_> = out.lines().map(str::trim_end).collect();
    let assumptions = lines.iter().position(|line| *line == "Assumptions:").unwrap();
    let (first, second) = lines.split_at(assumptions);
    (first.join("\n"), second.join("\n"))
}

#[test]
fn the_help_names_its_commands_and_flags() {
    insta::assert_snapshot!(help().0, @r#"
    A mock server that implements the whole Pet Store service.

    Where the service's specification is silent, the mock takes the plainest reading. Each of these is
    marked below as an assumption, with the flag that chooses another.

    Without a command, `petstore-mock` serves.

    Usage: petstore-mock [OPTIONS]
           petstore-mock <COMMAND>

    Commands:
      serve        Serves until SIGINT or SIGTERM; so does the mock without a command
      exec         Serves while another command runs, and ends as that ends
      health       Asks a mock whether it serves: exit status 0 if it does
      openapi      Prints the OpenAPI document of the service
      completions  Prints a script by which a shell completes the commands and flags of petstore-mock
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Server:
          --addr <ADDR>
              Address to listen on

              [default: 127.0.0.1]

          --port <PORT>
              Port to listen on; 0 takes a free one (default: 4010, and for exec a free one)

          --port-file <FILE>
              File to write the port to, before the ready line is printed

          --admin-token-file <FILE>
              File with the token by which the mock can be administered from other machines.

              The variable PETSTORE_MOCK_ADMIN_TOKEN does the same; without either, it can't be.

    Service:
          --key <KEY=PLAN>
              Key and its plan: free, pro, business, enterprise, or enterprise:MINUTE/DAY (repeatable).

              The first one replaces the four that are there otherwise: free-key=free, pro-key=pro,
              business-key=business, enterprise-key=enterprise. Assumption: the specification does not
              show how a key maps to a plan, nor Enterprise's quotas (here 1000000 a minute and
              100000000 a day unless set).

          --seed <FILE|none>
              JSON file with the pets to start with; `none` for an empty store.

              An array of pets, or {"pets": [...], "orders": [...]}. A pet without an id gets one.
              Without this flag there are 25 pets, the same at each start.

          --data <FILE>
              File that keeps pets, orders and ids; made if it is not there (nothing is kept unless
              given).

              A pet that was answered 201 is there after the process was killed. The seed is for a new
              file only. One petstore-mock at a time can use a file.
    "#);
}

#[test]
fn the_help_marks_what_is_assumed() {
    insta::assert_snapshot!(help().1, @r"
    Assumptions:
          --default-status <STATUS>
              Status of a pet that is added without one (assumption: it has none)

              [possible values: available, pending, sold]

          --paging <SWITCH>
              Whether a page that more pets follow has a Link to the next one (assumption: it has)

              [default: on]
              [possible values: on, off]

          --window <KIND>
              Kind of window the quotas count in (assumption: fixed).

              Fixed windows are aligned to the clock's minute and to the UTC day; sliding ones are the
              last 60 and 86400 seconds.

              [default: fixed]
              [possible values: fixed, sliding]

          --cors <ORIGIN|*|off>
              Origin whose pages may use the service from a browser; `off` for none (assumption: all
              may)

              [default: *]

          --rate-headers <QUOTA>
              Quota the X-RateLimit headers describe (assumption: the one with the fewest requests left)

              [default: tightest]
              [possible values: tightest, minute, day]

          --ban-after <N>
              Requests sent during a Retry-After that are forgiven before a ban (assumption: 10)

              [default: 10]

          --ban-within <SECONDS>
              Seconds within which they count together (assumption: 60)

              [default: 60]

          --ban-for <SECONDS>
              Seconds a ban lasts; 0 switches bans off (assumption: 300)

              [default: 300]

    Limits:
          --max-connections <N>
              Connections served at once; those beyond are answered 503

              [default: 4096]

          --head-timeout <SECONDS>
              Seconds the head of a request may take, then it is answered 408; 0 for any time

              [default: 10]

          --body-timeout <SECONDS>
              Seconds the body of a request may take, then it is answered 408; 0 for any time

              [default: 30]

          --idle-timeout <SECONDS>
              Seconds a connection may be idle, then it is closed; 0 for any time

              [default: 120]

          --write-timeout <SECONDS>
              Seconds a client may take nothing of its answer, then it is cut; 0 for any time

              [default: 30]

          --grace <SECONDS>
              Seconds requests at hand may take when the server stops; a second signal ends that wait

              [default: 5]

    Report:
          --report <FILE>
              File to write the compliance report on the client to, when the server stops.

              Its name says in which format: .txt, .json, .xml (JUnit), .md or .html.

          --report-format <FORMAT>
              Format of that file, whatever its name

              [possible values: text, json, junit, markdown, html]

          --fail-on <SEVERITY>
              End with 3 if the report has violations; with `warnings`, also if it has warnings

              [possible values: violations, warnings]
    ");
}
