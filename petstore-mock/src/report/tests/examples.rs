//! The examples of the guide for each rule: requests with a finding, and requests without one.

use std::collections::BTreeSet;

use super::recording::{broken, judge};
use crate::report::{Rule, Severity};

/// Panics unless the exchanges break exactly these rules. Notices count where `rules` names one.
#[track_caller]
fn expect(name: &str, rules: &str, lines: &[String]) {
    let report = judge(lines.iter().map(String::as_str));
    let expected: BTreeSet<String> = rules.split_whitespace().map(str::to_owned).collect();
    let is_notice = |rule: &String| {
        let rule: Rule = rule.parse().unwrap();
        rule.about().severity == Severity::Notice
    };
    let least = if expected.iter().any(is_notice) {
        Severity::Notice
    } else {
        Severity::Warning
    };
    let lines = lines.join("\n");
    assert_eq!(
        broken(&report, least),
        expected,
        "{name}: {report}\n{lines}"
    );
    for finding in report.findings() {
        finding.evidence.iter().for_each(super::evidence::check);
    }
}

/// Returns the same request on one connection, after these waits. Each takes 0.3 ms.
fn row(waits: &[f64], request: &str) -> Vec<String> {
    let mut at = 1.0;
    let mut lines = vec![format!("{at}+0.0003 1<0.001 {request}")];
    for wait in waits {
        at += 0.000_3 + wait;
        lines.push(format!("{at:.4}+0.0003 1 {request}"));
    }
    lines
}

/// Returns the lines of a text.
fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns a line for each number from 0.
fn each(count: u32, line: impl Fn(u32) -> String) -> Vec<String> {
    (0..count).map(line).collect()
}

const FAILS: &str = "GET /v1/pets 503";

/// Returns requests that break a rule.
fn example(rule: Rule) -> Vec<String> {
    let one = |request: &str| lines(&format!("1+0.01 1<0.001 GET {request}"));
    match rule {
        Rule::ToldToWait => row(&[1.0], "GET /v1/pets 429 wait=2"),
        Rule::BackOff => row(&[0.001; 3], FAILS),
        Rule::RepeatedPost => row(&[1.0], "POST /v1/pets 500 body={}"),
        Rule::KeyInUrl => one("/v1/pets?k=x 200 key-in=k"),
        Rule::RetryAfter => row(&[5.0], "GET /v1/pets 503 wait=10"),
        Rule::RepeatedError => row(&[1.0; 4], "POST /v1/pets 400 body={}"),
        Rule::KeyScheme => one("/v1/pets 401 other-scheme"),
        Rule::SteadyRetry => row(&[1.0; 5], FAILS),
        Rule::QuotaIgnored => lines(
            "1+0.01 1 GET /v1/pets 200 remaining=0 reset=60
         2+0.01 1 GET /v1/pets 429 wait=58 remaining=0 reset=60",
        ),
        Rule::Deprecated => one("/v1/pets/1 200"),
        Rule::KeepAlive => each(10, |n| format!("{n}+0.01 {n}<0.001 GET /v1/pets 200")),
        Rule::UserAgent => one("/v1/pets 200 agent="),
    }
}

#[test]
fn each_rule_is_broken_by_its_example() {
    for rule in Rule::ALL {
        let report = judge(example(*rule).iter().map(String::as_str));
        let found = broken(&report, Severity::Notice);
        assert!(found.contains(&rule.to_string()), "{rule}: {report}");
    }
}

