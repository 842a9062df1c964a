//! Tests of the gate of a CI run: findings, annotations, and `report`.

use std::{fs, net::TcpListener, process::Command};

use super::process::{BINARY, Running, command, ended, run, scratch};

/// Sends requests on one connection, each with the key in its URL, which is a violation.
const RUDE: &str = r#"
exec 3<>/dev/tcp/127.0.0.1/${PETSTORE_MOCK_URL##*:}
for n in $(seq ${1:-1}); do
    printf 'GET /v1/pets?n=%s&key=%s HTTP/1.1\r\nHost: x\r\nUser-Agent: a%%, b: c\r\n\r\n' $n $PETSTORE_API_KEY >&3
done
printf 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&3
cat <&3 >/dev/null
"#;

/// Defines a function that lists pets with a key, on a new connection.
const ASK: &str = r#"
ask() {
    exec 3<>/dev/tcp/127.0.0.1/${PETSTORE_MOCK_URL##*:}
    printf 'GET /v1/pets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n' >&3
    printf 'Authorization: Bearer %s\r\n\r\n' "$1" >&3
    cat <&3 >/dev/null
}
"#;

fn exec(flags: &[&str], script: &str) -> Command {
    // So no minute ends during a test.
    let start = ["exec", "--start-at", "2026-01-01T00:00:10Z"];
    command(&[&start, flags, &["--", "bash", "-c", script]].concat())
}

#[test]
fn findings_that_fail_the_run_are_printed_with_evidence() {
    let (status, _, err) = ended(&mut exec(&["--fail-on", "violations"], RUDE));
    assert_eq!(status, 3);
    for part in [
        "violation [key]  no key: the query parameter `key` is a key of this server (#1)\n",
        "  ! #1 ",
        "GET /v1/pets?n=1&key=*** -> 401\n",
        "\n  do: ",
        "\npetstore-mock: compliance: 1 violation in 2 requests\n",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    assert!(
        err.lines().count() <= 40 && !err.contains("more lines"),
        "{err}"
    );
}

#[test]
fn a_run_that_passes_prints_what_was_found_and_refused() {
    for flags in [
        &[][..],
        &["--fail-on", "violations", "--rule", "key=notice"],
    ] {
        let (status, _, err) = ended(&mut exec(flags, RUDE));
        assert_eq!(status, 0);
        assert!(err.contains(" [key]  "), "{err}");
        assert!(err.ends_with(" in 2 requests\n"), "{err}");
    }
    let off = ["--rule", "key=off"];
    let (_, _, err) = ended(&mut exec(&off, RUDE));
    assert_eq!(err.lines().count(), 2, "{err}");
    // A client that waits is told of a 429, and breaks no rule.
    let script = format!("{ASK} ask $PETSTORE_API_KEY; ask $PETSTORE_API_KEY");
    let plan = ["--plan", "enterprise:1/10", "--fail-on", "warnings"];
    let (status, _, err) = ended(&mut exec(&plan, &script));
    assert_eq!(status, 0, "{err}");
    let line = "petstore-mock: compliance: nothing found in 2 requests; 1 was answered 429\n";
    assert!(err.ends_with(line), "{err}");
}

#[test]
fn senders_are_declared_by_flags() {
    let three = |key| format!("{ASK} for n in 1 2 3; do ask {key}; done");
    let loop_of_three = three("$PETSTORE_API_KEY");
    let none = ["--plan", "enterprise:0/10", "--fail-on", "warnings"];
    for (senders, status) in [("1", 3), ("2", 3), ("3", 0)] {
        let flags = [&none[..], &["--senders", senders]].concat();
        let (ended, _, err) = ended(&mut exec(&flags, &loop_of_three));
        assert_eq!(ended, status, "{senders}: {err}");
    }
    let key = [
        "--key",
        "mine:k=enterprise:0/10,senders=3",
        "--fail-on",
        "warnings",
    ];
    let (status, _, err) = ended(&mut exec(&key, &three("k")));
    assert!(
        status == 0 && err.contains("notice [told-to-wait]  key mine"),
        "{err}"
    );
    let (status, _, err) = ended(&mut exec(&["--senders", "0"], "true"));
    assert!(status == 2 && err.contains("--senders"), "{err}");
}

#[test]
fn at_most_40_lines_are_printed_and_the_last_names_the_rest() {
    let file = scratch("report.txt");
    // Each parameter has its own finding.
    let script = r#"
        exec 3<>/dev/tcp/127.0.0.1/${PETSTORE_MOCK_URL##*:}
        for name in $(seq 20); do
            printf 'GET /v1/pets?%s=%s HTTP/1.1\r\nHost: x\r\n\r\n' $name $PETSTORE_API_KEY >&3
        done
        printf 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&3
        cat <&3 >/dev/null
    "#;
    let report = ["--report", file.to_str().unwrap()];
    for (flags, most) in [(&["--fail-on", "warnings"][..], 40), (&[], 10)] {
        let (_, _, err) = ended(&mut exec(&[&report[..], flags].concat(), script));
        let lines: Vec<_> = err.lines().collect();
        assert_eq!(lines.len(), most + 2, "{err}");
        let whole = fs::read_to_string(&file).unwrap();
        let left = whole.lines().filter(|line| !line.is_empty()).count() - 1 - most;
        let rest = format!("petstore-mock: {left} more lines: see {}", file.display());
        assert_eq!(lines[most], rest);
        assert!(lines[most + 1].starts_with("petstore-mock: compliance: 20 violations in 21 "));
    }
    let (_, _, err) = ended(&mut exec(&[], script));
    assert!(
        err.contains(" more lines: add --report FILE to get them\n"),
        "{err}"
    );
}

#[test]
fn github_gets_annotations_and_a_summary() {
    let summary = scratch("summary.md");
    fs::write(&summary, "# Before\n").unwrap();
    let under_github = |flags: &[&str]| {
        let mut command = exec(flags, RUDE);
        command
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_STEP_SUMMARY", &*summary);
        ended(&mut command)
    };
    let (status, _, err) = under_github(&["--fail-on", "warnings"]);
    let annotation = err.lines().find(|line| line.starts_with("::")).unwrap();
    let start = "::error title=petstore-mock%3A key::no key: the query parameter ";
    assert!(status == 3 && annotation.starts_with(start), "{err}");
    let text = fs::read_to_string(&summary).unwrap();
    assert!(
        text.starts_with("# Before\n### petstore-mock\n\n````text\nviolation [key]"),
        "{text}"
    );
    assert!(
        text.ends_with("compliance: 1 violation in 2 requests\n````\n"),
        "{text}"
    );
    assert!(!text.contains("exec-") && !err.contains("exec-"));
    let (_, _, err) = under_github(&[]);
    assert!(!err.contains("::error"), "{err}");
    assert_eq!(fs::read_to_string(&summary).unwrap(), text);
    let mut elsewhere = exec(&["--fail-on", "warnings"], RUDE);
    elsewhere
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", "/dev/null/summary");
    let (status, _, err) = ended(&mut elsewhere);
    assert!(
        status == 1 && err.contains("cannot write the summary"),
        "{err}"
    );
}

#[test]
fn a_run_without_requests_fails_and_says_why() {
    let (status, _, err) = ended(&mut exec(&["--fail-on", "violations"], "exit 0"));
    assert_eq!(status, 3);
    for part in [
        "no request reached the mock",
        "$PETSTORE_BASE_URL",
        "fixed address",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    assert_eq!(ended(&mut exec(&[], "exit 0")).0, 0);
    assert_eq!(
        ended(&mut exec(&["--fail-on", "violations"], "exit 9")).0,
        9
    );
    let server = Running::start(&["--port", "0", "--fail-on", "violations"]);
    assert_eq!(server.stop("TERM").0, Some(3));
}

#[test]
fn the_report_of_a_running_mock_is_fetched_and_judged() {
    let file = scratch("report.xml");
    let server = Running::start(&["--port", "0", "--key", "s3cr3t-and-long=free"]);
    let url = format!("http://{}/v1", server.addr());
    let report = |flags: &[&str]| run(&[&["report", &url], flags].concat());
    let (status, out, err) = report(&[]);
    assert_eq!((status, &*err), (0, ""), "{out}");
    assert!(
        out.starts_with("compliance: nothing found in 0 requests"),
        "{out}"
    );
    let (status, _, err) = report(&["--fail-on", "violations"]);
    assert!(status == 3 && err.contains("no request reached"), "{err}");
    server.get("/v1/pets?key=s3cr3t-and-long", "s3cr3t-and-long");
    let (status, out, _) = report(&[
        "--fail-on",
        "violations",
        "--report",
        file.to_str().unwrap(),
    ]);
    assert!(status == 3 && out.contains("violation [key]"), "{out}");
    assert!(fs::read_to_string(&file).unwrap().contains("<testsuite"));
    assert_eq!(report(&["--report", "report.pdf"]).0, 2);
    let mut by_variable = command(&["report"]);
    by_variable.env("PETSTORE_MOCK_URL", &url);
    assert_eq!(ended(&mut by_variable).0, 0);
    server.stop("TERM");
    let (status, _, err) = report(&[]);
    assert!(
        status == 1 && err.contains("no mock answers at 127.0.0.1:"),
        "{err}"
    );
}

#[test]
fn health_waits_until_the_mock_is_ready() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let script = r#"
        "$MOCK" health --wait 60 "http://127.0.0.1:$PORT" && echo ready &
        waiting=$!
        "$MOCK" --port "$PORT" >/dev/null 2>&1 &
        mock=$!
        wait $waiting
        kill $mock
        wait $mock
    "#;
    let mut shell = Command::new("bash");
    shell
        .args(["-c", script])
        .env("MOCK", BINARY)
        .env("PORT", &port);
    assert_eq!(ended(&mut shell).1, "ok\nready\n");
    let (status, _, err) = run(&["health", "--wait", "1", &format!("127.0.0.1:{port}")]);
    assert!(status == 1 && err.contains("no mock answers"), "{err}");
}
