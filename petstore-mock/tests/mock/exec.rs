//! Tests of `exec`, of what its flags set, and of `health` and `openapi`, as processes.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    process::{Command, Stdio},
    thread,
};

use super::process::{BINARY, command, ended, exec, printed, run, scratch, send, under_exec};

/// The last lines on stderr if there were no requests.
const NOTHING: &str = "petstore-mock: compliance: nothing found in 0 requests\n\
    petstore-mock: no request with a valid key reached the service: the command must send its \
    requests to $PETSTORE_BASE_URL, with the key in $PETSTORE_API_KEY; look for a fixed address\n";

#[test]
fn exec_serves_while_the_command_runs_and_tells_it_where() {
    let answer = printed(&[], "ask /v1/pets?limit=1; echo; echo $PETSTORE_BASE_URL");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let url = answer.lines().last().unwrap();
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/v1"));
    assert_eq!(run(&["health", url]).0, 1, "the mock has stopped");
}

#[test]
fn exec_gives_the_command_a_key_of_the_plan() {
    for (flags, key, part) in [
        (&[][..], "", "x-ratelimit-limit: 60\r\n"),
        (
            &["--plan", "enterprise:7/9"],
            "",
            "x-ratelimit-limit: 7\r\n",
        ),
        (&[], "pro-key", "x-ratelimit-limit: 300\r\n"),
        (&["--key", "mine=free"], "pro-key", "HTTP/1.1 401 "),
    ] {
        let answer = printed(flags, &format!("ask /v1/pets {key}"));
        assert!(answer.contains(part), "{flags:?} {key}: {answer}");
    }
}

#[test]
fn exec_keeps_its_streams_for_the_command_and_shows_no_key() {
    let (status, out, err) = exec(&[], "echo result; echo trouble >&2; cat");
    assert_eq!((status, &*out), (0, "result\n"));
    assert_eq!(err, format!("trouble\n{NOTHING}"));
    let mut child = command(&["exec", "--", "cat"]);
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"typed").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"typed");
    // The key is neither in the arguments of `exec` nor in those of the command.
    let script = "tr '\\0' ' ' </proc/$PPID/cmdline; echo; echo $PETSTORE_API_KEY";
    let out = printed(&[], script);
    let (args, key) = out.trim_end().rsplit_once('\n').unwrap();
    assert!(key.starts_with("exec-") && !args.contains(key), "{args}");
}

#[test]
fn exec_ends_as_the_command_ends() {
    for (script, status) in [("exit 0", 0), ("exit 101", 101), ("kill -TERM $$", 143)] {
        assert_eq!(exec(&[], script).0, status, "{script}");
    }
    let (status, out, err) = run(&["exec", "--", "/nowhere/program", "secret"]);
    assert_eq!((status, &*out), (127, ""));
    assert!(err.starts_with("petstore-mock: cannot run /nowhere/program: "));
    assert!(!err.contains("secret"), "{err}");
    assert_eq!(run(&["exec", "--", "/"]).0, 126);
}

#[test]
fn exec_with_invalid_arguments_runs_nothing() {
    for (flags, expected) in [(["--plan", "gold"], 2), (["--seed", "/nowhere"], 1)] {
        let (status, out, err) = exec(&flags, "echo ran");
        assert_eq!((status, &*out), (expected, ""), "{flags:?}: {err}");
    }
    assert_eq!(run(&["exec", "true"]).0, 2, "the command stands after --");
}

#[test]
fn exec_passes_signals_on_and_waits_for_the_command() {
    for signal in ["TERM", "INT"] {
        // Bash runs traps during `read`, but not while it waits for a program. Each `read` is
        // short, because a signal just before it is handled only when it ends.
        let wait = "while :; do read -rt 0.1 <> <(:); done";
        let script = format!("trap 'echo caught; exit 7' {signal}; echo ready; {wait}");
        let mut child = under_exec(&[], &script)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        out.read_line(&mut said).unwrap();
        send(signal, &child);
        out.read_to_string(&mut said).unwrap();
        assert_eq!(said, "ready\ncaught\n", "{signal}");
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }
}