#[test]
fn told_to_wait() {
    expect(
        "at the reset",
        "",
        &lines(
            "10.7+0.001 1 GET /v1/pets 429 wait=50 remaining=0 reset=60
         60+0.001 1 GET /v1/pets 200",
        ),
    );
    expect(
        "a second early",
        "told-to-wait",
        &lines(
            "10.7+0.001 1 GET /v1/pets 429 wait=50 remaining=0 reset=60
         59+0.001 1 GET /v1/pets 429 wait=1 remaining=0 reset=60",
        ),
    );
    expect(
        "1 s after Retry-After: 2",
        "told-to-wait",
        &lines(
            "1+0.001 1 GET /v1/pets 429 wait=2
         2+0.001 1 GET /v1/pets 429 wait=2",
        ),
    );
    expect(
        "another request on the same connection",
        "told-to-wait",
        &lines(
            "1+0.001 1 GET /v1/pets 429 wait=2
         1.01+0.001 1 POST /v1/pets 201 body={}",
        ),
    );
    expect(
        "within the tolerance, on one clock or the other",
        "",
        &lines(
            "1+0.001 1 GET /v1/pets 429 wait=2
         2.96+0.001 1 GET /v1/pets 429 wait=2
         3.5+0.001 1 GET /v1/pets 200 real=10",
        ),
    );
    expect(
        "a date, to the second",
        "",
        &lines(
            "1+0.001 1 GET /v1/pets 429 until=4
         3.01+0.001 1 GET /v1/pets 200",
        ),
    );
    expect(
        "more than a second before a date",
        "told-to-wait",
        &lines(
            "1+0.001 1 GET /v1/pets 429 until=4
         2.9+0.001 1 GET /v1/pets 200",
        ),
    );
    expect(
        "100 s into a ban of 300 s",
        "told-to-wait",
        &lines(
            "1+0.001 1 GET /v1/pets 429 banned wait=300
         101+0.001 1 GET /v1/pets 429 banned wait=200",
        ),
    );
    expect(
        "after a boundary",
        "",
        &lines(
            "1+0.001 1 GET /v1/pets 429 wait=20
         ! 2
         3+0.001 1 GET /v1/pets 200",
        ),
    );
    expect(
        "another User-Agent, another scope",
        "",
        &lines(
            "1+0.001 1 GET /v1/pets 429 wait=20
         3+0.001 1 GET /v1/pets 429 wait=18 agent=other/1
         4+0.001 1 GET /v1/pets 429 wait=17 scope=other",
        ),
    );
    expect(
        "the same request on another connection, within a second",
        "",
        &lines(
            "1+0.001 1<0.001 GET /v1/pets 429 wait=20
         1.5+0.001 2<0.001 GET /v1/pets 429 wait=20",
        ),
    );
    expect(
        "the same request on another connection, later",
        "told-to-wait",
        &lines(
            "1+0.001 1<0.001 GET /v1/pets 429 wait=20
         2.5+0.001 2<0.001 GET /v1/pets 429 wait=18",
        ),
    );
}

#[test]
fn told_to_wait_in_company() {
    let page = |n: u32, at: f64, connection: u32, more: &str| {
        format!("{at:.4}+0.001 {connection} GET /v1/pets?limit={n} {more}")
    };
    let early = "429 wait=50 remaining=0 reset=60";
    // The workers keep their connections open until they retry at the reset.
    let workers = |count: u32| {
        let mut told = each(count, |n| page(n, 10.0 + f64::from(n) * 0.3, n, early));
        told.extend(each(count, |n| {
            page(n, 60.0 + f64::from(n) * 0.3, n, "200")
        }));
        told
    };
    expect("10 workers, each told once", "", &workers(10));
    expect(
        "11 workers, the first of whom is told by the wait",
        "",
        &workers(11),
    );
    expect(
        "12 workers: the 11th early request",
        "told-to-wait",
        &workers(12),
    );
    let mut again = workers(10);
    again.extend(each(10, |n| page(n, 15.0 + f64::from(n) * 0.3, n, early)));
    expect("10 workers, each again 5 s later", "told-to-wait", &again);
    let burst = each(100, |n| page(n, 10.0 + f64::from(n) * 0.000_5, n, early));
    expect("100 at once", "", &burst);
    let new = |n: u32| {
        format!(
            "{:.3}+0.001 {n}<0.001 GET /v1/pets?n={n} {early}",
            10.0 + f64::from(n) * 0.01
        )
    };
    expect(
        "a loop of 30, a connection each",
        "told-to-wait",
        &each(30, new),
    );
    let http2 = |n: u32| page(n, 10.0 + f64::from(n) * 0.001, 1, &format!("{early} h2"));
    expect(
        "1,000 over one HTTP/2 connection",
        "told-to-wait",
        &each(1_000, http2),
    );
    expect("100 over one HTTP/2 connection", "", &each(100, http2));
    let user = |n: u32| page(n, 10.0 + f64::from(n) * 0.2, 1 + n % 2, early);
    expect("a gateway that goes on", "told-to-wait", &each(40, user));
    let mut banned = workers(10);
    banned.push(page(0, 30.0, 20, "429 banned wait=300 strikes=11"));
    expect("those who wait, while another brings on a ban", "", &banned);
}

