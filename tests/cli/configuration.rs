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
    error: no base URL is set
    hint: set PETSTORE_BASE_URL, or pass `--base-url https://HOST/v1`
    hint: `petstore config set base_url https://HOST/v1` keeps it
    hint: `petstore --mock …` runs any command without a service
    --- exit 3
    ");
}

#[tokio::test]
async fn without_a_key_says_how_to_set_one() {
    let keyless = Petstore::bare().var("PETSTORE_BASE_URL", "http://127.0.0.1:1/v1");
    assert_snapshot!(transcript(keyless, "pets list").await, @"
    --- stderr
    error: no API key is set
    hint: set PETSTORE_API_KEY; there is no flag, since others can read arguments
    hint: `petstore auth login` keeps one
    hint: `petstore --mock …` runs any command without a key
    --- exit 3
    ");
}

#[tokio::test]
async fn a_bad_base_url_is_named_with_what_is_wrong() {
    let keyed = || Petstore::bare().var("PETSTORE_API_KEY", "k");
    assert_snapshot!(transcript(keyed(), "--base-url petstore pets list").await, @"
    --- stderr
    error: the base URL cannot be used: it does not begin with `https://`
    hint: the base URL is from --base-url, and the key from PETSTORE_API_KEY
    --- exit 3
    ");
    assert_snapshot!(transcript(keyed(), "--base-url http://petstore.example/v1 limits").await, @"
    --- stderr
    error: the base URL cannot be used: it is plain http to another machine, which would show the API key to everyone on the way; use https, or allow it with `allow_insecure_http`
    hint: `--allow-insecure-http` allows it
    hint: the base URL is from --base-url, and the key from PETSTORE_API_KEY
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
    hint: the base URL is from --base-url, and the key from PETSTORE_API_KEY
    --- exit 3
    ");
}

#[tokio::test]
async fn the_flag_stands_over_the_variable() {
    let elsewhere =
        Petstore::bare().var("PETSTORE_BASE_URL", "not a url").var("PETSTORE_API_KEY", "k");
    let ran = elsewhere.run("--base-url ftp://127.0.0.1/v1 pets list").await;
    assert!(ran.stderr.contains("neither http nor https"), "{}", ran.stderr);
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
    error: invalid value '101' for '--limit <N>': a page holds from 1 to 100 pets

    For more information, try '--help'.
    --- exit 2
    ");
}

#[tokio::test]
async fn a_mistyped_word_gets_a_suggestion() {
    assert_snapshot!(transcript(Petstore::bare(), "--mock pets lst").await, @"
    --- stderr
    error: unrecognized subcommand 'lst'

      tip: a similar subcommand exists: 'list'

    Usage: petstore pets [OPTIONS] <COMMAND>

    For more information, try '--help'.
    --- exit 2
    ");
    assert_snapshot!(transcript(Petstore::bare(), "--mock pets get x").await, @"
    --- stderr
    error: invalid value 'x' for '<ID>': an identifier is a whole number of 64 bits

    For more information, try '--help'.
    --- exit 2
    ");
}

#[tokio::test]
async fn words_in_the_wrong_place_are_told_their_place() {
    for (words, tip) in [
        (&["list", "pets"][..], "did you mean `petstore pets list`?"),
        (&["--status", "sold", "pets", "list"], "`--status` belongs to `petstore pets list`"),
        (&["pets", "create", "Rex", "the", "Dog"], "what has spaces in it is one word in quotes"),
        (&["pets", "list", "--api-key=sentinel"], "no flag takes the key"),
        (&["pets", "create", "Rex", "--category-id", "x"], "a whole number of 64 bits"),
    ] {
        let ran = Petstore::bare().run_words(words).await;
        assert!(ran.stderr.contains(tip), "{words:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("sentinel"), "{}", ran.stderr);
        assert_eq!(ran.code, 2);
    }
    let from = Petstore::bare().var("PETSTORE_API_KEY_FILE", "/");
    let text = transcript(from.var("PETSTORE_BASE_URL", "https://h/v1"), "pets list").await;
    assert!(text.contains("hint: PETSTORE_API_KEY_FILE names it"), "{text}");
}

#[tokio::test]
#[cfg(unix)]
async fn a_variable_that_is_not_utf_8_is_named() {
    let garbled = Petstore::bare().garbled("PETSTORE_API_KEY");
    let garbled = garbled.var("PETSTORE_BASE_URL", "http://127.0.0.1:1/v1");
    assert_snapshot!(transcript(garbled, "pets list").await, @"
    --- stderr
    error: what PETSTORE_API_KEY holds is not UTF-8
    hint: set PETSTORE_API_KEY anew
    --- exit 3
    ");
}

#[tokio::test]
async fn numbers_out_of_range_say_what_they_are_to_be() {
    for (line, expected) in [
        ("--mock pets list --limit -1", "a page holds from 1 to 100 pets"),
        ("--mock pets list --limit many", "a page holds from 1 to 100 pets"),
        ("--mock --max-wait -1 limits", "a whole number of seconds"),
    ] {
        let ran = Petstore::bare().run(line).await;
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
        assert_eq!(ran.code, 2);
    }
}

#[tokio::test]
async fn the_help_fits_the_terminal() {
    let ran = Petstore::bare().width(60).run("--help").await;
    // The tables of variables and exit codes are laid out by hand.
    let (laid_out, _) = ran.stdout.split_once("Variables:").unwrap();
    assert!(laid_out.lines().all(|line| line.chars().count() <= 60), "{laid_out}");
}

#[tokio::test]
async fn the_help_goes_to_standard_output() {
    let ran = Petstore::bare().run("--help").await;
    assert_eq!((ran.stderr.as_str(), ran.code), ("", 0));
    assert_snapshot!(ran.stdout, @"
    A command line for the Pet Store service

    Results go to standard output, all else to standard error. Requests that a rate limit refused are
    held back as long as the service asks for, and only then sent again.

    Usage: petstore [OPTIONS] <COMMAND>

    Commands:
      pets         Lists, adds, gets, imports and exports pets
      store        Looks into the store
      api          Sends any request, for what has no command of its own
      limits       Shows what is left of the rate limits
      auth         Keeps, checks and forgets API keys
      config       Shows and changes the configuration
      doctor       Checks the configuration, the key, the service, the clock and the rate limit
      mock         Runs the mock server
      completions  Writes the completions of a shell
      man          Writes the manual pages
      docs         Writes the tree of commands: each with its arguments and examples
      help         Shows the help of a command, or on a topic

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Global options:
          --profile <NAME>
              The profile of the configuration to use. Overrides PETSTORE_PROFILE

          --base-url <URL>
              The service's base URL, version segment included, such as https://HOST/v1. Overrides
              PETSTORE_BASE_URL

          --allow-insecure-http
              Allows plain http to another machine, where others on the way can read the API key

          --ca-file <FILE>
              A file with certificate authorities to trust beside the system's (PEM). Overrides
              PETSTORE_CA_FILE

          --mock
              Runs the command against a mock server of its own, with 25 pets and a key of its own.
              Nothing leaves this machine, nothing is kept, and no configuration is read

      -o, --output <FORMAT>
              How results are written. Without it: a table on a terminal, tab-separated values in a pipe

              Possible values:
              - table:  Aligned columns for people
              - json:   One JSON document
              - ndjson: A JSON document on each line, as they come
              - yaml:   One YAML document
              - csv:    Comma-separated values with a header (RFC 4180), as they come
              - tsv:    Tab-separated values without a header, as they come
              - id:     The identifiers alone, one on each line, as they come

          --fields <FIELDS>
              Only these fields, in this order; dots lead to what is nested, such as `owner.name`

          --jq <EXPRESSION>
              Runs a jq expression over the whole result. Implies JSON, unless -o says otherwise

          --color <WHEN>
              When colour is used. NO_COLOR, CLICOLOR_FORCE and TERM=dumb are minded

              Possible values:
              - auto:   On a terminal, unless NO_COLOR or TERM=dumb says otherwise
              - always: Always
              - never:  Never

          --max-wait <SECONDS>
              How long to be held back by rate limits before giving up with exit code 7. 0 never waits;
              two minutes unless set

          --limits-store <STORE>
              Where processes share rate limits: file, redis://HOST or off. A password belongs into
              PETSTORE_LIMITS_STORE, since others can read arguments

          --deny-deprecated
              Ends with exit code 8 where a deprecated operation was used, for CI

      -q, --quiet
              Says nothing but errors: no notes, no warnings

      -v, --verbose...
              Tells on standard error what each call went through; -vv with headers, -vvv with bodies

          --error-format <FORMAT>
              How errors and notes are written

              Possible values:
              - text: Lines for people
              - json: A JSON object on each line

    Variables:
      PETSTORE_BASE_URL      the service's base URL, such as https://HOST/v1
      PETSTORE_API_KEY       the API key; there is no flag for it
      PETSTORE_API_KEY_FILE  a file with the API key in it
      PETSTORE_PROFILE       the profile of the configuration to use

    Examples:
      petstore --mock pets list
      petstore pets list --status available
      petstore pets create Rex --category-id 7

    Exit codes:
      0    done
      1    a fault of the program or the machine
      2    usage: the command or its input is not right
      3    no key, a bad key, or a bad configuration
      4    the service refused the request (other 4xx)
      5    the service failed (5xx), or its answer makes no sense
      6    network, TLS, or a time limit
      7    rate limited or banned, and not waited out
      8    partly done, or cut short or deprecated where asked to fail on it
      9    not found, or gone
      130  stopped by Ctrl-C
    ");
}
