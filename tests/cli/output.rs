//! Tests of `--jq`, colour, narrow tables, messages, and text that could harm a terminal.

use insta::assert_snapshot;
use petstore_mock::{Plan, Seed, SeedPet};
use serde_json::{Value, json};

use super::harness::{Petstore, serve, stocked};
use crate::client::{Wire, answer};

#[tokio::test]
async fn runs_a_jq_expression_over_the_whole_result() {
    for (jq, options, expected) in [
        ("length", "", "25\n"),
        (".[:2] | map(.name)", "-o ndjson", "\"Bramble\"\n\"Miso\"\n"),
        (".[:2][].name", "", "Bramble\nMiso\n"),
        (".[:2][] | [.id, .name] | @tsv", "", "1\tBramble\n2\tMiso\n"),
        (".[0] | [.id, .name] | @csv", "", "1,\"Bramble\"\n"),
        (".[:2][] | [.id, .name]", "-o tsv", "1\tBramble\n2\tMiso\n"),
        ("pick(.[0].id)", "", "[{\"id\":1}]\n"),
        ("env.TZ, $ENV.TZ", "", "UTC\nUTC\n"),
        (".[] | select(.id == 99)", "", ""),
        ("[.[0]]", "--fields id", "[{\"id\":1}]\n"),
        // A whole number has no point.
        ("6 / 2, 3 * 1e2, [10 / 4, -6 / 2]", "", "3\n300\n[2.5,-3]\n"),
    ] {
        let mut words = vec!["--mock", "pets", "list", "--all", "--jq", jq];
        words.extend(options.split_whitespace());
        Petstore::bare().run_words(&words).await.printed(expected);
    }
}

#[tokio::test]
async fn a_bad_jq_expression_is_refused_before_anything_is_sent() {
    let server = serve("k", Plan::Free).await;
    for (jq, problem) in [
        (".a | nope", "there is no filter `nope`, at character 6"),
        ("map(.[0] | {a: 1)", "`{` is never closed, at character 12"),
        (".[", " at character "),
        (". +", " at character "),
        ("$x", " at character "),
        ("\"a", " at character "),
        ("import \"a\" as a; .", " at character "),
    ] {
        let petstore = Petstore::at(&server, "k");
        let ran = petstore.run_words(&["pets", "list", "--jq", jq]).await;
        ran.says("error: `--jq`: ");
        ran.says(problem);
        assert_eq!((&*ran.stdout, ran.code), ("", 2), "{jq}");
    }
    assert_eq!(server.requests(..).len(), 0);
}

#[tokio::test]
async fn a_jq_expression_that_fails_leaves_no_half_document() {
    let line = ["--mock", "pets", "list", "--jq", ".[].id, error(\"no\")"];
    let ran = Petstore::bare().run_words(&line).await;
    let said = "error: `--jq`: no\n\
                hint: `-o json` without `--jq` shows the data\n";
    ran.said(said, 2);
}

