//! Tests of the configuration file: profiles, sources of values, and errors.

use std::path::Path;

use insta::assert_snapshot;
use petstore_mock::{Operation, Plan};
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
        Petstore::bare()
            .home(home.path())
            .var("PETSTORE_MAX_WAIT", "7")
            .var("PETSTORE_API_KEY", "sentinel")
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
        "config set color alwys",
        "config set base_url petstore",
        "config unset timeout",
        "pets list --profile prodution",
    ];
    let petstore = || Petstore::bare().home(home.path());
    let mut text = session(petstore, &lines).await;
    let soon = || petstore().var("PETSTORE_TIMEOUT", "soon");
    text += &session(soon, &["config list"]).await;
    let gone = || petstore().var("PETSTORE_PROFILE", "gone");
    text += &session(gone, &["pets list"]).await;
    #[cfg(unix)]
    {
        let bytes: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff");
        let garbled = || petstore().var("PETSTORE_API_KEY", bytes);
        text += &session(garbled, &["pets list"]).await;
    }
    assert_snapshot!(text);
}

#[tokio::test]
async fn says_where_the_file_is_wrong() {
    let mut text = String::new();
    for config in [
        "[profiles.a]\n  color = \"alwys\"\n",
        "[profiles.a]\nretries = \"many\"\n",
        "[profiles.a]\nallow_insecure_http = 1\n",
        "[profiles.a]\nkey_command = \"echo sentinel\"\n",
        "[profile.a]\n",
        "output = \"json\"\n",
        "[profiles.a]\nmax_wait = [1]\n",
        "[profiles.\"../a\"]\n",
        "profile = \"stagin\"\n[profiles.staging]\n",
    ] {
        let home = home_with(config);
        let petstore = || Petstore::bare().home(home.path());
        text += &format!("# {config}{}", session(petstore, &["pets list"]).await);
    }
    assert_snapshot!(text);
    for (config, problem) in [
        (
            "profil = \"a\"\n",
            "config.toml line 1: unknown field `profil`",
        ),
        ("profiles = 1\n", "config.toml line 1: "),
        ("\nprofile = \n", "config.toml line 2: "),
    ] {
        run(&home_with(config), "pets list").await.says(problem);
    }
}

#[tokio::test]
async fn a_hint_repeats_what_led_to_the_service() {
    let server = serve("k", Plan::Free).await;
    let creates = server.faults().on(Operation::CreatePet);
    let _lost = creates.reset();
    let url = server.url();
    let home = home_with(&format!("[profiles.staging]\nbase_url = \"{url}\"\n"));
    let create = "pets create Rex --category-id 7 --retries 0";
    let url = format!("--base-url {url}");
    let staging = "--profile staging";
    for (variable, typed, repeated) in [
        ("", staging, staging),
        ("staging", "", staging),
        ("", &url, &url),
    ] {
        let petstore = || {
            let keyed = Petstore::bare().var("PETSTORE_API_KEY", "k");
            let at_home = keyed.var("PETSTORE_PROFILE", variable).home(home.path());
            at_home.stderr_terminal().width(40)
        };
        let ran = petstore().run(&format!("limits {typed}")).await;
        ran.says(&format!("`petstore limits --refresh {repeated}`\n"));
        // A part of the command on the next line would be another command.
        let ran = petstore().run(&format!("{create} {typed}")).await;
        ran.says(&format!("`petstore pets list --all {repeated}`\n"));
        ran.ended(6);
        let ran = petstore().run(&format!("limits --forget {typed}")).await;
        ran.ended(0);
    }
    let pets = home.path().join("pets.csv");
    std::fs::write(&pets, "name,categoryId\nA,1\n").unwrap();
    let import = format!("pets import {}", pets.display());
    let keyed = Petstore::bare().var("PETSTORE_API_KEY", "k");
    let staging = keyed.var("PETSTORE_PROFILE", "staging").home(home.path());
    let ran = staging.run(&import).await;
    ran.says("`petstore --profile staging pets import HOME/pets.csv --unknown check` ");
    let plan = "pets import --dry-run --mock";
    let ran = Petstore::bare()
        .stdin("name,categoryId\nA,1\n")
        .run(plan)
        .await;
    ran.shows("`petstore limits --refresh --mock` asks for the quotas\n");
}