/// The workers of a pool may begin one by one on one connection, before a second one is opened.
#[test]
fn an_early_request_of_the_first_moments_is_doubtful() {
    for (rule, answer) in [
        ("told-to-wait", "429 wait=50 remaining=0 reset=60"),
        ("retry-after", "503 wait=10"),
    ] {
        let exchange =
            |at: f64, connection: u32| format!("{at:.4}+0.0003 {connection} GET /v1/pets {answer}");
        let on_one = |count: u32| each(count, |n| exchange(10.0 + f64::from(n) * 0.001, 1));
        let then = |count: u32, at: f64, connection: u32| {
            let mut all = on_one(count);
            all.push(exchange(at, connection));
            // The first connection stays open until then.
            all.push("61+0.001 1 GET /v1/pets 200".to_owned());
            all
        };
        expect(
            "a pool's second connection soon after",
            "",
            &then(2, 10.05, 2),
        );
        expect("only one early request", rule, &on_one(2));
        expect("more on the same connection", rule, &then(2, 10.05, 1));
        expect("a second connection much later", rule, &then(2, 10.15, 2));
        expect(
            "more early requests than workers",
            rule,
            &then(14, 10.05, 2),
        );
        expect("as many as workers", "", &then(11, 10.05, 2));
        expect("one more than workers", rule, &then(12, 10.05, 2));
        expect(
            "a second connection 0.1 s later",
            rule,
            &then(2, 10.1003, 2),
        );
        // Those that were let go do not hide a later breach.
        let mut later = then(2, 10.05, 2);
        let end = later.pop().unwrap();
        later.extend(each(12, |n| exchange(12.0 + f64::from(n) * 0.5, 2 + n % 2)));
        later.push(end);
        let report = judge(later.iter().map(String::as_str)).to_text();
        assert!(
            report.contains(rule) && report.contains(" too early, after 10 other early"),
            "{report}"
        );
    }
    let banned = [
        "10+0.0003 1 GET /v1/pets 429 wait=50 remaining=0 reset=60",
        "10.001+0.0003 1 GET /v1/pets 429 banned wait=300 strikes=11",
        "10.05+0.0003 2 GET /v1/pets 429 banned wait=300",
        "400+0.001 1 GET /v1/pets 200",
    ];
    expect(
        "a ban by one that is let go",
        "quota-ignored",
        &banned.map(str::to_owned),
    );
}

#[test]
fn retry_after() {
    expect(
        "1 s obeyed 16 times",
        "",
        &row(&[1.0; 16], "GET /v1/pets 503 wait=1"),
    );
    expect(
        "Retry-After: 0",
        "",
        &row(&[0.001; 16], "GET /v1/pets 503 wait=0"),
    );
    expect(
        "after 5 s of 10",
        "retry-after",
        &row(&[5.0], "GET /v1/pets 503 wait=10"),
    );
    expect(
        "another request",
        "",
        &lines(
            "1+0.001 1 GET /v1/pets 503 wait=10
         2+0.001 1 GET /v1/pets?limit=5 200",
        ),
    );
    let worker = |n: u32, round: u32, every: f64| {
        let at = 1.0 + f64::from(n) * 0.01 + f64::from(round) * every;
        format!("{at:.2}+0.001 {n} GET /v1/pets 503 wait=10")
    };
    let rounds = |count: u32, every: f64| each(8 * count, move |n| worker(n % 8, n / 8, every));
    expect("8 workers, each told once", "", &rounds(1, 0.5));
    expect("8 workers that come back in time", "", &rounds(3, 10.0));
    expect(
        "8 workers that retry every 0.5 s",
        "retry-after",
        &rounds(4, 0.5),
    );
    let user = |n: u32| {
        format!(
            "{}+0.001 {} GET /v1/pets 503 wait=10",
            f64::from(n) * 0.2,
            n % 2
        )
    };
    expect(
        "a gateway that sends every user's request",
        "retry-after",
        &each(40, user),
    );
}

