//! Tests of `key_command`: a program that prints the API key.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use insta::assert_snapshot;
use petstore_mock::{MockServer, Plan};
use tempfile::TempDir;

use super::harness::{Petstore, Ran, home_with, serve};

const KEY: &str = "sentinel-key";

/// A profile with a command, at a server.
struct Profile {
    server: MockServer,
    home: TempDir,
}

impl Profile {
    async fn with(command: &[&str]) -> Self {
        let server = serve(KEY, Plan::Free).await;
        let url = server.url();
        let text = format!("[profiles.default]\nbase_url = \"{url}\"\nkey_command = {command:?}\n");
        let home = home_with(&text);
        let profile = Self { server, home };
        profile.set_mode(0o644);
        profile
    }

    /// A command that a shell runs.
    async fn shell(script: &str) -> Self {
        Self::with(&["/bin/sh", "-c", script]).await
    }

    fn file(&self) -> PathBuf {
        self.home.path().join("config/config.toml")
    }

    fn set_mode(&self, mode: u32) {
        std::fs::set_permissions(self.file(), PermissionsExt::from_mode(mode)).unwrap();
    }

    fn petstore(&self) -> Petstore {
        let home = self.home.path().to_str().unwrap();
        let petstore = Petstore::bare().home(self.home.path());
        petstore.var("HOME", home).var("PATH", "/usr/bin:/bin")
    }

    async fn run(&self, line: &str) -> Ran {
        self.petstore().run(line).await
    }
}

