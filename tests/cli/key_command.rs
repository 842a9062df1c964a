//! Tests of `key_command`: a program that prints the API key.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

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
        let folder = profile.home.path().join("config");
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
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
    profile.run("pets list").await.ended(0);
    let token = format!("{KEY}\n");
    profile.run("auth token").await.printed(&token);
    for (line, source) in [
        ("auth status --jq .source", ""),
        ("config list -o tsv", "api_key\tset\t"),
        ("doctor", "✓ API key       "),
    ] {
        let ran = profile.run(line).await;
        ran.shows(&format!("{source}key_command of profile default\n"));
        assert!(!ran.stdout.contains(KEY), "{}", ran.stdout);
    }
    // A variable comes first, and the command does not run.
    let variable = profile.petstore().var("PETSTORE_API_KEY", "another");
    variable.run("auth token").await.printed("another\n");
    // A stored key comes later.
    let login = profile.petstore().stdin("a-stored-key");
    let ran = login.run("auth login --no-check").await;
    ran.says("warning: key_command is set and overrides the stored key\n");
    profile.run("auth token").await.printed(&token);
    let logout = profile.run("auth logout").await;
    logout.says("key_command is still set\n");
}

#[tokio::test]
async fn the_command_runs_once_and_again_after_a_401() {
    let script = format!(
        "echo run >> \"$HOME/runs\"; test -e \"$HOME/new\" && echo {KEY} || {{ : > \"$HOME/new\"; echo stale-key; }}"
    );
    let profile = Profile::shell(&script).await;
    for (line, runs) in [
        ("pets list", 2),
        ("pets create Rex --category-id 7", 3),
        ("pets list --all --limit 10 --jq length", 4),
    ] {
        profile.run(line).await.ended(0);
        let log = std::fs::read_to_string(profile.home.path().join("runs"));
        assert_eq!(log.unwrap().lines().count(), runs, "{line}");
    }

    let profile = Profile::shell("echo a-wrong-key").await;
    let ran = profile.run("pets list").await;
    ran.says("hint: check what key_command of profile default prints\n");
    ran.ended(3);
}

#[tokio::test]
async fn no_shell_and_no_input_are_in_between() {
    let profile = Profile::with(&["/bin/echo", "$HOME;`key`"]).await;
    profile.run("auth token").await.printed("$HOME;`key`\n");
    let profile = Profile::with(&["cat"]).await;
    let piped = profile.petstore().stdin("from-the-input");
    let said = "error: key_command of profile default printed nothing\n";
    piped.run("auth token").await.said(said, 3);
}

#[tokio::test]
async fn a_command_without_a_key_says_why() {
    let vault = "echo 'the vault is locked' >&2; exit 3";
    let telltale = "echo sentinel-key; echo 'bad key: sentinel-key' >&2; exit 1";
    let named = "echo ' key=sentinel-key'; echo 'bad key: sentinel-key' >&2; exit 1";
    let escaped = r#"printf 'se\\cret"key\n'; printf 'bad key: se\\cret"key' >&2; exit 1"#;
    // The message ends in the middle of the key.
    let cut = "echo sentinel-key; printf '%-294ssentinel-key' 'bad key:' >&2; exit 1";
    let endless = "yes | head -c 20000 | tr -d '\\n'";
    for (script, expected) in [
        (vault, "ended with exit code 3: the vault is locked\n"),
        ("exit 1", "ended with exit code 1\n"),
        ("kill -9 $$", "was ended by a signal\n"),
        ("true", "printed nothing\n"),
        ("echo one; echo two", "printed more than one line\n"),
        ("echo two words", "printed a key that contains a space"),
        (endless, "printed more than 8 KiB\n"),
        (telltale, "ended with exit code 1: bad key: [hidden]\n"),
        (named, "ended with exit code 1: bad key: [hidden]\n"),
        (escaped, "ended with exit code 1: bad key: [hidden]\n"),
        (cut, "ended with exit code 1: bad key: "),
    ] {
        let profile = Profile::shell(script).await;
        let ran = profile.run("pets list").await;
        ran.says(&format!("error: key_command of profile default {expected}"));
        ran.never_says("senti");
        ran.ended(3);
        assert_eq!(profile.server.requests(..).len(), 0);
    }
    let profile = Profile::with(&["/nowhere/vault"]).await;
    let ran = profile.run("pets list").await;
    ran.says("cannot start `/nowhere/vault`: no such file\n");
    // Nobody asked the service.
    let accepted = profile.run("auth status --jq .accepted").await;
    accepted.shows("null\n");
    accepted.ended(3);
    let profile = Profile::with(&[]).await;
    let ran = profile.run("pets list").await;
    ran.says("is empty\nhint: give a program and its arguments: ");
}

#[tokio::test(start_paused = true)]
async fn a_command_has_ten_seconds_and_a_minute_at_a_terminal() {
    let profile = Profile::shell("exec sleep 600").await;
    let ran = profile.run("pets list").await;
    ran.says("error: key_command of profile default took longer than 10 s\n");
    let ran = profile.petstore().stderr_terminal().run("pets list").await;
    ran.says(" took longer than 1 min");
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_a_command_that_waits_for_it() {
    let profile = Profile::shell("exec sleep 600").await;
    let rows = profile.home.path().join("pets.csv");
    std::fs::write(&rows, "name,categoryId\nRex,7\n").unwrap();
    let import = format!("pets import {}", rows.display());
    for line in [&*import, &format!("{import} --dry-run"), "pets export"] {
        let interrupted = profile.petstore().interrupted_after(Duration::from_secs(1));
        let ran = interrupted.run(line).await;
        ran.said("error: interrupted\n", 130);
    }
}

#[tokio::test]
async fn an_agent_that_the_command_starts_may_go_on() {
    let profile = Profile::shell("sleep 11 & echo a-key").await;
    profile.run("auth token").await.printed("a-key\n");
}

#[tokio::test]
async fn the_command_of_a_file_that_others_can_write_is_not_run() {
    let profile = Profile::shell("echo run >> \"$HOME/runs\"").await;
    let folder = profile.home.path().join("config");
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
    let ran = profile.run("pets list").await;
    let expected = "error: others can write ~/config, so its key_command is not run\n\
                    hint: `chmod go-w ~/config`\n";
    ran.said(expected, 3);
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
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
    let ran = profile.run(&line).await;
    ran.says("error: key_command of profile default is for http://127.0.0.1:");
    ran.ended(3);
    let text = std::fs::read_to_string(profile.file()).unwrap();
    std::fs::write(profile.file(), text.replace("base_url", "# base_url")).unwrap();
    let petstore = profile.petstore().var("PETSTORE_BASE_URL", other.url());
    let said = "error: profile default has a key_command, but no base_url\n\
                hint: add base_url below `[profiles.default]`\n";
    petstore.run("pets list").await.said(said, 3);
    assert!(!profile.home.path().join("runs").exists());
    assert_eq!(other.requests(..).len(), 0);
}
