//! Tests of `--jq`, colour, narrow tables and standard error.

use insta::assert_snapshot;
use petstore_mock::{MockServer, Plan, Seed, SeedPet};
use serde_json::{Value, json};

use super::harness::Petstore;

#[tokio::test]
async fn reaches_nested_fields_of_what_is_not_described() {
    let order =
        json!({ "id": 5, "owner": { "name": "Ada", "age": 36 }, "lines": [{ "petId": 1 }] });
    let server = MockServer::builder()
        .key("k", Plan::Free)
        .seed(Seed::new().order(order))
        .start()
        .await
        .unwrap();
    let run = async |line: &str| Petstore::at(&server, "k").run(line).await.stdout;
    assert_eq!(
        run("store orders --fields owner.name,lines.0.petId").await,
        "Ada\t1\n"
    );
    let nested = run("store orders --fields owner.name -o ndjson").await;
    assert_eq!(nested, "{\"owner\":{\"name\":\"Ada\"}}\n");
}

const BRAMBLE: &str = "{\"name\":\"Bramble\",\"categoryId\":1,\"status\":\"available\"}\n";

#[tokio::test]
async fn runs_a_jq_expression_over_the_whole_result() {
    let run = async |jq: &str, rest: &[&str]| {
        let words = ["--mock", "pets", "list", "--all", "--jq", jq];
        let ran = Petstore::bare().run_words(&[&words, rest].concat()).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    assert_eq!(run("length", &[]).await, "25\n");
    assert_eq!(
        run(".[:2] | map(.name)", &["-o", "ndjson"]).await,
        "\"Bramble\"\n\"Miso\"\n"
    );
    assert_eq!(run(".[:2][].name", &[]).await, "Bramble\nMiso\n");
    assert_eq!(run(".[0] | del(.id)", &[]).await, BRAMBLE);
    assert_eq!(
        run(".[:2][] | [.id, .name] | @tsv", &[]).await,
        "1\tBramble\n2\tMiso\n"
    );
    assert_eq!(
        run(".[:2][] | [.id, .name] | @csv", &[]).await,
        "1,\"Bramble\"\n2,\"Miso\"\n"
    );
    assert_eq!(run("pick(.[0].id)", &[]).await, "[{\"id\":1}]\n");
    assert_eq!(run("env.TZ, $ENV.TZ", &[]).await, "UTC\nUTC\n");
    assert_eq!(run("", &[]).await.lines().count(), 1);
    assert_eq!(
        run(".[:2][] | [.id, .name]", &["-o", "tsv"]).await,
        "1\tBramble\n2\tMiso\n"
    );
    assert_eq!(run(".[] | select(.id == 99)", &[]).await, "");
    assert_snapshot!(run("[.[0]]", &["--fields", "id,name"]).await, @r#"[{"id":1,"name":"Bramble"}]"#);
}

#[tokio::test]
async fn a_bad_jq_expression_is_refused_before_anything_is_sent() {
    let server = MockServer::builder()
        .key("k", Plan::enterprise(1, 9))
        .start()
        .await
        .unwrap();
    for jq in [
        ".[",
        ".a | nope",
        ". +",
        "$x",
        ".[] as",
        "\"a",
        "import \"a\" as a; .",
    ] {
        let ran = Petstore::at(&server, "k")
            .run_words(&["pets", "list", "--jq", jq])
            .await;
        assert!(
            ran.stderr.starts_with("error: `--jq`: "),
            "{jq}: {}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains(" at character "),
            "{jq}: {}",
            ran.stderr
        );
        assert_eq!((ran.stdout.as_str(), ran.code), ("", 2), "{jq}");
    }
    for (jq, problem) in [
        (".a | nope", "there is no filter `nope`, at character 6"),
        ("map(.[0] | {a: 1)", "`{` is never closed, at character 12"),
    ] {
        let ran = Petstore::at(&server, "k")
            .run_words(&["pets", "list", "--jq", jq])
            .await;
        assert_eq!(
            ran.stderr.lines().next(),
            Some(&*format!("error: `--jq`: {problem}"))
        );
    }
    // The only request of this minute is still available.
    assert_eq!(
        Petstore::at(&server, "k")
            .run("pets list --max-wait 0")
            .await
            .code,
        0
    );
}

#[tokio::test]
async fn a_jq_expression_that_fails_leaves_no_half_document() {
    let line = ["--mock", "pets", "list", "--jq", ".[].id, error(\"no\")"];
    let ran = Petstore::bare().run_words(&line).await;
    assert_snapshot!(ran.transcript(), @r#"
    --- stderr
    error: `--jq`: no
    hint: `-o json` without `--jq` shows the data
    --- exit 2
    "#);
}

#[tokio::test]
async fn a_table_fits_the_terminal_and_cuts_no_identifier() {
    let seed = Seed::new()
        .pet(SeedPet::new("a very long name that goes on", i64::MAX))
        .pet(SeedPet::new("犬犬犬犬犬犬犬犬犬犬犬犬", 2));
    let server = MockServer::builder()
        .key("k", Plan::Free)
        .seed(seed)
        .start()
        .await
        .unwrap();
    let terminal = || Petstore::at(&server, "k").terminal();
    let ran = terminal().width(48).run("pets list --color never").await;
    assert_snapshot!(ran.stdout, @"
    ID  NAME             CATEGORY ID          STATUS
    1   a very long na…  9223372036854775807  –
    2   犬犬犬犬犬犬犬…  2                    –
    ");
    let piped = Petstore::at(&server, "k")
        .width(48)
        .run("pets list -o table")
        .await;
    assert!(
        piped.stdout.contains("goes on  9223372036854775807"),
        "{}",
        piped.stdout
    );
}

#[tokio::test]
async fn colour_follows_the_flag_then_the_variables_then_the_terminal() {
    let colored = async |terminal: bool, vars: &[(&str, &str)], flags: &str| {
        let mut petstore = Petstore::bare();
        if terminal {
            petstore = petstore.terminal();
        }
        for (name, value) in vars {
            petstore = petstore.var(name, value);
        }
        let ran = petstore
            .run(&format!("--mock pets list -o json {flags}"))
            .await;
        ran.stdout.contains("\u{1b}[")
    };
    assert!(colored(true, &[], "").await);
    assert!(!colored(false, &[], "").await);
    assert!(!colored(true, &[("NO_COLOR", "1")], "").await);
    assert!(colored(true, &[("NO_COLOR", "")], "").await);
    assert!(!colored(true, &[("TERM", "dumb")], "").await);
    assert!(colored(false, &[("CLICOLOR_FORCE", "1")], "").await);
    assert!(!colored(false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], "").await);
    assert!(colored(false, &[("NO_COLOR", "1")], "--color always").await);
    assert!(!colored(true, &[("CLICOLOR_FORCE", "1")], "--color never").await);
}

#[tokio::test]
async fn mistakes_in_typing_obey_the_colour_and_the_error_format() {
    let ran = Petstore::bare().run("--color=always pets lst").await;
    assert!(ran.stderr.contains("\u{1b}["), "{}", ran.stderr);
    let ran = Petstore::bare().run("pets lst --error-format json").await;
    let error: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(error["message"], "no command `lst`");
    assert_eq!(
        (error["exit"].as_u64(), error["kind"].as_str()),
        (Some(2), Some("usage"))
    );
    assert_eq!(error["hint"], "did you mean `list`?");
    let ran = Petstore::bare()
        .var("PETSTORE_ERROR_FORMAT", "xml")
        .run("pets list")
        .await;
    assert_eq!(
        ran.stderr,
        "error: PETSTORE_ERROR_FORMAT `xml` is not text or json\n"
    );
    assert_eq!(ran.code, 3);
    // An invalid variable does not hide another one.
    let json = Petstore::bare()
        .var("PETSTORE_ERROR_FORMAT", "json")
        .var("PETSTORE_COLOR", "red");
    let ran = json.run("pets list").await;
    assert!(
        ran.stderr.starts_with(r#"{"level":"error","exit":3,"#),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn errors_and_notes_are_objects_for_programs() {
    let server = MockServer::builder()
        .key("k", Plan::enterprise(1, 9))
        .start()
        .await
        .unwrap();
    let json = || Petstore::at(&server, "k");
    let traced = Petstore::bare()
        .run("--mock pets list -vvv --error-format json")
        .await;
    let lines: Vec<Value> = traced
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        lines.iter().any(|line| line["level"] == "trace"),
        "{lines:?}"
    );
    let refused = Petstore::bare()
        .run("--mock api /nope -i --error-format json")
        .await;
    assert!(
        refused.stderr.lines().all(|line| line.starts_with('{')),
        "{}",
        refused.stderr
    );
    let incomplete = Petstore::bare()
        .run("--mock pets --error-format json")
        .await;
    assert!(
        incomplete.stderr.lines().all(|line| line.starts_with('{')),
        "{}",
        incomplete.stderr
    );
    let noted = json().run("pets list --error-format json").await;
    let note: Value = serde_json::from_str(&noted.stderr).unwrap();
    assert_eq!(note["level"], "note");
    let refused = json()
        .run("pets get 1 --max-wait 0 --error-format json")
        .await;
    let error: Value = serde_json::from_str(refused.stderr.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&error["exit"], &error["kind"]),
        (&json!(7), &json!("rate_limited"))
    );
    assert_eq!(error["quota"], "minute");
    assert!(error["retryAt"].as_str().unwrap().ends_with('Z'), "{error}");
    assert!(
        error["retryAfterSeconds"].as_u64().unwrap() <= 60,
        "{error}"
    );
}

#[tokio::test]
async fn verbose_shows_headers_and_bodies_and_never_the_key() {
    let server = MockServer::builder()
        .key("sentinel-key", Plan::Free)
        .start()
        .await
        .unwrap();
    for (flag, head, body) in [
        ("-v", false, false),
        ("-vv", true, false),
        ("-vvv", true, true),
    ] {
        for line in [
            "pets create sentinel-key --category-id 7",
            "api /pets?status=sentinel-key",
        ] {
            let line = format!("{line} {flag}");
            let ran = Petstore::at(&server, "sentinel-key").run(&line).await;
            assert_eq!(
                ran.stderr.contains("\n< x-ratelimit-limit: 60\n"),
                head,
                "{}",
                ran.stderr
            );
            let sent = if line.starts_with("api") {
                "> GET "
            } else {
                "> content-type: "
            };
            assert_eq!(ran.stderr.contains(sent), head, "{}", ran.stderr);
            assert_eq!(ran.stderr.contains("\n< {"), body, "{}", ran.stderr);
            let attempt = if line.starts_with("api") {
                "GET /v1/pets"
            } else {
                "POST /v1/pets  201 in "
            };
            assert!(ran.stderr.contains(attempt), "{}", ran.stderr);
            assert!(!ran.stderr.contains("sentinel-key"), "{}", ran.stderr);
        }
    }
}

#[tokio::test]
async fn output_is_harmless_at_a_terminal_and_reads_back() {
    let names = [
        "a\u{1b}[2J\u{9b}\u{7f}",
        "\u{1b}]0;owned\u{7}\u{202e}x\u{200b}\u{feff}\u{e0041}",
        "a,\"b\"\r\nc\t\\",
        " no ",
        "犬🐕",
        "=",
    ];
    let seed = names
        .iter()
        .fold(Seed::new(), |seed, name| seed.pet(SeedPet::new(*name, 1)));
    let server = MockServer::builder()
        .key("k", Plan::Free)
        .seed(seed)
        .start()
        .await
        .unwrap();
    let run = async |line: &str| Petstore::at(&server, "k").run(line).await.stdout;
    let harmless = |shown: &str| {
        assert!(
            !shown.contains(|c: char| c.is_control() && !"\n\t".contains(c)),
            "{shown:?}"
        );
        assert!(
            !shown.contains(['\u{202e}', '\u{200b}', '\u{feff}', '\u{e0041}']),
            "{shown:?}"
        );
    };
    let of = |pets: &[Value]| {
        pets.iter()
            .map(|pet| pet["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    for line in ["pets list -o json", "api /pets", "pets list -o ndjson"] {
        let text = run(line).await;
        harmless(&text);
        let pets: Vec<Value> = match line.ends_with("ndjson") {
            true => text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
            false => serde_json::from_str(&text).unwrap(),
        };
        assert_eq!(of(&pets), names, "{line}");
    }
    let text = run("pets list -o csv").await;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let read: Vec<_> = reader
        .records()
        .map(|row| row.unwrap()[1].to_owned())
        .collect();
    assert_eq!(read, names);
    harmless(
        &Petstore::at(&server, "k")
            .terminal()
            .run("pets list -o csv")
            .await
            .stdout,
    );
}

#[tokio::test]
async fn whole_numbers_of_a_jq_expression_have_no_point() {
    let run = async |jq: &str| {
        Petstore::bare()
            .run_words(&["--mock", "pets", "list", "--jq", jq])
            .await
            .stdout
    };
    assert_eq!(
        run("6 / 2, 3 * 1e2, [10 / 4, -6 / 2], {a: (length / 5)}").await,
        "3\n300\n[2.5,-3]\n{\"a\":4}\n"
    );
}

#[tokio::test]
async fn a_status_that_is_null_or_unknown_is_shown() {
    let pets = r#"[{"id":1,"name":"Rex","categoryId":7,"status":null},
        {"id":2,"name":"Tom","categoryId":7,"status":"adopted"}]"#;
    let server = crate::client::Wire::reading(move |_| crate::client::answer(200, &[], pets));
    for command in ["pets list -o ndjson", "pets export"] {
        let ran = Petstore::with(&server.base(), "k").run(command).await;
        assert_eq!(
            ran.stdout,
            "{\"id\":1,\"name\":\"Rex\",\"categoryId\":7,\"status\":null}\n\
             {\"id\":2,\"name\":\"Tom\",\"categoryId\":7,\"status\":\"adopted\"}\n",
            "{command}"
        );
    }
}

#[tokio::test]
async fn a_field_that_is_late_for_the_columns_is_named() {
    let next = ("link", "</v1/pets?limit=1&after=1>; rel=\"next\"");
    let server = crate::client::Wire::reading(move |request| {
        if request.line.contains("after") {
            let pets = r#"[{"id":2,"name":"Tom","categoryId":7,"colour":"red"}]"#;
            return crate::client::answer(200, &[], pets);
        }
        let pets = r#"[{"id":1,"name":"Rex","categoryId":7}]"#;
        crate::client::answer(200, &[next], pets)
    });
    for (quiet, word) in [("", "note"), ("-q ", "warning")] {
        let line = format!("{quiet}pets list --all -o csv");
        let ran = Petstore::with(&server.base(), "k").run(&line).await;
        let text = "field `colour` appeared after the first page; `-o ndjson` shows it";
        assert_eq!(ran.stderr, format!("{word}: {text}\n"), "{line}");
        assert_eq!(
            (ran.stdout.as_str(), ran.code),
            ("id,name,categoryId,status\n1,Rex,7,\n2,Tom,7,\n", 0)
        );
    }
}