#[test]
fn back_off() {
    for (name, waits) in [
        ("doubled", &[0.0, 0.5, 1.0, 2.0][..]),
        ("full jitter from 50 ms", &[0.02, 0.08, 0.005, 0.3, 0.6]),
        ("2 repeats at once", &[0.001, 0.001]),
        ("retries of a shell loop", &[0.007; 12]),
        (
            "a wait of 0.1 s after 3 short ones",
            &[0.001, 0.001, 0.001, 0.1],
        ),
        (
            "half of the waits are short",
            &[0.001, 0.05, 0.001, 0.05, 0.001, 0.05],
        ),
        (
            "60 % of the waits are short",
            &[0.001, 0.05, 0.001, 0.05, 0.001],
        ),
    ] {
        expect(name, "", &row(waits, FAILS));
    }
    for (name, waits) in [
        ("3 repeats 1 ms apart", &[0.001; 3][..]),
        ("3 repeats 5.9 ms apart", &[0.005_9; 3]),
        (
            "3 repeats at once after a long wait",
            &[1.0, 0.001, 0.001, 0.001],
        ),
        (
            "7 repeats at once, then a long wait",
            &[0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 5.0],
        ),
        (
            "more than 60 % of the waits are short",
            &[0.001, 0.05, 0.001, 0.05, 0.001, 0.001],
        ),
        (
            "7 repeats at once in a row of slower ones",
            &[
                0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001,
            ],
        ),
    ] {
        expect(name, "back-off", &row(waits, FAILS));
    }
    let end = |last: &str| {
        let mut lines = row(&[0.001; 3], FAILS);
        lines.push(format!("1.0053+0.001 1 GET /v1/pets {last}"));
        lines
    };
    expect("a success after 3 repeats", "back-off", &end("200"));
    expect(
        "a told wait after 3 repeats",
        "back-off",
        &end("503 wait=5"),
    );
    expect(
        "told waits are not judged",
        "",
        &row(&[0.001; 20], "GET /v1/pets 503 wait=0"),
    );
    expect(
        "lost answers",
        "back-off",
        &row(&[0.001; 7], "GET /v1/pets -"),
    );
    expect(
        "different requests",
        "",
        &each(20, |n| {
            format!("{}+0.0003 1 GET /v1/pets?n={n} 500", f64::from(n) * 0.001)
        }),
    );
    let poller = |n: u32| format!("{n}+0.999 {n}<0.001 GET /v1/pets -");
    expect(
        "a poller whose time-out is its interval",
        "",
        &each(20, poller),
    );
}

