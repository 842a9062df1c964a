//! Tests of the gate of a CI run: findings, annotations, and `report`.

use std::fs;

use super::process::{Running, command, ended, exec, run, scratch, under_exec};

/// A client that has the key in a URL, which is a violation.
const RUDE: &str = "ask \"/v1/pets?n=1&key=$PETSTORE_API_KEY\" >/dev/null";

/// A client that breaks no rule.
const POLITE: &str = "ask /v1/pets >/dev/null";

#[test]
fn the_status_of_a_run_follows_from_its_findings_and_flags() {
    let failed = format!("{RUDE}; exit 9");
    for (flags, script, expected) in [
        (&[][..], RUDE, 0),
        (&["--fail-on=violations"], RUDE, 3),
        (&["--fail-on=warnings", "--rule=key=warning"], RUDE, 3),
        (&["--fail-on=violations", "--rule=key=warning"], RUDE, 0),
        // Also as `--rule` spells it.
        (&["--fail-on=warning", "--rule=key=notice"], RUDE, 0),
        (&["--fail-on=warnings", "--rule=key=off"], RUDE, 0),
        // The command's own status comes first.
        (&["--fail-on=violations"], &failed, 9),
        (&["--fail-on=warnings"], POLITE, 0),
    ] {
        let (status, _, err) = exec(flags, script);
        assert_eq!(status, expected, "{flags:?}: {err}");
        let is_off = flags.contains(&"--rule=key=off");
        let is_shown = script != POLITE && !is_off;
        assert_eq!(err.contains(" [key]  "), is_shown, "{flags:?}: {err}");
        // Otherwise a reader could think that the rule found nothing.
        assert_eq!(err.contains("severities set: key off"), is_off, "{err}");
    }
    for (rule, message) in [
        ("no-rule=off", "unknown rule: choose one of told-to-wait"),
        ("key=harmless", "unknown severity: choose one of notice"),
        ("key", "write NAME=SEVERITY"),
    ] {
        let (status, _, err) = exec(&["--rule", rule], RUDE);
        assert!(status == 2 && err.contains(message), "{err}");
    }
}

