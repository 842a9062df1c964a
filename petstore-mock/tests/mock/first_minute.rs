//! Tests of what a person sees first: the greeting, the log of requests, and the variables of flags.

use std::{io::Read as _, process::Stdio};

use super::process::{Running, ask, command, ended, exec};

/// Runs `petstore-mock` on a terminal for a moment, and returns what it printed.
#[cfg(target_os = "linux")]
fn on_a_terminal(args: &[&str]) -> String {
    use rustix::{
        fs::{Mode, OFlags, open},
        pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    };
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let side = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut child = command(args).stdout(Stdio::from(side)).spawn().unwrap();
    let mut screen = std::fs::File::from(terminal);
    let mut shown = Vec::new();
    let mut buffer = [0; 1024];
    while !shown.ends_with(b"found\r\n") {
        let read = screen.read(&mut buffer).unwrap();
        shown.extend_from_slice(&buffer[..read]);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    String::from_utf8(shown).unwrap().replace("\r\n", "\n")
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_is_greeted_in_six_lines_with_a_command_that_works() {
    let args = [
        "--port",
        "0",
        "--key",
        "free-key=free",
        "--key",
        "s3cr3t=enterprise:5/9",
    ];
    let shown = on_a_terminal(&args);
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
    let shown = on_a_terminal(&["--port", "0", "--tls", "--key", "s3cr3t=free"]);
    let curl = "try: curl --insecure -H \"Authorization: Bearer $PETSTORE_API_KEY\" \"https://";
    assert!(shown.contains(curl) && !shown.contains("s3cr3t"), "{shown}");
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|key| format!("--key={key}=pro"));
    let many: Vec<_> = ["--port=0"]
        .into_iter()
        .chain(keys.iter().map(|key| &**key))
        .collect();
    assert!(on_a_terminal(&many).contains("#6 (pro) and 3 more\n"));
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
        (lines[3], "violation [key]  key ci (free): ", ""),
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
        .env("PETSTORE_MOCK_TLS", "0")
        .env("PETSTORE_MOCK_RULE", "back-off=off deprecated=warning")
        .env("PETSTORE_MOCK_SEED", "none");
    let server = Running::spawn(&mut with_variables);
    let answer = server.get("/v1/pets", "a");
    assert!(
        answer.contains("x-ratelimit-limit: 9\r\n") && answer.ends_with("[]"),
        "{answer}"
    );
    assert!(
        server
            .get("/v1/pets", "b")
            .contains("x-ratelimit-limit: 300\r\n")
    );
    server.stop("TERM");
    let mut overridden = command(&["--port", "0", "--key", "c=free"]);
    overridden
        .env("PETSTORE_MOCK_PORT", "no port")
        .env("PETSTORE_MOCK_KEY", "a=pro");
    let server = Running::spawn(&mut overridden);
    assert!(server.get("/v1/pets", "a").starts_with("HTTP/1.1 401 "));
    server.stop("TERM");
    let (status, _, err) = ended(command(&[]).env("PETSTORE_MOCK_ASSUME", "ban-for=soon"));
    assert!(status == 2 && err.contains("--assume"), "{err}");
}
