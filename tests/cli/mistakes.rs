//! Tests of the mistakes of people who know other programs, and of values that only look right.

use insta::assert_snapshot;
use petstore_mock::{MockServer, Plan};

use super::harness::{Petstore, session};

#[tokio::test]
async fn names_of_other_programs_lead_to_ours() {
    let lines = [
        "pets list --json",
        "pets list --query .name",
        "pets get --id 7",
        "--mock pets create --name=Rex --category-id 7",
        "pets delete 7",
        "pets update 7",
        "delete 7",
        "--mock sell 7",
        "--mock pets list --status available --status sold",
        "--mock pets list --status available,sold",
        "--mock pets export --status available,sold",
    ];
    assert_snapshot!(session(Petstore::bare, &lines).await, @"
    $ petstore pets list --json
    --- stderr
    error: `pets list` has no option `--json`
    hint: did you mean `-o json`?
    --- exit 2

    $ petstore pets list --query .name
    --- stderr
    error: `pets list` has no option `--query`
    hint: did you mean `--jq EXPRESSION`?
    --- exit 2

    $ petstore pets get --id 7
    --- stderr
    error: `pets get` has no option `--id`
    hint: the id is an argument: `petstore pets get ID`
    --- exit 2

    $ petstore --mock pets create --name=Rex --category-id 7
    --- stderr
    error: `pets create` has no option `--name`
    hint: the name is an argument: `petstore pets create NAME`
    --- exit 2

    $ petstore pets delete 7
    --- stderr
    error: no command `pets delete`
    hint: the service has no operation that deletes pets
    --- exit 2

    $ petstore pets update 7
    --- stderr
    error: no command `pets update`
    hint: the service has no operation that changes pets
    --- exit 2

    $ petstore delete 7
    --- stderr
    error: no command `delete`
    hint: the service has no operation that deletes pets
    --- exit 2

    $ petstore --mock sell 7
    --- stderr
    error: no command `sell`
    hint: the service has no operation that changes pets
    --- exit 2

    $ petstore --mock pets list --status available --status sold
    --- stderr
    error: `--status` takes one status, not available and sold
    hint: `--all --jq 'map(select(.status == \"available\" or .status == \"sold\"))'` lists both
    --- exit 2

    $ petstore --mock pets list --status available,sold
    --- stderr
    error: `--status` takes one status, not available and sold
    hint: `--all --jq 'map(select(.status == \"available\" or .status == \"sold\"))'` lists both
    --- exit 2

    $ petstore --mock pets export --status available,sold
    --- stderr
    error: `--status` takes one status, not available and sold
    hint: `--all --jq 'map(select(.status == \"available\" or .status == \"sold\"))'` lists both
    --- exit 2
    ");
}

#[tokio::test]
async fn a_file_as_the_format_gets_a_hint_that_writes_the_file() {
    let lines = [
        "pets export --output e.csv",
        "pets export -o out/pets",
        "pets list -o pets.json",
        "api /pets -o ../pets.txt",
        "--output all.csv pets list",
        "pets list -o jsno",
    ];
    assert_snapshot!(session(Petstore::bare, &lines).await, @"
    $ petstore pets export --output e.csv
    --- stderr
    error: `--output e.csv` is not table, json, ndjson, csv, tsv or id
    hint: give the file as the argument: `petstore pets export e.csv`
    --- exit 2

    $ petstore pets export -o out/pets
    --- stderr
    error: `--output out/pets` is not table, json, ndjson, csv, tsv or id
    hint: give the file as the argument: `petstore pets export out/pets`
    --- exit 2

    $ petstore pets list -o pets.json
    --- stderr
    error: `--output pets.json` is not table, json, ndjson, csv, tsv or id
    hint: `-o json > pets.json` writes this file
    --- exit 2

    $ petstore api /pets -o ../pets.txt
    --- stderr
    error: `--output ../pets.txt` is not table, json, ndjson, csv, tsv or id
    hint: `> ../pets.txt` writes this file
    --- exit 2

    $ petstore --output all.csv pets list
    --- stderr
    error: `--output all.csv` is not table, json, ndjson, csv, tsv or id
    hint: `-o csv > all.csv` writes this file
    --- exit 2

    $ petstore pets list -o jsno
    --- stderr
    error: `--output jsno` is not table, json, ndjson, csv, tsv or id
    --- exit 2
    ");
}

#[tokio::test]
async fn spaces_around_fields_do_not_count_and_a_day_is_a_time() {
    let words = [
        "--mock", "pets", "list", "--limit", "1", "--fields", "id, name",
    ];
    let ran = Petstore::bare().run_words(&words).await;
    assert_eq!((ran.stdout.as_str(), ran.code), ("1\tBramble\n", 0));
    let ran = Petstore::bare()
        .run("config get max_wait --max-wait 1d")
        .await;
    assert_eq!((ran.stdout.as_str(), ran.code), ("1day\n", 0));
}

#[tokio::test]
async fn a_key_that_cannot_be_sent_names_its_source() {
    let server = MockServer::builder()
        .key("k", Plan::Free)
        .start()
        .await
        .unwrap();
    let at = |key: &str| Petstore::at(&server, key);
    assert_snapshot!(at("Bearer abc").run("pets list").await.transcript(), @"
    --- stderr
    error: the API key has a space at character 7 (from PETSTORE_API_KEY)
    hint: leave out `Bearer`
    --- exit 3
    ");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("PETSTORE.key");
    std::fs::write(&file, "kéy\n").unwrap();
    private(&file);
    let with_file = |server: &MockServer| {
        Petstore::bare()
            .home(folder.path())
            .var("PETSTORE_BASE_URL", server.url())
            .var("PETSTORE_API_KEY_FILE", file.to_str().unwrap())
    };
    assert_snapshot!(with_file(&server).run("pets list").await.transcript(), @"
    --- stderr
    error: the API key has a character that is not ASCII at character 2 (from HOME/PETSTORE.key)
    hint: a key has printable ASCII characters only, and no spaces
    --- exit 3
    ");
    // A file name that begins like a variable's name still means a file.
    std::fs::write(&file, "wrong\n").unwrap();
    assert_snapshot!(with_file(&server).run("pets list").await.transcript(), @"
    --- stderr
    error: the service answered 401 Unauthorized (unauthorized): the API key is not known: check it for a typing error, or give it to the mock with --key KEY=PLAN
    hint: put a valid key into the file that PETSTORE_API_KEY_FILE names
    --- exit 3
    ");
}

#[cfg(unix)]
fn private(file: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;

    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[cfg(not(unix))]
fn private(_: &std::path::Path) {}

#[tokio::test]
async fn empty_quoted_and_dashed_words_are_understood() {
    let lines: [&[&str]; 5] = [
        &["pets", "import", ""],
        &["--mock", "pets list"],
        &["pets", "list", "\u{2014}all"],
        &["pets", "list", "\u{2013}limit=5"],
        &["pets", "list", "\u{2014}zzz"],
    ];
    let mut said = String::new();
    for words in lines {
        let ran = Petstore::bare().run_words(words).await;
        assert_eq!(ran.code, 2, "{words:?}");
        said += &ran.stderr;
    }
    assert_snapshot!(said, @"
    error: `FILE` needs a value
    hint: `petstore pets import --help` has examples
    error: no command `pets list`
    hint: did you mean `petstore pets list`, without quotes?
    error: `pets list` does not take `—all`
    hint: did you mean `--all`, with two hyphens?
    error: `pets list` does not take `–limit=5`
    hint: did you mean `--limit`, with two hyphens?
    error: `pets list` does not take `—zzz`
    hint: `petstore pets list --help` has examples
    ");
}

#[cfg(unix)]
#[tokio::test]
async fn an_argument_that_is_not_unicode_is_shown() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let name = OsStr::from_bytes(b"caf\xe9");
    let words = ["pets".as_ref(), "create".as_ref(), name];
    let ran = Petstore::bare().run_words(&words).await;
    assert_eq!(ran.code, 2);
    assert_snapshot!(ran.stderr, @"
    error: `caf�` is not UTF-8
    hint: type it in a terminal that uses UTF-8
    ");
}
