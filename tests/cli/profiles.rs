//! Tests of the configuration file: profiles, sources of values, and errors.

use std::path::Path;

use insta::assert_snapshot;
use petstore_mock::Plan;
use tempfile::TempDir;

use super::harness::{Petstore, Ran, home_with, serve, session};

const CONFIG: &str = "\
# My profiles.
profile = \"staging\" # for now

[profiles.staging]
base_url = \"https://staging.petstore.example/v1\" # not for everyone
output = \"json\"

[profiles.production]
base_url = \"https://petstore.example/v1\"
max_wait = 5
";

fn config(home: &TempDir) -> String {
    std::fs::read_to_string(home.path().join("config/config.toml")).unwrap()
}

async fn run(home: &TempDir, line: &str) -> Ran {
    Petstore::bare().home(home.path()).run(line).await
}

#[tokio::test]
async fn shows_settings_and_profiles_with_their_sources() {
    let home = home_with(CONFIG);
    let petstore = || {
        let petstore = Petstore::bare()
            .home(home.path())
            .var("PETSTORE_MAX_WAIT", "7");
        petstore.var("PETSTORE_API_KEY", "sentinel")
    };
    let lines = [
        "config list -o table",
        "config list --profile production --color never -o tsv",
        "config get max_wait",
        "config get output --profile production",
        "config profiles -o table",
        "config profiles",
        "config path",
    ];
    assert_snapshot!(session(petstore, &lines).await);
}

#[tokio::test]
async fn mistakes_in_settings_and_profiles() {
    let home = home_with(CONFIG);
    let lines = [
        "config get base_ulr",
        "config get ca_file",
        "config use prodution",
        "config set output jsn",
        "config set base_url petstore",
        "config unset timeout",
        "pets list --profile prodution",
    ];
    let mut text = session(|| Petstore::bare().home(home.path()), &lines).await;
    let variable = || {
        Petstore::bare()
            .home(home.path())
            .var("PETSTORE_TIMEOUT", "soon")
    };
    text += &session(variable, &["config list"]).await;
    #[cfg(unix)]
    {
        let garbled = || {
            Petstore::bare()
                .home(home.path())
                .garbled("PETSTORE_API_KEY")
        };
        text += &session(garbled, &["pets list"]).await;
    }
    assert_snapshot!(text);
}

#[tokio::test]
async fn says_where_the_file_is_wrong() {
    let mut text = String::new();
    for config in [
        "[profiles.a]\n  base_ulr = \"x\"\n",
        "profil = \"a\"\n",
        "profiles = 1\n",
        "[profiles.a]\noutput = \"jsn\"\n",
        "[profiles.a]\nmax_wait = [1]\n",
        "[profiles.\"../a\"]\n",
        "profile = \n",
        "profile = \"stagin\"\n[profiles.staging]\n",
    ] {
        let home = home_with(config);
        let petstore = || Petstore::bare().home(home.path());
        text += &format!("# {config}{}", session(petstore, &["pets list"]).await);
    }
    assert_snapshot!(text);
}

#[tokio::test]
async fn a_flag_overrides_a_variable_which_overrides_the_profile() {
    let home = home_with(CONFIG);
    let max_wait = ("PETSTORE_MAX_WAIT", "7");
    let profile = ("PETSTORE_PROFILE", "production");
    for (vars, line, expected) in [
        (&[][..], "config get max_wait", "2m"),
        (&[profile], "config get max_wait", "5s"),
        (&[profile, max_wait], "config get max_wait", "7s"),
        (
            &[profile, max_wait],
            "config get max_wait --max-wait 9",
            "9s",
        ),
        (
            &[profile],
            "config get base_url --profile staging",
            "https://staging.petstore.example/v1",
        ),
    ] {
        let petstore = Petstore::bare().home(home.path());
        let petstore = vars.iter().fold(petstore, |petstore, (name, value)| {
            petstore.var(name, value)
        });
        let ran = petstore.run(&format!("{line} -o tsv")).await;
        ran.printed(&format!("{expected}\n"));
    }
}