#[tokio::test]
async fn a_flag_overrides_a_variable_which_overrides_the_profile() {
    let home = home_with(CONFIG);
    let profile = ("PETSTORE_PROFILE", "production");
    let max_wait = ("PETSTORE_MAX_WAIT", "7");
    for (vars, option, expected) in [
        (vec![], "", "2m\n"),
        (vec![profile], "", "5s\n"),
        (vec![profile], "--profile staging", "2m\n"),
        (vec![profile, max_wait], "", "7s\n"),
        (vec![profile, max_wait], "--max-wait 9", "9s\n"),
    ] {
        let mut petstore = Petstore::bare().home(home.path());
        for (name, value) in vars {
            petstore = petstore.var(name, value);
        }
        let line = format!("config get max_wait -o tsv {option}");
        petstore.run(&line).await.printed(expected);
    }
}

#[tokio::test]
async fn to_remove_what_is_not_set_writes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let ran = run(&home, "config unset output").await;
    ran.said("note: profile default has no output\n", 0);
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn the_profile_is_what_a_command_uses() {
    let server = serve("k", Plan::Free).await;
    let url = server.url();
    let set = "output = \"csv\"\nerror_format = \"json\"\n";
    let home = home_with(&format!("[profiles.default]\nbase_url = \"{url}\"\n{set}"));
    let petstore = Petstore::bare().home(home.path());
    let petstore = petstore.var("PETSTORE_API_KEY", "k");
    let ran = petstore.run("pets list --limit 2 --fields id").await;
    ran.printed("id\n1\n2\n");
    ran.says(r#"{"level":"note","#);
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
        ran.said("", 0);
        assert_eq!(ran.stdout, "", "{line}");
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
    let set = "config set base_url https://petstore.example/v1";
    run(&home, set).await.ended(0);
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
        run(&home, line).await.ended(0);
    }
    // An invalid file is not overwritten either.
    run(&home, "config set max_wait 1").await.ended(3);
    assert_eq!(config(&home), "this is not TOML");
}

#[tokio::test]
#[cfg(unix)]
async fn a_read_only_home_is_an_error_only_where_a_file_is_written() {
    let server = serve("k", Plan::Free).await;
    // Not even root can create a folder there.
    let petstore = || Petstore::at(&server, "k").home(Path::new("/proc/petstore"));
    petstore().run("pets list").await.ended(0);
    let ran = petstore().run("config set max_wait 1").await;
    ran.says("error: cannot write ");
    ran.ended(1);
}

#[tokio::test]
async fn a_line_break_in_a_setting_makes_no_new_line() {
    let petstore = Petstore::bare().var("PETSTORE_PROFILE", "a\nerror: forged");
    let ran = petstore.run("pets list").await;
    ran.never_says("\nerror: forged");
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
        ran.says("does not apply to `--mock`\n");
        ran.ended(2);
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
    run(&home, "auth logout --profile nope").await.ended(3);
}

#[tokio::test]
async fn a_certificate_file_is_stored_with_its_whole_path() {
    let home = home_with("");
    run(&home, "config set ca_file ca.pem").await.ended(0);
    let stored = run(&home, "config get ca_file").await.stdout;
    assert!(Path::new(stored.trim()).is_absolute(), "{stored}");
    assert!(stored.ends_with("/ca.pem\n"), "{stored}");
    run(&home, "config set ca_file ~/ca.pem").await.ended(0);
    let kept = run(&home, "config get ca_file").await;
    kept.printed("~/ca.pem\n");
}

#[tokio::test]
async fn an_unreadable_file_stops_no_command_that_variables_describe() {
    let server = serve("k", Plan::Free).await;
    let home = tempfile::tempdir().unwrap();
    // Not even root can read a folder as a file.
    std::fs::create_dir_all(home.path().join("config/config.toml")).unwrap();
    let petstore = Petstore::at(&server, "k").home(home.path());
    let ran = petstore.run("pets list").await;
    ran.says("warning: cannot read HOME/config/config.toml: it is a folder; ");
    ran.ended(0);
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
    run(&home, "config set retries 5").await.ended(0);
    assert!(link.is_symlink());
    let text = std::fs::read_to_string(&target).unwrap();
    assert!(text.contains("retries = 5"), "{text}");
    std::fs::write(&target, "#".repeat(1 << 20) + "\n").unwrap();
    let ran = run(&home, "config list").await;
    ran.says("it is larger than 1 MiB");
}
