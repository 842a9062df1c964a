//! Tests of the mistakes of people who know other programs, and of values that only look right.

use insta::assert_snapshot;
use petstore_mock::{MockServer, Plan};

use super::harness::{Petstore, session};

#[tokio::test]
async fn names_of_other_programs_lead_to_ours() {
    let lines = [
        "pets list --json",
        "pets list --filter .name",
        "pets get --id 7",
        "--mock pets create --name=Rex --category-id 7",
        "pets delete 7",
        "update 7",
        "pets export --all",
        "api GET /pets",
        "limits --watch",
        "--mock pets list --status available,sold",
        "pets export -o pets.json",
        "pets list --api-key=sentinel",
    ];
    let text = session(Petstore::bare, &lines).await;
    assert_eq!(text.matches("sentinel").count(), 1, "{text}");
    assert_snapshot!(text, @"
    $ petstore pets list --json
    --- stderr
    error: unexpected argument `--json`
    hint: `-o FORMAT` sets the format, such as json or csv
    --- exit 2

    $ petstore pets list --filter .name
    --- stderr
    error: unexpected argument `--filter`
    hint: `--jq EXPRESSION` filters the result
    --- exit 2

    $ petstore pets get --id 7
    --- stderr
    error: unexpected argument `--id`
    hint: it is an argument: `pets get 7`, `pets create Rex`
    --- exit 2

    $ petstore --mock pets create --name=Rex --category-id 7
    --- stderr
    error: unexpected argument `--name`
    hint: it is an argument: `pets get 7`, `pets create Rex`
    --- exit 2

    $ petstore pets delete 7
    --- stderr
    error: no command `delete`
    hint: the service has no operation that deletes pets
    --- exit 2

    $ petstore update 7
    --- stderr
    error: no command `update`
    hint: the service has no operation that changes pets
    --- exit 2

    $ petstore pets export --all
    --- stderr
    error: unexpected argument `--all`
    hint: `pets export` writes all pets
    --- exit 2

    $ petstore api GET /pets
    --- stderr
    error: unexpected argument `/pets`
    hint: the method is an option: `-X GET /pets`
    --- exit 2

    $ petstore limits --watch
    --- stderr
    error: unexpected argument `--watch`
    hint: `watch petstore limits` shows them again and again
    --- exit 2

    $ petstore --mock pets list --status available,sold
    --- stderr
    error: `--status` takes one status
    hint: `--all --jq 'map(select(.status != \"sold\"))'` lists those of two
    --- exit 2

    $ petstore pets export -o pets.json
    --- stderr
    error: `--output pets.json` is not table, json, ndjson, csv or tsv
    hint: redirect the result into a file: `-o json > FILE`
    --- exit 2

    $ petstore pets list --api-key=sentinel
    --- stderr
    error: unexpected argument `--api-key`
    hint: set PETSTORE_API_KEY, or run `petstore auth login`
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

#[cfg(unix)]
#[tokio::test]
async fn an_argument_that_is_not_unicode_is_shown() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let name = OsStr::from_bytes(b"caf\xe9");
    let words = ["pets".as_ref(), "create".as_ref(), name];
    let ran = Petstore::bare().run_words(&words).await;
    assert_eq!(ran.code, 2);
    assert_eq!(ran.stderr, "error: an argument is not UTF-8\n");
}