#[test]
fn back_off_in_company() {
    let at = |n: u32, every: f64| 1.0 + f64::from(n) * every;
    let first = |n: u32| format!("{:.4}+0.0005 {n}<0.001 {FAILS}", at(n, 0.000_1));
    expect("100 first attempts at once", "", &each(100, first));
    // 8 workers that begin 3 ms apart share a pool, and all use its only connection.
    let mut workers = each(8, |n| format!("{:.4}+0.0003 1 {FAILS}", at(n, 0.003)));
    workers.extend(each(8, |n| {
        format!("{:.4}+0.0003 1 {FAILS}", at(n, 0.003) + 0.5)
    }));
    expect("8 workers 3 ms apart, again after 0.5 s", "", &workers);
    let gateway = |n: u32| format!("{:.3}+0.0003 {} {FAILS}", at(n, 0.05), n % 2);
    expect("a gateway, 20 a second", "", &each(60, gateway));
    let hammer = |n: u32| format!("{:.5}+0.0003 {} {FAILS}", at(n, 0.000_5), n % 8);
    expect("8 threads that hammer 240 times", "", &each(240, hammer));
    expect(
        "8 threads that hammer 400 times",
        "back-off",
        &each(400, hammer),
    );
    let http2 = |n: u32| format!("{:.5}+0.0003 1 {FAILS} h2", at(n, 0.000_5));
    expect("1,000 over HTTP/2", "back-off", &each(1_000, http2));
    expect("12 over HTTP/2", "", &each(12, http2));
    let new = |n: u32| format!("{:.5}+0.0003 {n}<0.0001 {FAILS}", at(n, 0.001));
    expect("12 at once, a connection each", "", &each(12, new));
}

#[test]
fn steady_retry() {
    for (name, waits) in [
        ("1 s five times", &[1.0; 5][..]),
        ("3 repeats at once", &[0.015, 0.015, 0.015]),
        ("every 2 s", &[2.0; 4]),
        ("1 s, after a first one at once", &[0.0, 1.0, 1.0, 1.1]),
    ] {
        expect(name, "steady-retry", &row(waits, FAILS));
    }
    for (name, waits) in [
        ("1, 2, 3, 4 s", &[1.0, 2.0, 3.0, 4.0][..]),
        ("1 s three times", &[1.0; 3]),
        (
            "doubled to 4 s, and 4 s for ever",
            &[0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0],
        ),
        ("every 5 s", &[5.0; 6]),
    ] {
        let lines = row(waits, FAILS);
        let report = judge(lines.iter().map(String::as_str));
        assert_eq!(report.findings().count(), 0, "{name}: {report}");
    }
    let two = |n: u32| format!("{}+0.001 {} {FAILS}", n / 2, n % 2);
    let lines = each(12, two);
    let report = judge(lines.iter().map(String::as_str));
    assert_eq!(report.findings().count(), 0, "several senders: {report}");
}

#[test]
fn repeated_post_of_a_pet_on_one_of_two_pages() {
    for (first, second) in [(7, 1), (1, 7)] {
        let recording = lines(&format!(
            "1+0.01 1<0.001 POST /v1/pets 500 added=7 body={{}}\n\
             1.2+0.01 1 GET /v1/pets 200 lists={first}\n\
             1.3+0.01 1 GET /v1/pets?offset=1 200 lists={second}\n\
             2+0.01 1 POST /v1/pets 201 added=8 body={{}}"
        ));
        expect("one of two pages", "repeated-post", &recording);
    }
}