#[test]
fn ctrl_c_at_a_terminal_reaches_the_command_of_exec_once() {
    // `wait` lets the trap run at once, so that two signals are not merged.
    let script = r#"trap "n=x\$n" INT; sleep 1 & echo it runs; wait; wait; echo "times $n.""#;
    // Standard input is not the terminal.
    let line = format!("trap : INT; \"$0\" exec -- sh -c '{script}' </dev/null; echo \"exit $?\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line, BINARY]);
    // Only a program that hangs takes longer.
    let mut terminal = rexpect::session::spawn_command(shell, Some(120_000)).unwrap();
    terminal.exp_string("it runs").unwrap();
    terminal.send_control('c').unwrap();
    let shown = terminal.exp_eof().unwrap();
    for part in ["times x.", "compliance: ", "exit 0"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn health_ends_with_0_where_a_mock_serves_and_with_1_elsewhere() {
    let script = "$MOCK health $PETSTORE_BASE_URL && $MOCK health $PETSTORE_MOCK_URL &&
        PETSTORE_MOCK_PORT=${PETSTORE_MOCK_URL##*:} && unset PETSTORE_MOCK_URL &&
        export PETSTORE_MOCK_PORT && $MOCK health";
    assert_eq!(printed(&[], script), "ok\nok\nok\n");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", other.local_addr().unwrap());
    let answering = thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
        stream.write_all(answer).unwrap();
    });
    let (status, _, err) = run(&["health", &url]);
    assert!(status == 1 && err.contains("is not a mock that is ready"));
    answering.join().unwrap();
    for flags in [&["health", &url][..], &["health", "--wait", "1", &url]] {
        let (status, _, err) = run(flags);
        let start = "petstore-mock: no mock answers at 127.0.0.1:";
        assert!(status == 1 && err.starts_with(start), "{err}");
    }
}

#[test]
fn health_waits_until_the_mock_is_ready() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let script = r#"
        "$0" health --wait 60 "http://127.0.0.1:$1" && echo ready &
        waiting=$!
        "$0" --port "$1" >/dev/null 2>&1 &
        mock=$!
        wait $waiting
        kill $mock
        wait $mock
    "#;
    let mut shell = Command::new("bash");
    let ended = ended(shell.args(["-c", script, BINARY, &port]));
    assert_eq!(ended.1, "ok\nready\n");
}

#[test]
fn health_over_tls_trusts_the_authority_it_is_given() {
    let script = "$MOCK health $PETSTORE_BASE_URL && $MOCK health --tls-ca-file $PETSTORE_CA_FILE \
                  $PETSTORE_MOCK_URL && env -u SSL_CERT_FILE $MOCK health $PETSTORE_MOCK_URL";
    let (status, out, err) = exec(&["--tls"], script);
    assert_eq!((status, &*out), (2, "ok\nok\n"), "{err}");
    assert!(err.contains("https needs --tls-ca-file"), "{err}");
    let script = "$MOCK health --tls-ca-file /dev/null $PETSTORE_MOCK_URL";
    let (status, _, err) = exec(&["--tls"], script);
    let says = "/dev/null contains no PEM certificate";
    assert!(status == 1 && err.contains(says), "{err}");
}

#[test]
fn exec_over_tls_adds_the_authority_to_those_that_are_trusted_already() {
    // The first certificate is the authority. Those of the system follow.
    let theirs = printed(&["--tls"], "sed '/END/q' \"$SSL_CERT_FILE\"");
    let file = scratch("theirs.pem");
    fs::write(&file, &theirs).unwrap();
    let mut second = under_exec(&["--tls"], "grep -c BEGIN \"$SSL_CERT_FILE\"");
    let (status, out, err) = ended(second.env("SSL_CERT_FILE", &*file));
    let all = theirs.matches("BEGIN").count() + 1;
    assert_eq!((status, out), (0, format!("{all}\n")), "{err}");
    let mut without_folder = command(&["exec", "--tls", "--", "true"]);
    let (status, _, err) = ended(without_folder.env("TMPDIR", "/nowhere"));
    let end = "check SSL_CERT_FILE and TMPDIR\n";
    assert!(status == 1 && err.ends_with(end), "{err}");
}

#[test]
fn the_clock_starts_at_a_date_and_may_stand() {
    let answer = printed(&["--start-at", "2030-12-05"], "ask /v1/pets/1");
    assert!(answer.starts_with("HTTP/1.1 410 "), "{answer}");
    let frozen = ["--frozen", "--start-at", "2030-12-04T23:59:59Z"];
    let clock = printed(&frozen, "ask /_mock/clock");
    for part in [
        r#""date":"Wed, 04 Dec 2030 23:59:59 GMT""#,
        r#""frozen":true"#,
    ] {
        assert!(clock.contains(part), "{clock}");
    }
    let (status, _, err) = run(&["--start-at", "soon"]);
    assert!(status == 2 && err.contains("2030-12-05"), "{err}");
}

#[test]
fn faults_and_routes_come_from_a_file_or_an_argument() {
    let file = scratch("given.json");
    let path = file.to_str().unwrap();
    let busy = r#"[{"operation": "listPets", "effect": {"status": 503}}]"#;
    let route = r#"[{"method": "GET", "path": "/store/{id}", "status": 203, "json": [7]}]"#;
    for (flag, text, target, status) in [
        ("--faults", busy, "/v1/pets", "503"),
        ("--routes", route, "/v1/store/5", "203"),
    ] {
        fs::write(&file, text).unwrap();
        let answer = printed(&[flag, path], &format!("ask {target}"));
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    let given = printed(&["--faults", busy], "ask /v1/pets");
    assert!(given.starts_with("HTTP/1.1 503 "), "{given}");

    let no_key = r#"[{"key": "s3cr3t", "effect": {"hang": {}}}]"#;
    let no_status = "[{\"effect\": {\"status\": 99}}]";
    let no_effect = "[{\"sequence\": []}]";
    let no_route = r#"[{"method": "GET", "path": "/pets/{id}"}]"#;
    for (flag, text, says) in [
        ("--faults", no_key, "a key that this server does not have"),
        ("--faults", no_status, "the fault `status`: the status of a"),
        ("--faults", no_effect, "the fault `sequence`: the"),
        ("--routes", no_route, "an operation of the contract"),
    ] {
        fs::write(&file, text).unwrap();
        let (status, _, err) = run(&["--port", "0", flag, path]);
        assert!(status == 1 && err.contains(says), "{err}");
        assert!(!err.contains("s3cr3t"), "{err}");
    }
    let (_, _, err) = run(&["--port", "0", "--routes", path]);
    assert!(
        err.contains(path),
        "the file with the mistake is named: {err}"
    );
}

#[test]
fn a_fault_that_hits_nothing_is_refused_or_told() {
    let named = r#"[{"name": "x", "when": "named", "effect": {"status": 503}}]"#;
    let (status, _, err) = run(&["--port", "0", "--faults", named]);
    assert!(status == 1 && err.contains("--fault-header"), "{err}");
    let two = r#"[{"effect": {"status": 503, "delay": {"seconds": 1}}}]"#;
    let (status, _, err) = run(&["--port", "0", "--faults", two]);
    assert!(status == 2 && err.contains(r#"{"all": ["#), "{err}");
    let faults =
        r#"[{"operation": "getPet", "effect": {"status": 503}}, {"effect": {"status": 500}}]"#;
    let (status, _, err) = exec(&["--faults", faults], "ask /v1/pets");
    let told = "petstore-mock: the fault `status on getPet` has hit no request since it was set\n";
    assert!(status == 0 && err.starts_with(told), "{err}");
    assert_eq!(err.matches("has hit no request").count(), 1, "{err}");
}

#[test]
fn assumptions_are_set_by_flags_and_by_a_variable() {
    let flags = ["--assume", "paging=off", "--assume", "cors=off"];
    let answer = printed(&flags, "ask '/v1/pets?limit=2'");
    assert!(!answer.contains("\r\nlink:"), "{answer}");
    let script = "for n in 1 2 3; do ask /v1/pets; done; ask /v1/store/orders b";
    let mut banning = under_exec(&["--plan", "enterprise:1/9"], script);
    // Any white space separates several.
    banning
        .env("PETSTORE_MOCK_ASSUME", "ban-after=0  ban-for=7 ")
        .env("PETSTORE_MOCK_KEY", "a=free\nb=pro\n")
        .env("PETSTORE_MOCK_RULE", "key=notice  deprecated=off ");
    let (_, out, err) = ended(&mut banning);
    for part in ["key_banned", "retry-after: 7", "x-ratelimit-limit: 300"] {
        assert!(out.contains(part), "{part}: {out}{err}");
    }
    let severities = "severities set: key notice, deprecated off";
    assert!(err.contains(severities), "{err}");
}

#[test]
fn prints_the_documents_that_it_serves() {
    let yaml = fs::read_to_string("openapi.yaml").unwrap();
    assert_eq!(run(&["openapi"]), (0, yaml, String::new()));
    let admin = fs::read_to_string("admin.yaml").unwrap();
    assert_eq!(run(&["openapi", "--admin"]), (0, admin, String::new()));
}

#[test]
fn the_admin_token_is_never_shown() {
    let file = scratch("token");
    let path = file.to_str().unwrap();
    let mut by_variable = command(&["--port", "0"]);
    by_variable.env("PETSTORE_MOCK_ADMIN_TOKEN", "s3cr3t \u{e9}");
    fs::write(&file, "s3cr3t token\n").unwrap();
    for mut unsendable in [
        command(&["--port", "0", "--admin-token-file", path]),
        by_variable,
    ] {
        let (status, _, err) = ended(&mut unsendable);
        assert!(status == 2 && err.contains("admin token"), "{err}");
        assert!(!err.contains("s3cr3t"), "{err}");
    }
    fs::write(&file, "t0ken\n").unwrap();
    assert_eq!(exec(&["--admin-token-file", path], "true").0, 0);
}

#[test]
fn misspelt_variables_are_a_warning_and_kubernetes_is_ignored() {
    let mut odd = command(&["exec", "--", "true"]);
    odd.env("PETSTORE_MOCK_PROT", "1")
        .env("PETSTORE_MOCK_PORT", "tcp://10.0.0.1:4010")
        .env("PETSTORE_MOCK_SERVICE_HOST", "10.0.0.1");
    let (status, _, err) = ended(&mut odd);
    let warning = "petstore-mock: the variable PETSTORE_MOCK_PROT sets nothing: ";
    assert!(status == 0 && err.starts_with(warning), "{err}");
    assert!(err.ends_with(NOTHING) && err.lines().count() == 3, "{err}");
}
