//! Tests of what a person sees first: the help, the greeting, the log of requests, and the variables of
//! flags.

use super::process::{Running, ask, command, ended, exec, run};

#[test]
fn the_help_goes_to_stdout() {
    let (status, help, err) = run(&["--help"]);
    assert_eq!((status, &*err), (0, ""));
    let lines: Vec<_> = help.lines().map(str::trim_end).collect();
    insta::assert_snapshot!("help", lines.join("\n"));
}

/// Runs `petstore-mock` on a terminal for a moment, and returns what it printed.
fn on_a_terminal(args: &[&str]) -> String {
    // Only a program that hangs takes longer.
    let terminal = rexpect::session::spawn_command(command(args), Some(120_000));
    let shown = terminal.unwrap().exp_string("found\r\n").unwrap();
    shown.replace("\r\n", "\n")
}

#[test]
fn a_terminal_is_greeted_in_six_lines_with_a_command_that_works() {
    let keys = "--key=free-key=free s3cr3t=enterprise:5/9";
    let shown = on_a_terminal(&["--port=0", keys]);
    let url = shown.lines().next().unwrap();
    let url = url.strip_prefix("listening on ").unwrap().to_owned();
    let origin = url.strip_suffix("/v1").unwrap();
    assert!(shown.lines().count() <= 6, "{shown}");
    for part in [
        "keys: free-key (free), #2 (enterprise:5/9)\n",
        &format!("inspector: {origin}/_mock\n"),
        &format!("try: curl -H \"Authorization: Bearer free-key\" \"{url}/pets?limit=2\"\n"),
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("s3cr3t"), "{shown}");
    let shown = on_a_terminal(&["--port=0", "--tls", "--key=s3cr3t=free"]);
    let curl = "try: curl --insecure -H \"Authorization: Bearer $PETSTORE_API_KEY\" \"https://";
    assert!(shown.contains(curl) && !shown.contains("s3cr3t"), "{shown}");
}

#[test]
fn verbose_logs_each_request_in_a_line_without_keys() {
    let fault = r#"[{"name": "busy", "operation": "listOrders", "effect": {"status": 503}}]"#;
    let server = Running::start(&["--port=0", "-v", "--key=ci:s3cr3t=free", "--faults", fault]);
    server.get("/v1/pets?limit=1&key=s3cr3t", "s3cr3t");
    server.get("/v1/store/orders", "s3cr3t");
    ask(server.addr(), "DELETE /v1/pets", "unknown", "").unwrap();
    let (_, _, err) = server.stop("TERM");
    let lines: Vec<_> = err.lines().collect();
    for (line, start, end) in [
        (lines[0], "GET /v1/pets?limit=1&key=*** ci 200 ", "ms"),
        (lines[1], "GET /v1/store/orders ci 503 ", "ms fault=busy"),
        (lines[2], "DELETE /v1/pets - 405 ", "ms"),
    ] {
        assert!(line.starts_with(start) && line.ends_with(end), "{line}");
    }
    assert!(!err.contains("s3cr3t"), "{err}");
    let (_, _, err) = exec(&["-v"], "ask /v1 >/dev/null");
    assert!(err.starts_with("GET /v1 "), "{err}");
}

#[test]
fn a_flag_has_a_variable_that_it_overrides() {
    let mut with_variables = command(&[]);
    with_variables
        .env("PETSTORE_MOCK_PORT", "0")
        .env("PETSTORE_MOCK_KEY", "a=enterprise:9/99 b=pro")
        .env("PETSTORE_MOCK_TLS", "0");
    let server = Running::spawn(&mut with_variables);
    for (key, limit) in [("a", 9), ("b", 300)] {
        let answer = server.get("/v1/pets", key);
        let limit = format!("x-ratelimit-limit: {limit}\r\n");
        assert!(answer.contains(&limit), "{key}: {answer}");
    }
    let mut overridden = command(&["--port", "0", "--key", "c=free"]);
    overridden
        .env("PETSTORE_MOCK_PORT", "no port")
        .env("PETSTORE_MOCK_KEY", "a=pro");
    let server = Running::spawn(&mut overridden);
    assert!(server.get("/v1/pets", "a").starts_with("HTTP/1.1 401 "));
    for (name, value, says) in [
        (
            "ASSUME",
            "ban-for=soon",
            "--assume ban-for=soon: whole seconds",
        ),
        ("SENDERS", "x", "give a whole number from 1 on"),
        ("KEY", "ci=free,sender=8", "`,senders=8` may follow it"),
        (
            "FAULTS",
            r#"[{"effect": {"retryAfter": 30}}]"#,
            r#""retryAfter": {"seconds": 2}"#,
        ),
    ] {
        let name = format!("PETSTORE_MOCK_{name}");
        let (status, _, err) = ended(command(&[]).env(&name, value));
        assert!(status == 2 && err.contains(says), "{err}");
        let blamed = format!("petstore-mock: note that the variable {name} is set\n");
        assert!(err.starts_with(&blamed), "{err}");
    }
    // An empty variable sets nothing.
    let mut empty = command(&["exec", "--", "true"]);
    for name in ["FAIL_ON", "SENDERS", "URL", "ADMIN_TOKEN"] {
        empty.env(format!("PETSTORE_MOCK_{name}"), "");
    }
    assert_eq!(ended(&mut empty).0, 0);
}
