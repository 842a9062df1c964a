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
        let petstore = Petstore::at(&server, &format!("{KEY}{end}"));
        petstore.run("pets list").await.ended(0);
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
    let named = || keyless(&server, &home).var("PETSTORE_API_KEY_FILE", &path);
    named().run("pets list").await.ended(0);
    let below_home = keyless(&server, &home).var("HOME", home.path());
    let below_home = below_home.var("PETSTORE_API_KEY_FILE", "~/ci key");
    below_home.run("pets list").await.ended(0);
    let overridden = named().var("PETSTORE_API_KEY", "bad");
    overridden.run("pets list").await.ended(3);
    let gone = keyless(&server, &home).var("PETSTORE_API_KEY_FILE", "/nowhere/key");
    let said = "error: cannot read /nowhere/key: no such file (from PETSTORE_API_KEY_FILE)\n";
    gone.run("pets list").await.said(said, 3);
}

#[tokio::test]
async fn a_key_that_the_service_accepts_is_kept_and_used() {
    let (server, other, home) = (server().await, server().await, tempfile::tempdir().unwrap());
    let petstore = || keyless(&server, &home).answer(KEY);
    let lines = [
        "auth login",
        "pets list --limit 1 --fields id -q",
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
    // The base URL comes from an option or from a variable.
    for (profile, option, variable, stdin) in [
        ("ci", option.as_str(), "", format!("{KEY}\r\n")),
        ("env", "--profile env", server.url(), KEY.to_owned()),
    ] {
        let petstore = Petstore::bare()
            .home(home.path())
            .var("PETSTORE_BASE_URL", variable)
            .stdin(&stdin);
        let ran = petstore.run(&format!("auth login {option}")).await;
        ran.ended(0);
        let later = Petstore::bare().home(home.path());
        let line = format!("pets list --profile {profile}");
        later.run(&line).await.ended(0);
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
    login(&first, "").await.ended(0);
    login(&first, "").await.ended(0);
    let key = std::fs::read(stored(&home)).unwrap();
    let hint = format!(
        "\nhint: `petstore auth login --profile NAME --base-url {}`\n",
        second.url()
    );
    let refused = login(&second, "").await;
    refused.says("error: profile default is for http://127.0.0.1:");
    refused.says(&hint);
    refused.ended(2);
    assert_eq!(std::fs::read(stored(&home)).unwrap(), key);
    // A command with the address of the other service gets the same hint.
    let line = format!("pets list --base-url {}", second.url());
    let other = Petstore::bare().home(home.path()).run(&line).await;
    other.says("error: the stored key is for http://127.0.0.1:");
    other.says(&hint);
    other.ended(3);
    assert_eq!(second.requests(..).len(), 0);
    let replaced = login(&second, "--profile default").await;
    let first = first.url();
    replaced.says(&format!(
        "\nnote: the base URL of profile default was {first}\n"
    ));
    let later = Petstore::bare().home(home.path());
    later.run("pets list").await.ended(0);
    assert_eq!(second.requests(..).len(), 2);
}

#[tokio::test]
async fn a_key_that_is_not_accepted_is_not_kept() {
    let (server, home) = (server().await, tempfile::tempdir().unwrap());
    let keyless = || keyless(&server, &home);
    let mut text = session(|| keyless().stdin(""), &["auth login"]).await;
    let spaced = || keyless().stdin("a sentinel");
    text += &session(spaced, &["auth login --no-check"]).await;
    let wrong = || keyless().stdin("sentinel");
    text += &session(wrong, &["auth login", "--mock auth login"]).await;
    let base_url = server.url().trim_end_matches("/v1");
    let no_version = || wrong().var("PETSTORE_BASE_URL", base_url);
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
    login.run("auth login --no-check").await.ended(0);
    let petstore = || keyless(&server, &home);
    let ran = petstore().run("auth token").await;
    ran.printed("sentinel\n");
    ran.said("", 0);
    let ran = petstore().terminal().run("auth token").await;
    ran.says("error: the terminal would show the API key\nhint: `--show` prints it; ");
    ran.ended(2);
    let ran = petstore().terminal().run("auth token --show").await;
    ran.printed("sentinel\n");
    // The command of a dry run works without a variable.
    let curl = petstore().run("api /pets --dry-run").await;
    curl.shows("printf 'Authorization: Bearer %s' \"$(petstore auth token)\" |");
}