#[test]
fn repeated_post() {
    let rex = r#"body={"name":"Rex","categoryId":7}"#;
    let otherwise = r#"body={"categoryId": 7.0, "name": "Rex"}"#;
    let again = |first: &str, between: &str, wait: f64| {
        let post = "POST /v1/pets";
        let end = 1.01 + wait;
        lines(&format!(
            "1+0.01 1<0.001 {post} {first} {rex}\n{between}\n{end}+0.01 1 {post} 201 added=8 {otherwise}"
        ))
    };
    let lists = "1.2+0.01 1 GET /v1/pets 200 lists=1";
    for (name, first, between, wait) in [
        ("500, list, POST", "500", lists, 1.0),
        ("429, wait, POST", "429 wait=1", "", 1.1),
        ("reset between", "500", "! 1.5", 1.0),
        ("400", "400", "", 1.0),
        ("201", "201 added=7", "", 1.0),
        ("503 that added nothing", "503", "", 1.0),
        ("503 with Retry-After", "503 added=7 wait=1", "", 1.1),
        ("501 and 505", "505", "", 1.0),
        ("more than 5 minutes later", "500", "", 301.0),
    ] {
        expect(name, "", &again(first, between, wait));
    }
    let shows_it = "1.2+0.01 1 GET /v1/pets 200 lists=7";
    for (name, first, between, wait) in [
        (
            "lost, again after 0.3 s with members in another order",
            "-",
            "",
            0.3,
        ),
        ("504, again after 60 s", "504", "", 60.0),
        ("at once, on the same connection", "500", "", 0.001),
        (
            "lost, list answered 503",
            "- added=7",
            "1.2+0.01 1 GET /v1/pets 503",
            1.0,
        ),
        ("the list held the very pet", "500 added=7", shows_it, 1.0),
        ("503 although it was added", "503 added=7", "", 1.0),
        (
            "list asked for before the answer to the POST",
            "500",
            "1.005+0.1 2 GET /v1/pets 200 lists=1",
            1.0,
        ),
        (
            "list answered after the repeat",
            "500",
            "1.2+9 2 GET /v1/pets 200 lists=1",
            1.0,
        ),
    ] {
        expect(name, "repeated-post", &again(first, between, wait));
    }
    // These two say that the request was not processed.
    for status in [501, 505] {
        expect("not processed", "", &again(&status.to_string(), "", 1.0));
    }
    for status in [500, 502, 504, 506, 507, 511, 599] {
        expect(
            "unknown",
            "repeated-post",
            &again(&status.to_string(), "", 1.0),
        );
    }
    for (between, said) in [
        (shows_it, "although GET /pets had listed the pet (#2)"),
        ("", "without checking GET /pets first"),
    ] {
        let lines = again("500 added=7", between, 1.0);
        let report = judge(lines.iter().map(String::as_str)).to_string();
        assert!(report.contains(said), "{report}");
    }
    let workers = |n: u32| {
        let status = if n < 3 { "500" } else { "201" };
        format!(
            "{:.4}+0.001 {n} POST /v1/pets {status} {rex}",
            1.0 + f64::from(n) * 0.000_4
        )
    };
    expect("8 workers that add Rex at once", "", &each(8, workers));
    expect(
        "two scopes",
        "",
        &lines(&format!(
            "1+0.01 1 POST /v1/pets 500 scope=one {rex}\n2+0.01 1 POST /v1/pets 201 scope=two {rex}"
        )),
    );
    expect(
        "another name",
        "",
        &lines(&format!(
            "1+0.01 1 POST /v1/pets 500 {rex}\n2+0.01 1 POST /v1/pets 201 body={{\"name\":\"Tom\"}}"
        )),
    );
}

