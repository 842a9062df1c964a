//! Tests of the mistakes of people who know other programs, and of values that only look right.

use petstore_mock::Plan;

use super::harness::{Petstore, serve};

#[tokio::test]
async fn names_of_other_programs_lead_to_ours() {
    let key = "pets list --api-key=sentinel";
    for (line, hint) in [
        ("pets list --json", "`-o FORMAT` sets the format"),
        ("pets list --filter .name", "`--jq EXPRESSION` filters"),
        ("pets get --id 7", "it is an argument: `pets get 7`"),
        ("pets delete 7", "the service cannot delete pets"),
        ("update 7", "the service cannot change pets"),
        ("pets export --all", "`pets export` writes all pets"),
        ("api GET /pets", "the method is an option: `-X GET`"),
        ("limits --watch", "`watch petstore limits` shows them"),
        (key, "set PETSTORE_API_KEY"),
        ("config get tiemout", "did you mean `timeout`?"),
        ("api -i get /pets", "the method is an option: `-X GET`"),
        ("ls", "it is a command of `petstore pets`"),
        ("store list", "`--help` shows the usage"),
        ("config add", "`--help` shows the usage"),
        ("pest", "did you mean `pets`?"),
        ("config set key_command op", "write it into config.toml: "),
        ("auth frob", "`--help` shows the usage"),
    ] {
        let ran = Petstore::bare().run(line).await;
        ran.says(&format!("\nhint: {hint}"));
        ran.never_says("sentinel");
        ran.ended(2);
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_sent_names_its_source() {
    let server = serve("k", Plan::Free).await;
    let said = "error: the API key has a space at character 7 (from PETSTORE_API_KEY)\n\
                hint: leave out `Bearer`\n";
    let bearer = Petstore::at(&server, "Bearer abc");
    bearer.run("pets list").await.said(said, 3);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("PETSTORE.key");
    std::fs::write(&file, "kéy\n").unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let with_file = || {
        Petstore::bare()
            .home(folder.path())
            .var("PETSTORE_BASE_URL", server.url())
            .var("PETSTORE_API_KEY_FILE", &file)
    };
    let ran = with_file().run("pets list").await;
    ran.says(" is not ASCII at character 2 (from HOME/PETSTORE.key)\n");
    ran.ended(3);
    // A file name that begins like a variable's name still means a file.
    std::fs::write(&file, "wrong\n").unwrap();
    let ran = with_file().run("pets list").await;
    ran.says("hint: put a valid key into the file that PETSTORE_API_KEY_FILE names\n");
}

#[tokio::test]
async fn spaces_around_fields_do_not_count() {
    let words = ["--mock", "pets", "get", "1", "--fields", "id, name"];
    let ran = Petstore::bare().run_words(&words).await;
    ran.printed("1\tBramble\n");
}

#[cfg(unix)]
#[tokio::test]
async fn an_argument_that_is_not_utf_8_is_refused() {
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"caf\xe9");
    let words = ["pets".as_ref(), "create".as_ref(), name];
    let ran = Petstore::bare().run_words(&words).await;
    ran.says("invalid UTF-8");
    ran.ended(2);
}
