//! What is said where something is not configured, or wrongly.

use insta::assert_snapshot;

use super::harness::Petstore;

async fn transcript(petstore: Petstore, line: &str) -> String {
    petstore.run(line).await.transcript()
}

#[tokio::test]
async fn without_a_base_url_says_how_to_set_one() {
    let bare = Petstore::bare().var("PETSTORE_BASE_URL", "");
    assert_snapshot!(transcript(bare, "pets list").await, @"
    --- stderr
    error: no base URL
    hint: `petstore auth login --base-url https://HOST/v1` keeps one
    --- exit 3
    ");
}

#[tokio::test]
async fn without_a_key_says_how_to_set_one() {
    let keyless = Petstore::bare().var("PETSTORE_BASE_URL", "http://127.0.0.1:1/v1");
    assert_snapshot!(transcript(keyless, "pets list").await, @"
    --- stderr
    error: no API key for http://127.0.0.1:PORT (from PETSTORE_BASE_URL)
    hint: `petstore auth login`
    --- exit 3
    ");
}

#[tokio::test]
async fn a_bad_base_url_is_named_with_what_is_wrong() {
    let keyed = || Petstore::bare().var("PETSTORE_API_KEY", "k");
    assert_snapshot!(transcript(keyed(), "--base-url petstore pets list").await, @"
    --- stderr
    error: base URL `petstore` has no https://
    hint: set --base-url to https://petstore
    --- exit 3
    ");
    assert_snapshot!(transcript(keyed(), "--base-url http://petstore.example/v1 limits").await, @"
    --- stderr
    error: http://petstore.example would send the key unencrypted
    hint: use https, or accept the risk with `--allow-insecure-http`
    --- exit 3
    ");
}

#[tokio::test]
async fn a_key_with_a_line_break_is_refused_before_it_is_sent() {
    let broken = Petstore::bare().var("PETSTORE_API_KEY", "sentinel\n");
    let text = transcript(broken, "--base-url http://127.0.0.1:1/v1 pets list").await;
    assert_snapshot!(text, @"
    --- stderr
    error: the API key cannot be used: its character 9 is a space, a line break or outside printable ASCII; trim what was read with the key
    --- exit 3
    ");
}

#[tokio::test]
async fn the_flag_stands_over_the_variable() {
    let elsewhere =
        Petstore::bare().var("PETSTORE_BASE_URL", "not a url").var("PETSTORE_API_KEY", "k");
    let ran = elsewhere.run("--base-url ftp://127.0.0.1/v1 pets list").await;
    assert!(ran.stderr.contains("has no https://"), "{}", ran.stderr);
}

#[tokio::test]
async fn the_mock_needs_no_configuration_and_minds_none() {
    let elsewhere = Petstore::bare().var("PETSTORE_BASE_URL", "http://127.0.0.1:1/v1");
    assert_eq!(elsewhere.run("pets list --mock").await.code, 0);
    let both = Petstore::bare().run("--mock --base-url http://127.0.0.1:1/v1 pets list").await;
    assert_eq!(both.code, 2);
}

#[tokio::test]
async fn a_limit_out_of_range_is_refused_with_the_range() {
    assert_snapshot!(transcript(Petstore::bare(), "--mock pets list --limit 101").await, @"
    --- stderr
    error: `--limit 101`: a page has 1 to 100 pets
    hint: `--max 101` lists 101 pets over several pages
    --- exit 2
    ");
}

#[tokio::test]
async fn a_mistyped_word_gets_a_suggestion() {
    assert_snapshot!(transcript(Petstore::bare(), "--mock pets lst").await, @"
    --- stderr
    error: no command `pets lst`
    hint: did you mean `petstore pets list`?
    --- exit 2
    ");
    assert_snapshot!(transcript(Petstore::bare(), "--mock pets get x").await, @"
    --- stderr
    error: `ID x` is not a whole number of 64 bits
    --- exit 2
    ");
}

#[tokio::test]
async fn words_in_the_wrong_place_are_told_their_place() {
    for (words, tip) in [
        (&["list", "pets"][..], "did you mean `petstore pets list`?"),
        (&["--status", "sold", "pets", "list"], "it belongs to `petstore pets list`"),
        (
            &["pets", "create", "Rex", "the", "Dog"],
            "put what belongs together in quotes: `\"Rex the\"`",
        ),
        (&["pets", "list", "--api-key=sentinel"], "there is no option for the key"),
        (&["pets", "create", "Rex", "--category-id", "x"], "a whole number of 64 bits"),
    ] {
        let ran = Petstore::bare().run_words(words).await;
        assert!(ran.stderr.contains(tip), "{words:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("sentinel"), "{}", ran.stderr);
        assert_eq!(ran.code, 2);
    }
    let from = Petstore::bare().var("PETSTORE_API_KEY_FILE", "/");
    let text = transcript(from.var("PETSTORE_BASE_URL", "https://h/v1"), "pets list").await;
    assert!(text.contains("error: cannot read /: it is a folder"), "{text}");
}

#[tokio::test]
#[cfg(unix)]
async fn a_variable_that_is_not_utf_8_is_named() {
    let garbled = Petstore::bare().garbled("PETSTORE_API_KEY");
    let garbled = garbled.var("PETSTORE_BASE_URL", "http://127.0.0.1:1/v1");
    assert_snapshot!(transcript(garbled, "pets list").await, @"
    --- stderr
    error: PETSTORE_API_KEY is not UTF-8
    --- exit 3
    ");
}

#[tokio::test]
async fn numbers_out_of_range_say_what_they_are_to_be() {
    for (line, expected) in [
        ("--mock pets list --limit -1", "is not a whole number"),
        ("--mock pets list --limit many", "is not a whole number"),
        ("--mock --max-wait -1 limits", "is not a time"),
    ] {
        let ran = Petstore::bare().run(line).await;
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
        assert_eq!(ran.code, 2);
    }
}

#[tokio::test]
async fn the_options_of_a_command_fit_a_narrow_terminal() {
    let ran = Petstore::bare().width(60).run("pets import --help").await;
    let (_, options) = ran.stdout.split_once("Options:").unwrap();
    let (options, _) = options.split_once("Also").unwrap();
    assert!(options.lines().all(|line| line.chars().count() <= 60), "{options}");
}
