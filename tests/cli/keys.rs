//! Tests of the API key: its sources, its storage, and where it must not appear.

use std::path::PathBuf;

use insta::assert_snapshot;
use petstore_mock::{MockServer, Plan};
use tempfile::TempDir;

use super::harness::{Petstore, serve, session};

const KEY: &str = "sentinel-key";

async fn server() -> MockServer {
    serve(KEY, Plan::Free).await
}

/// A command that knows the service, and no key.
fn keyless(server: &MockServer, home: &TempDir) -> Petstore {
    Petstore::bare()
        .home(home.path())
        .var("PETSTORE_BASE_URL", server.url())
}

fn stored(home: &TempDir) -> PathBuf {
    home.path().join("config/keys/default")
}

#[tokio::test]
async fn a_line_break_at_the_end_is_not_part_of_the_key() {
    let server = server().await;
    for end in ["\n", "\r\n"] {
        let ran = Petstore::at(&server, &format!("{KEY}{end}"))
            .run("pets list")
            .await;
        ran.ended(0);
    }
}

#[tokio::test]
#[cfg(unix)]
async fn the_key_file_is_private_and_otherwise_refused() {
    use std::os::unix::fs::PermissionsExt;

    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    keyless(&server, &home).answer(KEY).run("auth login").await;
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(stored(&home)), 0o600);
    assert_eq!(mode(home.path().join("config/keys")), 0o700);
    std::fs::set_permissions(stored(&home), PermissionsExt::from_mode(0o640)).unwrap();
    let ran = keyless(&server, &home).run("pets list").await;
    let said = "error: others can read the key in HOME/config/keys/default (mode 0640)\n\
                hint: `chmod 600 HOME/config/keys/default`\n";
    ran.said(said, 3);
}

