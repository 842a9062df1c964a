//! The API key: where it may come from, where it is kept, and where it must not go.

use std::path::PathBuf;

use insta::assert_snapshot;
use petstore_mock::{MockServer, Plan};
use tempfile::TempDir;

use super::harness::Petstore;

const KEY: &str = "sentinel-key";

async fn server() -> MockServer {
    MockServer::builder().key(KEY, Plan::Free).start().await.unwrap()
}

/// A command that knows the service, and no key.
fn keyless(server: &MockServer, home: &TempDir) -> Petstore {
    Petstore::bare().home(home.path()).var("PETSTORE_BASE_URL", server.url())
}

fn stored(home: &TempDir) -> PathBuf {
    home.path().join("config/keys/default")
}

#[tokio::test]
async fn ctrl_c_at_the_question_for_a_key_ends_like_the_signal() {
    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    let ran = keyless(&server, &home).ctrl_c_at_the_question().run("auth login").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: interrupted
    --- exit 130
    ");
    assert!(!stored(&home).exists());
}

#[tokio::test]
async fn keeps_a_key_that_the_service_accepts_and_uses_it() {
    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    let ran = keyless(&server, &home).answer(KEY).run("auth login").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    note: accepted by the service; kept in HOME/config/keys/default
    --- exit 0
    ");
    assert_eq!(keyless(&server, &home).run("pets list --limit 1 -o id").await.stdout, "1\n");
    let ran = keyless(&server, &home).run("auth status -o ndjson").await;
    assert_snapshot!(ran.transcript(), @r#"
    --- stdout
    {"profile":"default","baseUrl":"http://127.0.0.1:PORT/v1","source":"HOME/config/keys/default","accepted":true,"problem":null}
    --- exit 0
    "#);
    let ran = keyless(&server, &home).run("auth logout").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    note: removed HOME/config/keys/default
    --- exit 0
    ");
    assert_eq!(keyless(&server, &home).run("pets list").await.code, 3);
}

#[tokio::test]
async fn reads_the_key_from_standard_input_and_keeps_a_base_url_that_was_typed() {
    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    let line = format!("auth login --base-url {} --profile ci", server.url());
    let petstore = Petstore::bare().home(home.path()).stdin(&format!("{KEY}\r\n"));
    let ran = petstore.run(&line).await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    note: accepted by the service; kept in HOME/config/keys/ci
    --- exit 0
    ");
    let later = Petstore::bare().home(home.path()).run("pets list --profile ci").await;
    assert_eq!(later.code, 0, "{}", later.stderr);
}

#[tokio::test]
#[cfg(unix)]
async fn the_file_is_nobody_elses_and_is_refused_if_it_is() {
    use std::os::unix::fs::PermissionsExt;

    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    keyless(&server, &home).answer(KEY).run("auth login").await;
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(stored(&home)), 0o600);
    assert_eq!(mode(home.path().join("config/keys")), 0o700);
    std::fs::set_permissions(stored(&home), PermissionsExt::from_mode(0o640)).unwrap();
    let ran = keyless(&server, &home).run("pets list").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: others can read the key in HOME/config/keys/default (mode 0640)
    hint: `chmod 600 HOME/config/keys/default`
    --- exit 3
    ");
}

#[tokio::test]
async fn a_key_that_the_service_refuses_is_not_kept() {
    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    let ran = keyless(&server, &home).answer("other-sentinel").run("auth login").await;
    assert!(ran.stderr.contains("nothing was kept"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("other-sentinel"), "{}", ran.stderr);
    assert_eq!((ran.code, stored(&home).exists()), (3, false));
    let ran = keyless(&server, &home).answer("other-sentinel").run("auth login --no-check").await;
    assert_eq!(ran.code, 0);
    let ran = keyless(&server, &home).run("auth status").await;
    assert!(ran.stdout.contains("\tfalse\t"), "{}", ran.stdout);
    assert_eq!(ran.code, 3);
    assert!(!(ran.stdout + &ran.stderr).contains("other-sentinel"));
}

#[tokio::test]
async fn a_kept_key_is_sent_to_no_other_service() {
    let (home_server, other, home) = (server().await, server().await, tempfile::tempdir().unwrap());
    keyless(&home_server, &home).answer(KEY).run("auth login").await;
    let ran = keyless(&other, &home).run("pets list").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: the key was kept for http://127.0.0.1:PORT, not for http://127.0.0.1:PORT
    hint: `petstore auth login --base-url http://127.0.0.1:PORT/v1`
    --- exit 3
    ");
}

#[tokio::test]
#[cfg(unix)]
async fn a_variable_can_name_a_file_and_the_key_itself_goes_before_it() {
    use std::os::unix::fs::PermissionsExt;

    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    let path = home.path().join("ci key");
    std::fs::write(&path, format!("{KEY}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let named = || keyless(&server, &home).var("PETSTORE_API_KEY_FILE", path.to_str().unwrap());
    assert_eq!(named().run("pets list").await.code, 0);
    assert_eq!(named().var("PETSTORE_API_KEY", "bad").run("pets list").await.code, 3);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let ran = named().run("pets list").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: others can read the key in HOME/ci key (mode 0644)
    hint: `chmod 600 'HOME/ci key'`
    --- exit 3
    ");
    let gone = keyless(&server, &home).var("PETSTORE_API_KEY_FILE", "/nowhere/key");
    let ran = gone.run("pets list").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: cannot read /nowhere/key: no such file (from PETSTORE_API_KEY_FILE)
    --- exit 3
    ");
}

#[tokio::test]
async fn an_invalid_key_is_not_kept() {
    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    for (key, says) in [("", "no key was given"), ("a b", "API key cannot be used")] {
        let ran = keyless(&server, &home).stdin(key).run("auth login --no-check").await;
        assert!(ran.stderr.contains(says), "{key}: {}", ran.stderr);
        assert!(!stored(&home).exists(), "{key}");
    }
    assert_eq!(Petstore::bare().run("--mock auth login").await.code, 2);
}

#[tokio::test]
async fn a_file_without_a_key_is_named_and_not_shown() {
    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    keyless(&server, &home).answer(KEY).run("auth login").await;
    let text = std::fs::read_to_string(stored(&home)).unwrap();
    std::fs::write(stored(&home), text.replace("key = ", "key: ")).unwrap();
    let ran = keyless(&server, &home).run("pets list").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: HOME/config/keys/default holds no key
    hint: `petstore auth login` writes it anew
    --- exit 3
    ");
}
