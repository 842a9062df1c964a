//! Tests of the commands of `petstore-mock` other than `serve`, as processes.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    process::{Command, Stdio},
    thread,
};

use super::process::{BINARY, command, ended, run, scratch};

/// Runs a script under `exec`; `$MOCK` is the mock's own program.
fn exec(flags: &[&str], script: &str) -> (i32, String, String) {
    let args = [&["exec"], flags, &["--", "sh", "-c", script]].concat();
    ended(command(&args).env("MOCK", BINARY))
}

/// The last line on stderr if there were no requests.
const NOTHING: &str = "petstore-mock: compliance: nothing found in 0 requests\n";

/// A shell function that sends a GET to the mock that `exec` started, and prints the response.
const ASK: &str = r#"
ask() {
    authority=${PETSTORE_MOCK_URL#http://}
    exec 3<>/dev/tcp/${authority%:*}/${authority##*:}
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n' \
        "$1" "$PETSTORE_API_KEY" >&3
    cat <&3
}
"#;

/// Runs a script of bash, which can open sockets, under `exec`.
fn bash(flags: &[&str], script: &str) -> (i32, String, String) {
    let script = format!("{ASK}{script}");
    ended(&mut command(
        &[&["exec"], flags, &["--", "bash", "-c", &script]].concat(),
    ))
}

/// Returns the output of a script that must exit with 0.
fn exec_asking(flags: &[&str], script: &str) -> String {
    let (status, out, err) = bash(flags, script);
    assert_eq!(status, 0, "{out}{err}");
    out
}

#[test]
fn exec_serves_while_the_command_runs_and_tells_it_where() {
    let answer = exec_asking(&[], "ask /v1/pets?limit=1; echo; echo $PETSTORE_BASE_URL");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("x-ratelimit-limit: 60\r\n"), "{answer}");
    let url = answer.lines().last().unwrap();
    assert!(
        url.starts_with("http://127.0.0.1:") && url.ends_with("/v1"),
        "{url}"
    );
    let (status, ..) = run(&["health", url]);
    assert_eq!(status, 1, "the mock has stopped");
}

#[test]
fn exec_gives_the_command_a_key_of_the_plan() {
    let answer = exec_asking(&["--plan", "enterprise:7/9"], "ask /v1/pets");
    assert!(answer.contains("x-ratelimit-limit: 7\r\n"), "{answer}");
    let answer = exec_asking(&[], "PETSTORE_API_KEY=pro-key; ask /v1/pets");
    assert!(answer.contains("x-ratelimit-limit: 300\r\n"), "{answer}");
    let answer = exec_asking(
        &["--key", "mine=free"],
        "PETSTORE_API_KEY=pro-key; ask /v1/pets",
    );
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[test]
fn exec_keeps_its_streams_for_the_command_and_shows_no_key() {
    let (status, out, err) = exec(&[], "echo result; echo trouble >&2; cat");
    assert_eq!((status, &*out), (0, "result\n"));
    assert_eq!(err, format!("trouble\n{NOTHING}"));
    let mut child = command(&["exec", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"typed").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"typed");
    // The key is neither in the arguments of `exec` nor in those of the command.
    let (_, out, _) = exec(
        &[],
        "tr '\\0' ' ' </proc/$PPID/cmdline; echo; echo $PETSTORE_API_KEY",
    );
    let mut lines = out.lines();
    let (args, key) = (lines.next().unwrap(), lines.next().unwrap());
    assert!(key.starts_with("exec-") && !args.contains(key), "{args}");
}

/// A client that has the key in a URL, which is a violation.
const RUDE: &str = "ask \"/v1/pets?key=$PETSTORE_API_KEY\" >/dev/null";

/// A client that breaks no rule.
const POLITE: &str = "ask /v1/pets >/dev/null";

/// Returns the exit status of `exec` with a script, and its standard error.
fn verdict(flags: &[&str], script: &str) -> (i32, String) {
    let (status, _, err) = bash(flags, script);
    (status, err)
}

#[test]
fn exec_exits_with_3_if_findings_fail_the_run() {
    let (status, said) = verdict(&[], RUDE);
    assert!(status == 0 && said.contains("violation [key]"), "{said}");
    assert_eq!(verdict(&["--fail-on", "violations"], RUDE).0, 3);
    assert_eq!(verdict(&["--fail-on", "warnings"], RUDE).0, 3);
    assert_eq!(verdict(&["--fail-on", "warning"], RUDE).0, 3);
    assert_eq!(verdict(&["--fail-on", "violation"], RUDE).0, 3);
    let failed = format!("{RUDE}; exit 9");
    assert_eq!(
        verdict(&["--fail-on", "violations"], &failed).0,
        9,
        "the command's own comes first"
    );
    let (status, said) = verdict(&["--fail-on", "warnings"], POLITE);
    assert!(status == 0 && said.lines().count() == 1, "{said}");
}

#[test]
fn a_rule_has_the_severity_that_is_asked_for() {
    let fail_on_warnings = |rule| verdict(&["--fail-on", "warnings", "--rule", rule], RUDE);
    assert_eq!(fail_on_warnings("key=warning").0, 3);
    assert_eq!(fail_on_warnings("key=notice").0, 0);
    assert_eq!(fail_on_warnings("key=off").0, 0);
    for (rule, message) in [
        ("no-rule=off", "unknown rule; rules: told-to-wait, back-off"),
        (
            "back-off=harmless",
            "unknown severity; severities: notice, warning, violation, or off",
        ),
        ("back-off", "write NAME=SEVERITY"),
    ] {
        let (status, said) = fail_on_warnings(rule);
        assert!(status == 2 && said.contains(message), "{said}");
    }
}

#[test]
fn the_report_is_written_in_the_format_that_is_asked_for() {
    for (name, begins) in [
        ("report.json", "{"),
        ("report.xml", "<?xml"),
        ("report.txt", "violation [key]"),
    ] {
        let file = scratch(name);
        let path = file.to_str().unwrap();
        assert_eq!(verdict(&["--report", path], RUDE).0, 0);
        let report = fs::read_to_string(&file).unwrap();
        assert!(
            report.to_lowercase().starts_with(begins),
            "{name}: {report}"
        );
        assert!(
            report.contains("is a key of this server") && !report.contains("exec-"),
            "{name}: {report}"
        );
    }
    let (status, said) = verdict(&["--report", "report.pdf"], "echo ran >&2");
    assert!(
        status == 2 && said.contains(".txt, .json or .xml") && !said.contains("ran"),
        "{said}"
    );
    for (script, expected) in [("exit 0", 1), ("exit 9", 9)] {
        let (status, said) = verdict(&["--report", "/dev/null/report.txt"], script);
        assert!(
            status == expected && said.contains("cannot write the report"),
            "{status} {said}"
        );
    }
    let folder = scratch("");
    let path = folder.join("reports/report.txt");
    assert_eq!(
        verdict(&["--report", path.to_str().unwrap()], "exit 0"),
        (0, NOTHING.to_owned())
    );
    assert!(
        fs::read_to_string(&path)
            .unwrap()
            .starts_with("compliance: ")
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn exec_ends_as_the_command_ends() {
    for (script, status) in [("exit 0", 0), ("exit 101", 101), ("kill -TERM $$", 143)] {
        assert_eq!(
            exec(&[], script),
            (status, String::new(), NOTHING.to_owned()),
            "{script}"
        );
    }
    let (status, out, err) = run(&["exec", "--", "/nowhere/program", "secret"]);
    assert_eq!((status, &*out), (127, ""));
    assert!(
        err.starts_with("petstore-mock: cannot run /nowhere/program: "),
        "{err}"
    );
    assert!(!err.contains("secret"), "{err}");
    let (status, _, err) = run(&["exec", "--", "/"]);
    assert_eq!(status, 126);
    assert_eq!(err.lines().count(), 1);
}

#[test]
fn exec_with_invalid_arguments_runs_nothing() {
    let mark = scratch("ran");
    let touch = format!("touch {}", mark.display());
    for flags in [
        &["--plan", "gold"][..],
        &["--key", "nothing"],
        &["--seed", "/nowhere"],
    ] {
        let (status, _, err) = exec(flags, &touch);
        assert!(status == 2 || status == 1, "{flags:?}");
        assert!(!err.is_empty());
    }
    assert_eq!(run(&["exec"]).0, 2);
    assert_eq!(run(&["exec", "true"]).0, 2, "the command stands after --");
    assert!(!mark.exists());
}

#[test]
fn exec_passes_signals_on_and_waits_for_the_command() {
    for (signal, number) in [("TERM", 15), ("INT", 2)] {
        // Bash runs traps during `read`, but not while it waits for a program. Each `read` is
        // short, because a signal just before it is handled only when it ends.
        let wait = "while :; do read -rt 0.1 <> <(:); done";
        let script = format!("trap 'echo caught; exit 7' {signal}; echo ready; {wait}");
        let mut child = command(&["exec", "--", "bash", "-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let pid = child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        out.read_to_string(&mut line).unwrap();
        assert_eq!(line, "ready\ncaught\n", "{number}");
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }
}

#[test]
#[cfg(unix)]
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
fn health_ends_with_0_where_a_mock_serves() {
    let (status, out, err) = exec(
        &[],
        "$MOCK health $PETSTORE_BASE_URL && $MOCK health $PETSTORE_MOCK_URL",
    );
    assert_eq!((status, &*out, &*err), (0, "ok\nok\n", NOTHING));
}

#[test]
fn health_exits_with_1_without_a_ready_mock() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", other.local_addr().unwrap());
    let answering = thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let mut request = [0; 1024];
        let _ = stream.read(&mut request).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            .unwrap();
    });
    let (status, out, err) = run(&["health", &url]);
    assert_eq!((status, &*out), (1, ""));
    assert!(err.contains("is not a mock that is ready"), "{err}");
    answering.join().unwrap();
    let (status, _, err) = run(&["health", &url]);
    assert_eq!(status, 1);
    assert!(
        err.starts_with("petstore-mock: no mock answers at 127.0.0.1:"),
        "{err}"
    );
    assert_eq!(run(&["health", "ftp://localhost"]).0, 2);
}

#[test]
fn health_over_tls_trusts_the_authority_it_is_given() {
    let script = "$MOCK health $PETSTORE_BASE_URL && $MOCK health --tls-ca-file $PETSTORE_CA_FILE \
                  $PETSTORE_MOCK_URL && env -u SSL_CERT_FILE $MOCK health $PETSTORE_MOCK_URL";
    let (status, out, err) = exec(&["--tls"], script);
    assert_eq!((status, &*out), (1, "ok\nok\n"), "{err}");
    assert!(err.contains("https needs --tls-ca-file"), "{err}");
}

#[test]
fn exec_over_tls_keeps_wgets_settings_and_adds_the_authority() {
    let own = scratch("wgetrc");
    fs::write(&own, "timeout = 9").unwrap();
    let mut with_settings = command(&[
        "exec",
        "--tls",
        "--",
        "sh",
        "-c",
        "cat \"$WGETRC\"; echo \"$SSL_CERT_FILE\"",
    ]);
    let (status, out, err) = ended(with_settings.env("WGETRC", &*own));
    assert_eq!(status, 0, "{err}");
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[0], "timeout = 9");
    assert_eq!(lines[1], format!("ca_certificate = {}", lines[2]));
    if Command::new("wget").arg("--version").output().is_ok() {
        let script = "wget -qO- --header \"Authorization: Bearer $PETSTORE_API_KEY\" \"$PETSTORE_BASE_URL/pets?limit=1\"";
        let (status, out, err) = exec(&["--tls"], script);
        assert!(status == 0 && out.starts_with("[{"), "{out}{err}");
    }
}

#[test]
fn exec_over_tls_adds_the_authority_to_those_that_are_trusted_already() {
    let (_, theirs, _) = exec(&["--tls"], "cat \"$SSL_CERT_FILE\"");
    let file = scratch("theirs.pem");
    fs::write(&file, theirs).unwrap();
    let script = "grep -c BEGIN \"$SSL_CERT_FILE\"";
    let mut second = command(&["exec", "--tls", "--", "sh", "-c", script]);
    let (status, out, err) = ended(second.env("SSL_CERT_FILE", &*file));
    assert_eq!((status, &*out), (0, "2\n"), "{err}");
}

#[test]
fn exec_over_tls_names_the_folder_that_is_missing() {
    let mut without_folder = command(&["exec", "--tls", "--", "true"]);
    let (status, _, err) = ended(without_folder.env("TMPDIR", "/nowhere"));
    assert_eq!(status, 1, "{err}");
    assert!(
        err.contains("cannot prepare the certificates for the command: ")
            && err.contains("/nowhere")
            && err.contains("TMPDIR"),
        "{err}"
    );
}

#[test]
fn the_clock_starts_at_a_date_and_faults_come_from_a_file() {
    let answer = exec_asking(&["--start-at", "2030-12-05"], "ask /v1/pets/1");
    assert!(answer.starts_with("HTTP/1.1 410 "), "{answer}");
    assert!(
        answer.contains("\r\ndate: Thu, 05 Dec 2030 00:00:0"),
        "{answer}"
    );
    let (status, _, err) = run(&["--start-at", "soon"]);
    assert!(status == 2 && err.contains("2030-12-05"), "{err}");
    let file = scratch("faults.json");
    let path = file.to_str().unwrap();
    fs::write(
        &file,
        r#"[{"operation": "listPets", "effect": {"status": 503}}]"#,
    )
    .unwrap();
    let answer = exec_asking(&["--faults", path], "ask /v1/pets");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let given = r#"[{"method": "GET", "path": "/pets", "effect": {"status": 503}}]"#;
    let answer = exec_asking(&["--faults", given], "ask /v1/pets");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let (status, _, err) = run(&["--faults", r#"[{"key": "s3cr3t", "effect": {"hang": {}}}]"#]);
    assert!(
        status == 1 && err.contains("a key that this server does not have"),
        "{err}"
    );
    fs::write(&file, "[{\"effect\": {\"status\": 99}}]").unwrap();
    let (status, _, err) = run(&["--port", "0", "--faults", path]);
    assert_eq!(status, 1);
    for part in [path, "[0]", "from 200 to 599", "line 1"] {
        assert!(err.contains(part), "{part}: {err}");
    }
}

#[test]
fn prints_the_documents_that_it_serves() {
    let yaml = fs::read_to_string("openapi.yaml").unwrap();
    assert_eq!(run(&["openapi"]), (0, yaml, String::new()));
    let admin = fs::read_to_string("admin.yaml").unwrap();
    assert_eq!(
        run(&["openapi", "--admin", "--format", "yaml"]),
        (0, admin, String::new())
    );
    let (status, json, _) = run(&["openapi", "--format", "json"]);
    assert_eq!(status, 0);
    assert!(json.starts_with("{\"openapi\":\"3.1.0\",") && json.ends_with("}\n"));
}

#[test]
fn the_admin_token_is_never_shown() {
    let file = scratch("token");
    fs::write(&file, "s3cr3t token\n").unwrap();
    let path = file.to_str().unwrap();
    let (status, out, err) = run(&["--port", "0", "--admin-token-file", path]);
    assert_eq!(
        (status, &*out),
        (2, ""),
        "a token with a space cannot be sent"
    );
    assert!(
        err.contains("admin token") && !err.contains("s3cr3t"),
        "{err}"
    );
    let output = command(&["--port", "0"])
        .env("PETSTORE_MOCK_ADMIN_TOKEN", "s3cr3t \u{e9}")
        .output();
    let err = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(
        err.contains("admin token") && !err.contains("s3cr3t"),
        "{err}"
    );
    fs::write(&file, "t0ken\n").unwrap();
    let (status, ..) = exec(&["--admin-token-file", path], "true");
    assert_eq!(status, 0);
    let (status, _, err) = exec(&["--admin-token-file", "/nowhere/token"], "true");
    assert_eq!(status, 1);
    assert!(
        err.contains("cannot read the admin token /nowhere/token"),
        "{err}"
    );
}

#[test]
fn a_frozen_clock_starts_at_its_date_and_stands() {
    let flags = ["--frozen", "--start-at", "2030-12-04T23:59:59Z"];
    let answer = exec_asking(&flags, "sleep 1.1; ask /v1/pets/1");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(
        answer.contains("\r\ndate: Wed, 04 Dec 2030 23:59:59 GMT"),
        "{answer}"
    );
}

#[test]
fn assumptions_are_set_by_flags_and_by_a_variable() {
    let flags = ["--assume", "paging=off", "--assume", "cors=off"];
    let answer = exec_asking(&flags, "ask '/v1/pets?limit=2'");
    assert!(!answer.contains("\r\nlink:"), "{answer}");
    let mut banning = command(&["exec", "--plan", "enterprise:1/9", "--", "bash", "-c"]);
    banning.env("PETSTORE_MOCK_ASSUME", "ban-after=0 ban-for=7");
    let script = format!("{ASK} for n in 1 2 3; do ask /v1/pets; done");
    let (status, out, err) = ended(banning.arg(script));
    assert_eq!(status, 0, "{err}");
    assert!(
        out.contains("key_banned") && out.contains("retry-after: 7"),
        "{out}"
    );
}

#[test]
fn own_routes_come_from_a_file() {
    let file = scratch("routes.json");
    let path = file.to_str().unwrap();
    fs::write(
        &file,
        r#"[{"method": "GET", "path": "/store/{id}", "status": 203, "json": [7]}]"#,
    )
    .unwrap();
    let answer = exec_asking(&["--routes", path], "ask /v1/store/5");
    assert!(
        answer.starts_with("HTTP/1.1 203 ") && answer.ends_with("[7]"),
        "{answer}"
    );
    fs::write(&file, r#"[{"method": "GET", "path": "/pets/{id}"}]"#).unwrap();
    let (status, _, err) = run(&["--port", "0", "--routes", path]);
    assert!(
        status == 1 && err.contains("GET /v1/pets/{id}: this is an operation of the contract"),
        "{err}"
    );
}

#[test]
fn health_asks_the_port_of_the_variable() {
    let (status, out, err) = exec(
        &[],
        "port=${PETSTORE_MOCK_URL##*:}; env -u PETSTORE_MOCK_URL PETSTORE_MOCK_PORT=$port $MOCK health",
    );
    assert_eq!((status, &*out, &*err), (0, "ok\n", NOTHING));
}

#[test]
fn misspelt_variables_are_a_warning_and_kubernetes_is_ignored() {
    let mut odd = command(&["exec", "--", "true"]);
    odd.env("PETSTORE_MOCK_PROT", "1")
        .env("PETSTORE_MOCK_PORT", "tcp://10.0.0.1:4010")
        .env("PETSTORE_MOCK_PORT_4010_TCP", "tcp://10.0.0.1:4010")
        .env("PETSTORE_MOCK_SERVICE_HOST", "10.0.0.1");
    let (status, _, err) = ended(&mut odd);
    let warning = "petstore-mock: the variable PETSTORE_MOCK_PROT sets nothing; did you mean \
                   PETSTORE_MOCK_PORT?\n";
    assert_eq!((status, err), (0, format!("{warning}{NOTHING}")));
}
