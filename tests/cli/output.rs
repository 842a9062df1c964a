//! Tests of `--jq`, colour, narrow tables and standard error.

use insta::assert_snapshot;
use petstore_mock::{Clock, MockServer, Plan, Seed, SeedPet};
use serde_json::{Value, json};

use super::harness::{Petstore, noon, serve};

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
    for (jq, options, expected) in [
        ("length", "", "25\n"),
        (".[:2] | map(.name)", "-o ndjson", "\"Bramble\"\n\"Miso\"\n"),
        (".[:2][].name", "", "Bramble\nMiso\n"),
        (".[0] | del(.id)", "", BRAMBLE),
        (".[:2][] | [.id, .name] | @tsv", "", "1\tBramble\n2\tMiso\n"),
        (
            ".[:2][] | [.id, .name] | @csv",
            "",
            "1,\"Bramble\"\n2,\"Miso\"\n",
        ),
        (".[:2][] | [.id, .name]", "-o tsv", "1\tBramble\n2\tMiso\n"),
        ("pick(.[0].id)", "", "[{\"id\":1}]\n"),
        ("env.TZ, $ENV.TZ", "", "UTC\nUTC\n"),
        (".[] | select(.id == 99)", "", ""),
        (
            "[.[0]]",
            "--fields id,name",
            "[{\"id\":1,\"name\":\"Bramble\"}]\n",
        ),
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
        (".[] as", " at character "),
        ("\"a", " at character "),
        ("import \"a\" as a; .", " at character "),
    ] {
        let petstore = Petstore::at(&server, "k");
        let ran = petstore.run_words(&["pets", "list", "--jq", jq]).await;
        assert!(ran.stderr.starts_with("error: `--jq`: "), "{}", ran.stderr);
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
        for (name, value) in vars
            .split_whitespace()
            .filter_map(|var| var.split_once('='))
        {
            petstore = petstore.var(name, value);
        }
        let ran = petstore
            .run(&format!("--mock pets list -o json {flags}"))
            .await;
        assert_eq!(
            ran.stdout.contains("\u{1b}["),
            colored,
            "{terminal} {vars} {flags}"
        );
    }
}

#[tokio::test]
async fn mistakes_in_typing_obey_the_colour_and_the_error_format() {
    let ran = Petstore::bare().run("--color=always pets lst").await;
    ran.says("\u{1b}[");
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
    let builder = MockServer::builder().key("k", Plan::enterprise(1, 9));
    let builder = builder.clock(Clock::frozen(noon()));
    let server = builder.start().await.unwrap();
    let run = async |line: &str| -> Vec<Value> {
        let line = format!("{line} --error-format json");
        let ran = Petstore::at(&server, "k").run(&line).await;
        let lines = ran.stderr.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let traced = run("--mock pets list -vvv").await;
    assert!(
        traced.iter().any(|line| line["level"] == "trace"),
        "{traced:?}"
    );
    for line in ["--mock api /nope -i", "--mock pets"] {
        assert!(!run(line).await.is_empty(), "{line}");
    }
    assert_eq!(run("pets list").await[0]["level"], "note");
    let refused = run("pets get 1 --max-wait 0").await;
    let error = refused.last().unwrap();
    let shown = ["exit", "kind", "quota"].map(|field| error[field].clone());
    assert_eq!(shown, [json!(7), json!("rate_limited"), json!("minute")]);
    assert!(error["retryAt"].as_str().unwrap().ends_with('Z'), "{error}");
    // A wait ends a second after the reset.
    assert!(
        error["retryAfterSeconds"].as_u64().unwrap() <= 61,
        "{error}"
    );
}

#[tokio::test]
async fn verbose_shows_headers_and_bodies_and_never_the_key() {
    let server = serve("sentinel-key", Plan::Free).await;
    for (line, attempt, sent) in [
        (
            "pets create sentinel-key --category-id 7",
            "POST /v1/pets  201 in ",
            "> content-type: ",
        ),
        ("api /pets?status=sentinel-key", "GET /v1/pets", "> GET "),
    ] {
        for (flag, head, body) in [
            ("-v", false, false),
            ("-vv", true, false),
            ("-vvv", true, true),
        ] {
            let petstore = Petstore::at(&server, "sentinel-key");
            let ran = petstore.run(&format!("{line} {flag}")).await;
            ran.says(attempt);
            let shown = ["\n< x-ratelimit-limit: 60\n", sent, "\n< {", "sentinel-key"]
                .map(|part| ran.stderr.contains(part));
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
    let seed = names.iter().fold(Seed::new(), pets);
    let builder = MockServer::builder().key("k", Plan::Free).seed(seed);
    let server = builder.start().await.unwrap();
    let harmless = |shown: &str| {
        let acts = |c: char| c.is_control() && !"\n\t".contains(c);
        let hides = ['\u{202e}', '\u{200b}', '\u{feff}', '\u{e0041}'];
        assert!(!shown.contains(acts) && !shown.contains(hides), "{shown:?}");
    };
    for line in ["pets list -o json", "api /pets", "pets list -o ndjson"] {
        let text = Petstore::at(&server, "k").run(line).await.stdout;
        harmless(&text);
        let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let values = values.map(Result::unwrap).flat_map(|value| match value {
            Value::Array(pets) => pets,
            pet => vec![pet],
        });
        let read: Vec<_> = values
            .map(|pet| pet["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(read, names, "{line}");
    }
    let text = Petstore::at(&server, "k")
        .run("pets list -o csv")
        .await
        .stdout;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let read: Vec<_> = reader
        .records()
        .map(|row| row.unwrap()[1].to_owned())
        .collect();
    assert_eq!(read, names);
    let terminal = Petstore::at(&server, "k").terminal();
    harmless(&terminal.run("pets list -o csv").await.stdout);
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
        ran.printed("id,name,categoryId,status\n1,Rex,7,\n2,Tom,7,\n");
    }
}