#[tokio::test]
async fn the_profile_is_what_a_command_uses() {
    let server = serve("k", Plan::Free).await;
    let text = format!(
        "[profiles.default]\nbase_url = \"{}\"\noutput = \"csv\"\nerror_format = \"json\"\n",
        server.url()
    );
    let home = home_with(&text);
    let petstore = Petstore::bare()
        .home(home.path())
        .var("PETSTORE_API_KEY", "k");
    let ran = petstore.run("pets list --limit 2 --fields id").await;
    assert_eq!(ran.stdout, "id\n1\n2\n");
    assert!(
        ran.stderr.starts_with(r#"{"level":"note","#),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn keeps_comments_and_layout_when_a_value_changes() {
    let home = home_with(CONFIG);
    for line in [
        "config set base_url https://new.petstore.example/v1",
        "config set max_wait 30 --profile new",
        "config unset output",
        "config use production",
    ] {
        let ran = run(&home, line).await;
        assert_eq!(
            (ran.stdout.as_str(), ran.stderr.as_str(), ran.code),
            ("", "", 0),
            "{line}"
        );
    }
    assert_snapshot!(config(&home), @r#"
    # My profiles.
    profile = "production" # for now

    [profiles.staging]
    base_url = "https://new.petstore.example/v1" # not for everyone

    [profiles.production]
    base_url = "https://petstore.example/v1"
    max_wait = 5

    [profiles.new]
    max_wait = 30
    "#);
}

#[tokio::test]
async fn creates_a_missing_file() {
    let home = tempfile::tempdir().unwrap();
    let ran = run(&home, "config set base_url https://petstore.example/v1").await;
    ran.ended(0);
    let expected = "[profiles.default]\nbase_url = \"https://petstore.example/v1\"\n";
    assert_eq!(config(&home), expected);
}

#[tokio::test]
async fn help_version_and_the_mock_ignore_a_broken_file() {
    let home = home_with("this is not TOML");
    for line in [
        "--help",
        "--version",
        "pets --help",
        "config path",
        "--mock pets list",
    ] {
        assert_eq!(run(&home, line).await.code, 0, "{line}");
    }
    // An invalid file is not overwritten either.
    assert_eq!(run(&home, "config set max_wait 1").await.code, 3);
    assert_eq!(config(&home), "this is not TOML");
}

#[tokio::test]
#[cfg(unix)]
async fn a_read_only_home_is_an_error_only_where_a_file_is_written() {
    let server = serve("k", Plan::Free).await;
    // Not even root can create a folder there.
    let petstore = || Petstore::at(&server, "k").home(Path::new("/proc/petstore"));
    assert_eq!(petstore().run("pets get 1").await.code, 0);
    let ran = petstore().run("config set max_wait 1").await;
    assert!(
        ran.stderr.starts_with("error: cannot write "),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.code, 1);
    assert_eq!(petstore().run("--version").await.code, 0);
}

#[tokio::test]
async fn a_line_break_in_a_setting_makes_no_new_line() {
    let petstore = Petstore::bare().var("PETSTORE_PROFILE", "a\nerror: forged");
    let ran = petstore.run("pets list").await;
    assert!(!ran.stderr.contains("\nerror: forged"), "{}", ran.stderr);
    ran.says("`a\\nerror: forged`");
}

#[tokio::test]
async fn the_mock_changes_no_settings_and_no_key() {
    let home = home_with(CONFIG);
    for line in [
        "config set output csv",
        "config unset output",
        "config use production",
        "auth logout",
    ] {
        let ran = run(&home, &format!("--mock {line}")).await;
        assert!(
            ran.stderr.ends_with("does not apply to `--mock`\n"),
            "{line}: {}",
            ran.stderr
        );
        assert_eq!(ran.code, 2);
    }
    assert_eq!(config(&home), CONFIG);
}

#[tokio::test]
async fn a_profile_is_removed_with_its_key_and_its_choice() {
    let home = home_with(CONFIG);
    std::fs::create_dir(home.path().join("config/keys")).unwrap();
    std::fs::write(home.path().join("config/keys/staging"), "secret").unwrap();
    let ran = run(&home, "config delete staging").await;
    let said = "note: removed profile staging and its API key\n\
                note: the default profile is used from now on\n";
    ran.said(said, 0);
    assert!(!home.path().join("config/keys/staging").exists());
    assert_snapshot!(config(&home), @r#"

    [profiles.production]
    base_url = "https://petstore.example/v1"
    max_wait = 5
    "#);
    let said = "error: no profile `staging`\n\
                hint: `petstore config profiles` lists them\n";
    run(&home, "config delete staging").await.said(said, 3);
    let ran = run(&home, "auth logout --profile nope").await;
    ran.ended(3);
}

#[tokio::test]
async fn a_certificate_file_is_stored_with_its_whole_path() {
    let home = home_with("");
    assert_eq!(run(&home, "config set ca_file ca.pem").await.code, 0);
    let stored = run(&home, "config get ca_file").await.stdout;
    assert!(Path::new(stored.trim()).is_absolute(), "{stored}");
    assert!(stored.ends_with("/ca.pem\n"), "{stored}");
    assert_eq!(run(&home, "config set ca_file ~/ca.pem").await.code, 0);
    assert_eq!(run(&home, "config get ca_file").await.stdout, "~/ca.pem\n");
}

#[tokio::test]
async fn an_unreadable_file_stops_no_command_that_variables_describe() {
    let server = serve("k", Plan::Free).await;
    let home = tempfile::tempdir().unwrap();
    // Not even root can read a folder as a file.
    std::fs::create_dir_all(home.path().join("config/config.toml")).unwrap();
    let petstore = Petstore::at(&server, "k").home(home.path());
    let ran = petstore.run("pets list --max 1 --fields id").await;
    assert_eq!((&*ran.stdout, ran.code), ("1\n", 0));
    ran.says(
        "warning: cannot read HOME/config/config.toml: it is a folder; flags and variables apply",
    );
    let ran = run(&home, "pets list").await;
    ran.said(
        "error: cannot read HOME/config/config.toml: it is a folder\n",
        3,
    );
}

#[tokio::test]
#[cfg(unix)]
async fn a_link_to_a_file_stays_and_a_large_file_is_refused() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("config")).unwrap();
    let target = home.path().join("dotfiles.toml");
    std::fs::write(&target, CONFIG).unwrap();
    let link = home.path().join("config/config.toml");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert_eq!(run(&home, "config set retries 5").await.code, 0);
    assert!(link.is_symlink());
    let text = std::fs::read_to_string(&target).unwrap();
    assert!(text.contains("retries = 5"), "{text}");
    for (size, is_read) in [(1 << 20, true), ((1 << 20) + 1, false)] {
        let comment = "#".repeat(size - 1) + "\n";
        std::fs::write(&target, comment).unwrap();
        let ran = run(&home, "config list").await;
        let is_refused = ran.stderr.contains("it is larger than 1 MiB");
        assert_eq!(is_refused, !is_read, "{}", ran.stderr);
    }
}