#[tokio::test]
async fn the_key_comes_from_the_command_and_its_source_is_named() {
    let profile = Profile::shell(&format!("echo {KEY}")).await;
    assert_eq!(profile.run("pets list").await.code, 0);
    assert_eq!(profile.run("auth token").await.stdout, format!("{KEY}\n"));
    let mut named = String::new();
    for line in ["auth status --jq .source", "config list -o tsv", "doctor"] {
        let shown = profile.run(line).await.stdout;
        let lines = shown.lines().filter(|line| line.contains("key_command"));
        named += &lines.collect::<Vec<_>>().join("\n");
        named += "\n";
        assert!(!shown.contains(KEY), "{shown}");
    }
    assert_snapshot!(named, @"
    key_command of profile default
    api_key	set	key_command of profile default
    ✓ API key       key_command of profile default
    ");
    // A variable comes first, and the command does not run.
    let petstore = profile.petstore().var("PETSTORE_API_KEY", "another");
    assert_eq!(petstore.run("auth token").await.stdout, "another\n");
    // A stored key comes later.
    let login = profile.petstore().stdin("a-stored-key");
    let ran = login.run("auth login --no-check").await;
    let warning = "warning: key_command is set and overrides the stored key\n";
    assert!(ran.stderr.ends_with(warning), "{}", ran.stderr);
    assert_eq!(profile.run("auth token").await.stdout, format!("{KEY}\n"));
    profile
        .run("auth logout")
        .await
        .says("key_command is still set\n");
}

#[tokio::test]
async fn the_command_runs_once_and_again_after_a_401() {
    let script = format!(
        "echo run >> \"$HOME/runs\"; test -e \"$HOME/new\" && echo {KEY} || {{ : > \"$HOME/new\"; echo stale-key; }}"
    );
    let profile = Profile::shell(&script).await;
    let runs = || {
        std::fs::read_to_string(profile.home.path().join("runs"))
            .unwrap()
            .lines()
            .count()
    };
    let ran = profile.run("pets list").await;
    assert_eq!((ran.code, runs()), (0, 2), "{}", ran.stderr);
    let ran = profile.run("pets create Rex --category-id 7").await;
    assert_eq!((ran.code, runs()), (0, 3), "{}", ran.stderr);
    let ran = profile.run("pets list --all --jq length").await;
    assert_eq!((ran.code, runs()), (0, 4), "{}", ran.stderr);

    let profile = Profile::shell("echo a-wrong-key").await;
    let ran = profile.run("pets list").await;
    ran.says("hint: check what key_command of profile default prints\n");
    ran.ended(3);
}

#[tokio::test]
async fn no_shell_and_no_input_are_in_between() {
    let profile = Profile::with(&["/bin/echo", "$HOME;`key`"]).await;
    assert_eq!(profile.run("auth token").await.stdout, "$HOME;`key`\n");
    let profile = Profile::with(&["cat"]).await;
    let ran = profile
        .petstore()
        .stdin("from-the-input")
        .run("auth token")
        .await;
    assert_eq!(
        ran.stderr,
        "error: key_command of profile default printed nothing\n"
    );
}

#[tokio::test]
async fn a_command_without_a_key_says_why() {
    for (script, expected) in [
        (
            "echo 'the vault is locked' >&2; exit 3",
            "ended with exit code 3: the vault is locked",
        ),
        ("exit 1", "ended with exit code 1"),
        ("kill -9 $$", "was ended by a signal"),
        ("true", "printed nothing"),
        ("echo one; echo two", "printed more than one line"),
        (
            "echo two words",
            "printed a key that contains a space or a non-ASCII character",
        ),
        (
            "yes | head -c 20000 | tr -d '\\n'",
            "printed more than 8 KiB",
        ),
        (
            "echo sentinel-key; echo 'bad key: sentinel-key' >&2; exit 1",
            "ended with exit code 1: bad key: [hidden]",
        ),
    ] {
        let profile = Profile::shell(script).await;
        let ran = profile.run("pets list").await;
        let expected = format!("error: key_command of profile default {expected}\n");
        ran.said(&expected, 3);
        assert_eq!(profile.server.requests(..).len(), 0);
    }
    let profile = Profile::with(&["/nowhere/vault"]).await;
    assert_eq!(
        profile.run("pets list").await.stderr,
        "error: key_command of profile default cannot start `/nowhere/vault`: no such file\n"
    );
    let profile = Profile::with(&[]).await;
    let said = "error: key_command of profile default is empty\n\
                hint: give a program and its arguments: [\"pass\", \"show\", \"petstore\"]\n";
    profile.run("pets list").await.said(said, 3);
}

#[tokio::test(start_paused = true)]
async fn a_command_has_ten_seconds_and_a_minute_at_a_terminal() {
    let profile = Profile::shell("exec sleep 600").await;
    let limit = async |petstore: Petstore| petstore.run("pets list").await.stderr;
    let error = "error: key_command of profile default took longer than";
    assert_eq!(limit(profile.petstore()).await, format!("{error} 10 s\n"));
    let shown = limit(profile.petstore().stderr_terminal()).await;
    assert!(shown.contains(" took longer than 1 min"), "{shown}");
}

#[tokio::test]
async fn the_command_of_a_file_that_others_can_write_is_not_run() {
    let profile = Profile::shell("echo run >> \"$HOME/runs\"").await;
    for mode in [0o664, 0o646] {
        profile.set_mode(mode);
        let ran = profile.run("pets list").await;
        let expected = "error: others can write ~/config/config.toml, so its key_command is not run\n\
                        hint: `chmod go-w ~/config/config.toml`\n";
        ran.said(expected, 3);
    }
    assert!(!profile.home.path().join("runs").exists());
}

#[tokio::test]
async fn the_key_goes_only_to_the_service_of_its_profile() {
    let profile = Profile::shell("echo run >> \"$HOME/runs\"").await;
    let other = MockServer::start().await;
    let line = format!("pets list --base-url {}", other.url());
    assert_snapshot!(profile.run(&line).await.transcript(), @"
    --- stderr
    error: key_command of profile default is for http://127.0.0.1:PORT, not for http://127.0.0.1:PORT
    hint: `petstore auth login --profile NAME --base-url http://127.0.0.1:PORT/v1`
    --- exit 3
    ");
    let text = std::fs::read_to_string(profile.file()).unwrap();
    let without: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with("base_url"))
        .collect();
    std::fs::write(profile.file(), without.join("\n")).unwrap();
    let petstore = profile.petstore().var("PETSTORE_BASE_URL", other.url());
    let said = "error: profile default has a key_command, but no base_url\n\
                hint: add base_url below `[profiles.default]`\n";
    petstore.run("pets list").await.said(said, 3);
    assert!(!profile.home.path().join("runs").exists());
    assert_eq!(other.requests(..).len(), 0);
}