/// The workers of a pool may add the same pet one by one on one connection, before a second one is
/// opened.
#[test]
fn a_repeated_post_of_the_first_moments_is_doubtful() {
    let rule = "repeated-post";
    let add = |at: f64, connection: u32, status: &str| {
        format!(r#"{at:.4}+0.0003 {connection} POST /v1/pets {status} body={{"name":"Rex"}}"#)
    };
    let twice_then = |then: &str| {
        let mut all = vec![add(1.0, 1, "500"), add(1.002, 1, "201 added=7")];
        all.extend(lines(then));
        // The first connection stays open until then.
        all.push("400+0.001 1 GET /v1/store/orders 200".to_owned());
        all
    };
    let list = |at: f64| format!("{at}+0.001 2 GET /v1/pets 200");
    expect(
        "a second connection soon after",
        "",
        &twice_then(&add(1.01, 2, "201 added=8")),
    );
    expect("another request on it", "", &twice_then(&list(1.09)));
    expect("no more requests", rule, &twice_then(""));
    expect(
        "more on the same connection",
        rule,
        &twice_then("1.05+0.001 1 GET /v1/pets 200"),
    );
    expect(
        "a second connection 0.1 s later",
        rule,
        &twice_then(&list(1.1004)),
    );
    expect(
        "a boundary before the second connection",
        rule,
        &twice_then(&format!("! 1.05\n{}", list(1.06))),
    );
    let by_its_worker = format!(
        "{}\n{}",
        add(1.01, 2, "201 added=8"),
        add(1.5, 1, "201 added=9")
    );
    expect(
        "let go, and repeated later",
        rule,
        &twice_then(&by_its_worker),
    );
    // The oldest of too many is not forgotten without a verdict.
    let mut many = vec![add(1.0, 1, "500"), add(1.0004, 1, "201 added=7")];
    many.extend(each(64, |n| {
        let at = 1.001 + f64::from(n) * 0.001;
        format!("{at:.4}+0.0003 1 POST /v1/pets 500 body={{\"name\":\"p{n}\"}}")
    }));
    many.push(list(1.09));
    expect("forgotten before the second connection", rule, &many);
}

#[test]
fn repeated_error() {
    let every = |status: &'static str, wait: f64, count: u32| {
        each(count, move |n| {
            format!("{}+0.003 1 GET /v1/pets {status}", f64::from(n) * wait)
        })
    };
    expect(
        "401 eight times",
        "repeated-error",
        &every("401 unknown-key=1", 0.2, 8),
    );
    expect(
        "400 with pauses that grow",
        "repeated-error",
        &lines(
            "0+0.003 1 POST /v1/pets 400 body={}
         0.5+0.003 1 POST /v1/pets 400 body={}
         1.5+0.003 1 POST /v1/pets 400 body={}
         3.5+0.003 1 POST /v1/pets 400 body={}
         7.5+0.003 1 POST /v1/pets 400 body={}",
        ),
    );
    expect("four times", "", &every("400", 0.2, 4));
    expect("404: it may come to be", "", &every("404", 0.2, 20));
    expect("more than 30 s apart", "", &every("400", 31.0, 8));
    expect(
        "another request between",
        "",
        &each(12, |n| match n % 4 {
            3 => format!("{n}+0.003 1 GET /v1/store/orders 200"),
            _ => format!("{n}+0.003 1 GET /v1/pets 400"),
        }),
    );
    expect(
        "changed credentials",
        "",
        &each(8, |n| {
            format!("{n}+0.003 1 GET /v1/pets 401 unknown-key={}", n / 4)
        }),
    );
}

#[test]
fn keys_and_notices() {
    expect(
        "a key in the query",
        "key-in-url",
        &lines("1+0.01 1 GET /v1/pets?k=x 200 key-in=k"),
    );
    expect(
        "a key as Basic",
        "key-scheme",
        &lines("1+0.01 1 GET /v1/pets 401 other-scheme"),
    );
    expect(
        "a valid key beside a bearer token",
        "",
        &lines("1+0.01 1 GET /v1/pets 200 other-scheme"),
    );
    expect(
        "refused although it knew",
        "quota-ignored",
        &lines(
            "1+0.01 1 GET /v1/pets 200 remaining=0 reset=60
         2+0.01 1 GET /v1/pets 429 wait=58 remaining=0 reset=60",
        ),
    );
    expect(
        "six refused at once",
        "quota-ignored",
        &each(6, |n| {
            format!("1.00{n}+0.05 {n}<0.001 GET /v1/pets?n={n} 429 wait=58 remaining=0 reset=60")
        }),
    );
    expect(
        "five refused at once",
        "",
        &each(5, |n| {
            format!("1.00{n}+0.05 {n}<0.001 GET /v1/pets?n={n} 429 wait=58 remaining=0 reset=60")
        }),
    );
    expect(
        "the deprecated operation",
        "deprecated",
        &lines("1+0.01 1 GET /v1/pets/1 200"),
    );
    let new = |n: u32| format!("{n}+0.01 {n}<0.001 GET /v1/pets 200");
    expect("ten connections in a row", "keep-alive", &each(10, new));
    expect("nine connections in a row", "", &each(9, new));
    let processes = |n: u32| format!("{n}+0.01 {n}<0.001 GET /v1/pets 200\nx 100 {n}");
    let text = each(10, processes).join("\n");
    let report = judge(text.lines());
    assert_eq!(report.findings().count(), 0, "ten processes: {report}");
}