#[tokio::test]
#[cfg(unix)]
async fn a_variable_can_name_a_file_and_the_key_variable_overrides_it() {
    use std::os::unix::fs::PermissionsExt;

    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    let path = home.path().join("ci key");
    std::fs::write(&path, format!("{KEY}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let named = || keyless(&server, &home).var("PETSTORE_API_KEY_FILE", path.to_str().unwrap());
    assert_eq!(named().run("pets list").await.code, 0);
    assert_eq!(
        named()
            .var("PETSTORE_API_KEY", "bad")
            .run("pets list")
            .await
            .code,
        3
    );
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let ran = named().run("pets list").await;
    let said = "error: others can read the key in HOME/ci key (mode 0644)\n\
                hint: `chmod 600 'HOME/ci key'`\n";
    ran.said(said, 3);
    let gone = keyless(&server, &home).var("PETSTORE_API_KEY_FILE", "/nowhere/key");
    let ran = gone.run("pets list").await;
    ran.said(
        "error: cannot read /nowhere/key: no such file (from PETSTORE_API_KEY_FILE)\n",
        3,
    );
}

#[tokio::test]
async fn a_key_that_the_service_accepts_is_kept_and_used() {
    let (server, other, home) = (server().await, server().await, tempfile::tempdir().unwrap());
    let petstore = || keyless(&server, &home).answer(KEY);
    let lines = [
        "auth login",
        "pets list --limit 1 --fields id",
        "auth status -o ndjson",
    ];
    let mut text = session(petstore, &lines).await;
    text += &session(|| keyless(&other, &home), &["pets list"]).await;
    let content = std::fs::read_to_string(stored(&home)).unwrap();
    std::fs::write(stored(&home), content.replace("key = ", "key: ")).unwrap();
    let lines = [
        "pets list",
        "auth logout",
        "auth logout",
        "pets list",
        "auth status -o table",
    ];
    text += &session(petstore, &lines).await;
    assert!(!text.contains(KEY), "{text}");
    assert_snapshot!(text);
}

#[tokio::test]
async fn a_login_keeps_the_base_url_of_a_profile_that_has_none() {
    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    let option = format!("--base-url {} --profile ci", server.url());
    let url = format!("{}\n", server.url());
    // The base URL comes from an option, from a variable, and from the answer to a prompt.
    for (profile, option, variable, stdin, asked) in [
        ("ci", option.as_str(), "", format!("{KEY}\r\n"), ""),
        ("env", "--profile env", server.url(), KEY.to_owned(), ""),
        ("me", "--profile me", "", url, "Base URL: "),
    ] {
        let petstore = Petstore::bare()
            .home(home.path())
            .var("PETSTORE_BASE_URL", variable);
        let petstore = petstore.stdin(&stdin);
        let petstore = if asked.is_empty() {
            petstore
        } else {
            petstore.answer(KEY)
        };
        let ran = petstore.run(&format!("auth login {option}")).await;
        let said =
            format!("{asked}note: accepted by the service; stored in HOME/config/keys/{profile}\n");
        ran.said(&said, 0);
        let later = Petstore::bare().home(home.path());
        let later = later.run(&format!("pets list --profile {profile}")).await;
        later.ended(0);
    }
}

#[tokio::test]
async fn a_login_to_another_service_replaces_only_a_profile_that_it_names() {
    let (first, second) = (server().await, server().await);
    let home = tempfile::tempdir().unwrap();
    let login = async |server: &MockServer, option: &str| {
        let petstore = Petstore::bare().home(home.path()).stdin(KEY);
        let line = format!("auth login {option} --base-url {}", server.url());
        petstore.run(&line).await
    };
    let stored = "note: accepted by the service; stored in HOME/config/keys/default\n";
    assert_eq!(login(&first, "").await.stderr, stored);
    assert_eq!(login(&first, "").await.stderr, stored);
    let key = std::fs::read(self::stored(&home)).unwrap();
    let refused = login(&second, "").await;
    assert_snapshot!(refused.transcript(), @"
    --- stderr
    error: profile default is for http://127.0.0.1:PORT
    hint: `petstore auth login --profile NAME --base-url http://127.0.0.1:PORT/v1`
    --- exit 2
    ");
    assert_eq!(std::fs::read(self::stored(&home)).unwrap(), key);
    // A command with the address of the other service gets the same hint.
    let line = format!("pets list --base-url {}", second.url());
    let other = Petstore::bare().home(home.path()).run(&line).await;
    assert_snapshot!(other.transcript(), @"
    --- stderr
    error: the stored key is for http://127.0.0.1:PORT, not for http://127.0.0.1:PORT
    hint: `petstore auth login --profile NAME --base-url http://127.0.0.1:PORT/v1`
    --- exit 3
    ");
    let replaced = format!(
        "note: the base URL of profile default was {}\n",
        first.url()
    );
    let said = login(&second, "--profile default").await.stderr;
    assert_eq!(said, format!("{stored}{replaced}"));
    let before = second.requests(..).len();
    let listed = Petstore::bare().home(home.path()).run("pets list").await;
    assert_eq!(
        (listed.code, second.requests(..).len()),
        (0, before + 1),
        "{}",
        listed.stderr
    );
}

#[tokio::test]
async fn a_key_that_is_not_accepted_is_not_kept() {
    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    let keyless = || keyless(&server, &home);
    let mut text = session(|| keyless().ctrl_c_at_the_question(), &["auth login"]).await;
    text += &session(|| keyless().stdin(""), &["auth login"]).await;
    text += &session(|| keyless().stdin("a sentinel"), &["auth login --no-check"]).await;
    text += &session(
        || keyless().stdin("sentinel"),
        &["auth login", "--mock auth login"],
    )
    .await;
    let base_url = server.url().trim_end_matches("/v1");
    let no_version = || {
        keyless()
            .stdin("sentinel")
            .var("PETSTORE_BASE_URL", base_url)
    };
    text += &session(no_version, &["auth login"]).await;
    assert!(!stored(&home).exists());
    let lines = ["auth login --no-check", "auth status"];
    text += &session(|| keyless().answer("sentinel"), &lines).await;
    assert!(!text.contains("sentinel"), "{text}");
    assert_snapshot!(text);
}

#[tokio::test]
async fn a_script_gets_the_key_and_a_terminal_asks_first() {
    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    let login = keyless(&server, &home).stdin("sentinel");
    assert_eq!(login.run("auth login --no-check").await.code, 0);
    let ran = keyless(&server, &home).run("auth token").await;
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str(), ran.code),
        ("sentinel\n", "", 0)
    );
    let ran = keyless(&server, &home).terminal().run("auth token").await;
    let said = "error: the terminal would show the API key\n\
                hint: `--show` prints it; a script uses `$(petstore auth token)`\n";
    ran.said(said, 2);
    let ran = keyless(&server, &home).terminal().run("auth token --show");
    assert_eq!(ran.await.stdout, "sentinel\n");
    // The command of a dry run works without a variable.
    let line = "api /pets --dry-run --jq .curl";
    let curl = keyless(&server, &home).run(line).await.stdout;
    let header = "printf 'Authorization: Bearer %s' \"$(petstore auth token)\" |";
    assert!(curl.contains(header), "{curl}");
    let variable = keyless(&server, &home).var("PETSTORE_API_KEY", "other");
    let curl = variable.run(line).await.stdout;
    assert!(curl.contains("%s' \"$PETSTORE_API_KEY\" |"), "{curl}");
}