#[test]
fn findings_are_printed_with_evidence() {
    let (_, _, err) = exec(&["--fail-on", "violations"], RUDE);
    for part in [
        "violation [key]  key exec (free): the query parameter `key` is a key of this server (#1)\n",
        "GET /v1/pets?n=1&key=*** -> 200\n",
        "\npetstore-mock: compliance: 1 violation in 1 request\n",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
}

#[test]
fn senders_are_declared_by_flags() {
    let none = ["--frozen", "--plan=enterprise:0/10", "--fail-on=warnings"];
    let three = "for n in 1 2 3; do ask /v1/pets; done >/dev/null";
    for (senders, expected) in [("1", 3), ("2", 3), ("3", 0)] {
        let flags = [&none[..], &["--senders", senders]].concat();
        let (status, _, err) = exec(&flags, three);
        assert_eq!(status, expected, "{senders}: {err}");
        assert!(
            err.ends_with(" in 3 requests; 3 were answered 429\n"),
            "{err}"
        );
    }
    let key = ["--key", "mine:k=enterprise:0/10,senders=3"];
    let script = three.replace("pets", "pets k");
    let (status, _, err) = exec(&[&none[..], &key].concat(), &script);
    let notice = "notice [told-to-wait]  key mine";
    assert!(status == 0 && err.contains(notice), "{err}");
}

#[test]
fn at_most_40_lines_are_printed_and_the_last_names_the_rest() {
    let file = scratch("report.txt");
    // Each parameter has its own finding.
    let script = "for n in $(seq 20); do ask /v1/pets?$n=$PETSTORE_API_KEY; done >/dev/null";
    let report = ["--report", file.to_str().unwrap()];
    for (flags, most) in [(&["--fail-on", "warnings"][..], 40), (&[], 10)] {
        let (_, _, err) = exec(&[&report[..], flags].concat(), script);
        let lines: Vec<_> = err.lines().collect();
        assert_eq!(lines.len(), most + 2, "{err}");
        let whole = fs::read_to_string(&file).unwrap();
        let left = whole.lines().filter(|line| !line.is_empty()).count() - 1 - most;
        let rest = format!("petstore-mock: {left} more lines: see {}", file.display());
        assert_eq!(lines[most], rest);
        assert!(lines[most + 1].starts_with("petstore-mock: compliance: 20 violations in 20 "));
    }
    let (_, _, err) = exec(&[], script);
    let rest = " more lines: add --report FILE to get them\n";
    assert!(err.contains(rest), "{err}");
}

#[test]
fn the_report_is_written_in_the_format_that_is_asked_for() {
    let folder = scratch("");
    for (name, begins) in [("json", "{"), ("xml", "<?xml"), ("txt", "violation [key]")] {
        let path = folder.join(format!("reports/report.{name}"));
        assert_eq!(exec(&["--report", path.to_str().unwrap()], RUDE).0, 0);
        let report = fs::read_to_string(&path).unwrap();
        assert!(report.starts_with(begins), "{report}");
        let is_safe = report.contains("is a key of this server") && !report.contains("exec-");
        assert!(is_safe, "{report}");
    }
    fs::remove_dir_all(&folder).unwrap();
    let (status, _, err) = exec(&["--report", "report.pdf"], "exit 0");
    assert!(status == 2 && err.contains(".txt, .json or .xml"), "{err}");
    for (script, expected) in [("exit 0", 1), ("exit 9", 9)] {
        let (status, _, err) = exec(&["--report", "/dev/null/report.txt"], script);
        assert_eq!(status, expected, "{err}");
        assert!(err.contains("cannot write the report"), "{err}");
    }
}

#[test]
fn github_gets_annotations_and_a_summary() {
    let summary = scratch("summary.md");
    fs::write(&summary, "# Before\n").unwrap();
    let under_github = |flags: &[&str], summary: &str| {
        let mut command = under_exec(flags, RUDE);
        command.env("GITHUB_ACTIONS", "true");
        ended(command.env("GITHUB_STEP_SUMMARY", summary))
    };
    let path = summary.to_str().unwrap();
    let (status, _, err) = under_github(&["--fail-on", "warnings"], path);
    let annotation = err.lines().find(|line| line.starts_with("::")).unwrap();
    let start = "::error title=petstore-mock%3A key::key exec (free): the query parameter ";
    assert!(status == 3 && annotation.starts_with(start), "{err}");
    let text = fs::read_to_string(&summary).unwrap();
    let start = "# Before\n### petstore-mock\n\n````text\nviolation [key]";
    assert!(text.starts_with(start) && !text.contains("exec-"), "{text}");
    // Findings that do not fail the run are warnings.
    let (_, _, err) = under_github(&[], path);
    assert!(
        err.contains("::warning title=") && !err.contains("::error"),
        "{err}"
    );
    let both = fs::read_to_string(&summary).unwrap();
    assert_eq!(both.matches("violation [key]").count(), 2, "{both}");
    let (status, _, err) = under_github(&["--fail-on", "warnings"], "/dev/null/summary");
    let says = "cannot write the summary";
    assert!(status == 1 && err.contains(says), "{err}");
}

#[test]
fn a_run_that_does_not_reach_the_service_fails_and_says_why() {
    let (summary, junit) = (scratch("summary.md"), scratch("report.xml"));
    let says = "no request with a valid key reached the service: ";
    for (script, line) in [
        ("exit 0", "nothing found in 0 requests"),
        ("ask /v1/pets wrong", "1 request; 1 without a valid key"),
        ("ask /pets", "1 request; 1 for an unknown operation"),
    ] {
        for (flags, expected, level) in [
            (&["--fail-on", "violations"][..], 3, "error"),
            (&[], 0, "warning"),
        ] {
            let report = ["--report", junit.to_str().unwrap()];
            let mut command = under_exec(&[flags, &report].concat(), script);
            command.env("GITHUB_ACTIONS", "true");
            let (status, _, err) = ended(command.env("GITHUB_STEP_SUMMARY", &summary));
            assert_eq!(status, expected, "{script}: {err}");
            let annotation = format!("\n::{level} title=petstore-mock::{says}");
            for part in [line, &annotation, says, "$PETSTORE_BASE_URL"] {
                assert!(err.contains(part), "{part}: {err}");
            }
            let text = fs::read_to_string(&summary).unwrap();
            assert!(text.contains(says), "{text}");
            fs::remove_file(&summary).unwrap();
            let junit = fs::read_to_string(&junit).unwrap();
            let failures = junit.matches("<failure").count();
            assert!(failures == 1 && junit.contains(&says[..42]), "{junit}");
        }
    }
    assert_eq!(exec(&["--fail-on", "violations"], "exit 9").0, 9);
    let server = Running::start(&["--port", "0", "--fail-on", "violations"]);
    assert_eq!(server.stop("TERM").0, Some(3));
}

#[test]
fn the_report_of_a_running_mock_is_fetched_and_judged() {
    let file = scratch("report.xml");
    let server = Running::start(&["--port", "0", "--key", "s3cr3t-and-long=free"]);
    let url = format!("http://{}/v1", server.addr());
    let report = |flags: &[&str]| run(&[&["report", &url], flags].concat());
    let (status, out, _) = report(&[]);
    let nothing = "compliance: nothing found in 0 requests";
    assert!(status == 0 && out.starts_with(nothing), "{out}");
    assert_eq!(report(&["--fail-on", "violations"]).0, 3);
    server.get("/v1/pets?key=s3cr3t-and-long", "s3cr3t-and-long");
    let path = file.to_str().unwrap();
    let (status, out, _) = report(&["--fail-on", "violations", "--report", path]);
    assert!(status == 3 && out.contains("violation [key]"), "{out}");
    assert!(fs::read_to_string(&file).unwrap().contains("<testsuite"));
    let mut by_variable = command(&["report"]);
    assert_eq!(ended(by_variable.env("PETSTORE_MOCK_URL", &url)).0, 0);
    server.stop("TERM");
    let (status, _, err) = report(&[]);
    assert!(status == 1 && err.contains("no mock answers at "), "{err}");
}
