//! Tests of the mistakes of people who know other programs, and of values that only look right.

use petstore_mock::{MockServer, Plan};

use super::harness::{Petstore, serve};

#[tokio::test]
async fn names_of_other_programs_lead_to_ours() {
    for (line, problem, hint) in [
        (
            "pets list --json",
            "unexpected argument `--json`",
            "`-o FORMAT` sets the format",
        ),
        (
            "pets list --filter .name",
            "unexpected argument `--filter`",
            "`--jq EXPRESSION` filters",
        ),
        (
            "pets get --id 7",
            "unexpected argument `--id`",
            "it is an argument: `pets get 7`",
        ),
        (
            "pets create --name=Rex",
            "unexpected argument `--name`",
            "it is an argument: ",
        ),
        (
            "pets delete 7",
            "no command `delete`",
            "the service has no operation that deletes",
        ),
        (
            "update 7",
            "no command `update`",
            "the service has no operation that changes",
        ),
        (
            "pets export --all",
            "unexpected argument `--all`",
            "`pets export` writes all pets",
        ),
        (
            "api GET /pets",
            "unexpected argument `/pets`",
            "the method is an option: `-X GET /pets`",
        ),
        (
            "limits --watch",
            "unexpected argument `--watch`",
            "`watch petstore limits` shows them",
        ),
        (
            "pets list --status available,sold",
            "`--status` takes one status",
            "`--all --jq ",
        ),
        (
            "pets export -o pets.json",
            "`--output pets.json` is not ",
            "redirect the result into",
        ),
        (
            "pets list --api-key=sentinel",
            "unexpected argument `--api-key`",
            "set PETSTORE_API_KEY",
        ),
        (
            "config get tiemout",
            "no setting `tiemout`",
            "did you mean `timeout`?",
        ),
        (
            "config get zzz",
            "no setting `zzz`",
            "`petstore config list` lists them",
        ),
    ] {
        let ran = Petstore::bare().run(line).await;
        let (error, rest) = ran.stderr.split_once('\n').unwrap();
        assert!(
            error.starts_with(&format!("error: {problem}")),
            "{line}: {error}"
        );
        assert!(rest.starts_with(&format!("hint: {hint}")), "{line}: {rest}");
        assert!(!ran.stderr.contains("sentinel"), "{}", ran.stderr);
        ran.ended(2);
    }
}

#[tokio::test]
async fn spaces_around_fields_do_not_count_and_a_day_is_a_time() {
    let words = [
        "--mock", "pets", "list", "--limit", "1", "--fields", "id, name",
    ];
    let ran = Petstore::bare().run_words(&words).await;
    ran.printed("1\tBramble\n");
    let ran = Petstore::bare()
        .run("config get max_wait --max-wait 1d")
        .await;
    ran.printed("24h\n");
}

#[tokio::test]
async fn a_key_that_cannot_be_sent_names_its_source() {
    let server = serve("k", Plan::Free).await;
    let at = |key: &str| Petstore::at(&server, key);
    let said = "error: the API key has a space at character 7 (from PETSTORE_API_KEY)\n\
                hint: leave out `Bearer`\n";
    at("Bearer abc").run("pets list").await.said(said, 3);
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
    let said = "error: the API key has a character that is not ASCII at character 2 (from HOME/PETSTORE.key)\n\
                hint: a key has printable ASCII characters only, and no spaces\n";
    with_file(&server).run("pets list").await.said(said, 3);
    // A file name that begins like a variable's name still means a file.
    std::fs::write(&file, "wrong\n").unwrap();
    let ran = with_file(&server).run("pets list").await;
    ran.says("hint: put a valid key into the file that PETSTORE_API_KEY_FILE names\n");
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