#[tokio::test]
async fn a_table_fits_the_terminal_and_cuts_no_identifier() {
    let seed = Seed::none()
        .pet(SeedPet::new("a very long name that goes on", i64::MAX))
        .pet(SeedPet::new("犬犬犬犬犬犬犬犬犬犬犬犬", 2));
    let server = stocked(seed).await;
    let at_40 = || Petstore::at(&server, "k").width(40);
    let line = "pets list --fields id,name,categoryId --color never";
    let ran = at_40().terminal().run(line).await;
    assert_snapshot!(ran.stdout, @"
    ID  NAME             CATEGORY ID
    1   a very long na…  9223372036854775807
    2   犬犬犬犬犬犬犬…  2
    ");
    let piped = at_40().run("pets list -o table").await;
    piped.shows("goes on  9223372036854775807");
}

#[tokio::test]
async fn colour_follows_the_flag_then_the_variables_then_the_terminal() {
    for (terminal, vars, flags, colored) in [
        (true, "", "", true),
        (false, "", "", false),
        (true, "NO_COLOR=1", "", false),
        (true, "NO_COLOR=", "", true),
        (true, "TERM=dumb", "", false),
        (false, "CLICOLOR_FORCE=1", "", true),
        (false, "CLICOLOR_FORCE=1 NO_COLOR=1", "", false),
        (false, "NO_COLOR=1", "--color always", true),
        (true, "CLICOLOR_FORCE=1", "--color never", false),
    ] {
        let mut petstore = Petstore::bare();
        if terminal {
            petstore = petstore.terminal();
        }
        for var in vars.split_whitespace() {
            let (name, value) = var.split_once('=').unwrap();
            petstore = petstore.var(name, value);
        }
        let line = format!("--mock pets list -o json {flags}");
        let is_colored = petstore.run(&line).await.stdout.contains("\u{1b}[");
        assert_eq!(is_colored, colored, "{terminal} {vars} {flags}");
    }
}

#[tokio::test]
async fn mistakes_in_typing_obey_the_colour_and_the_error_format() {
    let ran = Petstore::bare().run("--color=always pets lst").await;
    ran.says("\u{1b}[");
    let ran = Petstore::bare().run("pets lst --error-format json").await;
    let error: Value = serde_json::from_str(&ran.stderr).unwrap();
    let shown = ["exit", "kind", "message", "hint"].map(|field| error[field].clone());
    let hint = json!("did you mean `list`?");
    let message = json!("unrecognized subcommand 'lst'");
    assert_eq!(shown, [json!(2), json!("usage"), message, hint]);
    let xml = Petstore::bare().var("PETSTORE_ERROR_FORMAT", "xml");
    let ran = xml.run("pets list").await;
    ran.says("PETSTORE_ERROR_FORMAT: invalid value `xml`: give one of text, json\n");
    ran.ended(3);
    // An invalid variable does not hide another one.
    let json = Petstore::bare().var("PETSTORE_ERROR_FORMAT", "json");
    let ran = json.var("PETSTORE_COLOR", "red").run("pets list").await;
    ran.says(r#"{"level":"error","exit":3,"#);
}

#[tokio::test]
async fn errors_and_notes_are_objects_for_programs() {
    let server = serve("k", Plan::enterprise(1, 9)).await;
    let run = async |line: &str| -> Vec<Value> {
        let line = format!("{line} --error-format json");
        let ran = Petstore::at(&server, "k").run(&line).await;
        let lines = ran.stderr.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let traced = run("--mock pets list -vvv").await;
    let is_trace = |line: &Value| line["level"] == "trace";
    assert!(traced.iter().any(is_trace), "{traced:?}");
    for line in ["--mock api /nope -i", "--mock pets"] {
        assert!(!run(line).await.is_empty(), "{line}");
    }
    assert_eq!(run("pets list").await[0]["level"], "note");
    let refused = run("pets get 1 --max-wait 0").await;
    let error = refused.last().unwrap();
    let shown = ["exit", "kind", "quota"].map(|field| error[field].clone());
    assert_eq!(shown, [json!(7), json!("rate_limited"), json!("minute")]);
    // A wait ends a second after the reset.
    assert_eq!(error["retryAt"], "2026-11-21T10:01:01Z");
    assert!(error["retryAfterSeconds"].as_u64() <= Some(61), "{error}");
}

#[tokio::test]
async fn verbose_shows_headers_and_bodies_and_never_the_key() {
    let server = serve("sentinel-key", Plan::Free).await;
    let create = "pets create sentinel-key --category-id 7";
    let list = "api /pets?status=sentinel-key";
    for (line, attempt, sent) in [
        (create, "POST /v1/pets  201 in ", "> content-type: "),
        (list, "GET /v1/pets", "> GET "),
    ] {
        for (flag, head, body) in [
            ("-v", false, false),
            ("-vv", true, false),
            ("-vvv", true, true),
        ] {
            let petstore = Petstore::at(&server, "sentinel-key");
            let ran = petstore.run(&format!("{line} {flag}")).await;
            ran.says(attempt);
            let parts = ["\n< x-ratelimit-limit: 60\n", sent, "\n< {", "sentinel-key"];
            let shown = parts.map(|part| ran.stderr.contains(part));
            assert_eq!(shown, [head, head, body, false], "{}", ran.stderr);
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
    let pets = |seed: Seed, name: &&str| seed.pet(SeedPet::new(*name, 1));
    let server = stocked(names.iter().fold(Seed::none(), pets)).await;
    let run = async |line: &str| {
        let ran = Petstore::at(&server, "k")
            .run(&format!("{line} -vvv"))
            .await;
        harmless(&ran.stderr);
        ran.stdout
    };
    for line in ["pets list -o json", "api /pets", "pets list -o ndjson"] {
        let text = run(line).await;
        harmless(&text);
        let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let values = values.map(Result::unwrap).flat_map(|value| match value {
            Value::Array(pets) => pets,
            pet => vec![pet],
        });
        let read: Vec<_> = values.map(|pet| pet["name"].clone()).collect();
        assert_eq!(read, names, "{line}");
    }
    // A file gets the bytes, and a terminal none that act.
    let line = "pets list -o csv --fields name";
    let text = run(line).await;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader.records().map(|row| row.unwrap()[0].to_owned());
    assert_eq!(rows.collect::<Vec<_>>(), names);
    let terminal = Petstore::at(&server, "k").terminal();
    harmless(&terminal.run(line).await.stdout);
    for line in ["pets list -o table", "pets list -o tsv", "api /pets -o tsv"] {
        let text = run(line).await;
        harmless(&text);
        let third = text
            .lines()
            .filter(|line| line.contains(r#"a,"b"\r\nc\t\\"#));
        assert_eq!(third.count(), 1, "{line}: {text}");
    }
}

/// Fails if a text has characters that act on a terminal or hide there.
fn harmless(shown: &str) {
    let acts = |c: char| c.is_control() && !"\n\t".contains(c);
    let hides = ['\u{202e}', '\u{200b}', '\u{feff}', '\u{e0041}'];
    assert!(!shown.contains(acts) && !shown.contains(hides), "{shown:?}");
}

#[tokio::test]
async fn a_field_that_is_late_for_the_columns_is_named() {
    let next = ("link", "</v1/pets?limit=1&after=1>; rel=\"next\"");
    let server = Wire::reading(move |request| {
        if request.line.contains("after") {
            let pets = r#"[{"id":2,"name":"Tom","categoryId":7,"colour":"red"}]"#;
            return answer(200, &[], pets);
        }
        let pets = r#"[{"id":1,"name":"Rex","categoryId":7}]"#;
        answer(200, &[next], pets)
    });
    for (quiet, word) in [("", "note"), ("-q ", "warning")] {
        let line = format!("{quiet}pets list --all -o csv");
        let ran = Petstore::with(&server.base(), "k").run(&line).await;
        let text = "field `colour` appeared after the first page; `-o ndjson` shows it";
        ran.said(&format!("{word}: {text}\n"), 0);
        assert_eq!(ran.stdout.lines().count(), 3);
    }
    // A table is written at the end, and JSON has no columns.
    for (format, shown) in [("table", "  COLOUR\n"), ("ndjson", "\"colour\":\"red\"}\n")] {
        let line = format!("pets list --all -o {format}");
        let ran = Petstore::with(&server.base(), "k").run(&line).await;
        ran.said("", 0);
        ran.shows(shown);
    }
}
