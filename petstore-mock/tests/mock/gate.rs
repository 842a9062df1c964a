//! Tests of the gate of a CI run: findings, annotations, the minimum of requests, and `report`.

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

fn exec(flags: &[&str], script: &str) -> Command {
    command(&[&["exec"], flags, &["--", "bash", "-c", script]].concat())
}

#[test]
fn findings_that_fail_the_run_are_printed_with_evidence() {
    let (status, _, err) = ended(&mut exec(&["--fail-on", "violations"], RUDE));
    assert_eq!(status, 3);
    for part in [
        "violation [key-in-url]",
        "GET /v1/pets?n=1&key=***",
        "\n  do: ",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    assert!(
        err.lines().count() <= 40 && !err.contains("more lines"),
        "{err}"
    );
    let (status, _, err) = ended(&mut exec(&[], RUDE));
    assert_eq!((status, err.lines().count()), (0, 1), "{err}");
    let off = ["--fail-on", "violations", "--rule", "key-in-url=warning"];
    let (status, _, err) = ended(&mut exec(&off, RUDE));
    assert_eq!((status, err.lines().count()), (0, 1), "{err}");
}

#[test]
fn at_most_40_lines_are_printed_and_the_last_names_the_rest() {
    let file = scratch("report.txt");
    // Each scope has its own finding.
    let script = r#"
        exec 3<>/dev/tcp/127.0.0.1/${PETSTORE_MOCK_URL##*:}
        for scope in a b c d e f g h; do
            printf 'GET /v1/pets?key=%s HTTP/1.1\r\nHost: x\r\nX-Mock-Scope: %s\r\n\r\n' $PETSTORE_API_KEY $scope >&3
        done
        printf 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&3
        cat <&3 >/dev/null
    "#;
    let mut args = vec!["--fail-on", "warnings", "--report", file.to_str().unwrap()];
    let (status, _, err) = ended(&mut exec(&args, script));
    let lines: Vec<_> = err.lines().collect();
    assert!(status == 3 && lines.len() == 40, "{} {err}", lines.len());
    let whole = fs::read_to_string(&file).unwrap();
    let left = whole.lines().count() - 39;
    let last = format!("petstore-mock: {left} more lines: see {}", file.display());
    assert_eq!(lines[39], last);
    args.drain(2..4);
    let (_, _, err) = ended(&mut exec(&args, script));
    assert!(
        err.ends_with(" more lines: add --report FILE to get them\n"),
        "{err}"
    );
}

#[test]
fn github_gets_annotations_and_a_summary_unless_they_are_off() {
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
    let start = "::error title=petstore-mock%3A key-in-url::default: 1 × key-in-url. ";
    assert!(
        status == 3 && annotation.starts_with(start) && annotation.contains("%0A"),
        "{err}"
    );
    let text = fs::read_to_string(&summary).unwrap();
    assert!(
        text.starts_with("# Before\n# Compliance report\n"),
        "{text}"
    );
    assert!(!text.contains("exec-") && !err.contains("exec-"));
    for flags in [&["--fail-on", "warnings", "--github", "off"][..], &[]] {
        let (_, _, err) = under_github(flags);
        assert!(!err.contains("::error"), "{flags:?}: {err}");
    }
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
        "0 of at least 1 expected requests",
        "$PETSTORE_BASE_URL",
        "fixed address",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    let none = ["--fail-on", "violations", "--min-requests", "0"];
    assert_eq!(ended(&mut exec(&none, "exit 0")).0, 0);
    assert_eq!(ended(&mut exec(&["--min-requests", "3"], RUDE)).0, 3);
    assert_eq!(ended(&mut exec(&["--min-requests", "2"], RUDE)).0, 0);
    assert_eq!(ended(&mut exec(&["--min-requests", "3"], "exit 9")).0, 9);
    let server = Running::start(&["--port", "0", "--fail-on", "violations"]);
    assert_eq!(server.stop("TERM").0, Some(0), "serve expects no request");
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
    assert!(status == 3 && err.contains("0 of at least 1"), "{err}");
    server.get("/v1/pets?key=s3cr3t-and-long", "s3cr3t-and-long");
    let (status, out, _) = report(&[
        "--fail-on",
        "violations",
        "--report",
        file.to_str().unwrap(),
    ]);
    assert!(
        status == 3 && out.contains("violation [key-in-url]"),
        "{out}"
    );
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
