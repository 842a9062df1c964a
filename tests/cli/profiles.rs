//! The configuration file: profiles, where values come from, and what is wrong with it.

use std::path::Path;

use insta::assert_snapshot;
use petstore_mock::{MockServer, Plan};
use tempfile::TempDir;

use super::harness::{Petstore, Ran};

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

fn home(config: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("config")).unwrap();
    std::fs::write(home.path().join("config/config.toml"), config).unwrap();
    home
}

fn config(home: &TempDir) -> String {
    std::fs::read_to_string(home.path().join("config/config.toml")).unwrap()
}

async fn run(home: &TempDir, line: &str) -> Ran {
    Petstore::bare().home(home.path()).run(line).await
}

#[tokio::test]
async fn shows_where_each_value_comes_from() {
    let home = home(CONFIG);
    let petstore = Petstore::bare().home(home.path()).var("PETSTORE_MAX_WAIT", "7");
    let ran = petstore.var("PETSTORE_API_KEY", "sentinel").run("config list -o table").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    SETTING              VALUE                                FROM
    profile              staging                              config.toml
    base_url             https://staging.petstore.example/v1  profile staging
    api_key              set                                  PETSTORE_API_KEY
    allow_insecure_http  false                                default
    ca_file              –                                    default
    output               table                                --output
    color                auto                                 default
    timeout              30s                                  default
    retries              3                                    default
    max_wait             7s                                   PETSTORE_MAX_WAIT
    max_response_size    10MiB                                default
    limits_store         file                                 default
    --- exit 0
    ");
    let ran = run(&home, "config list --profile production --color never -o tsv").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    profile	production	--profile
    base_url	https://petstore.example/v1	profile production
    api_key		default
    allow_insecure_http	false	default
    ca_file		default
    output	tsv	--output
    color	never	--color
    timeout	30s	default
    retries	3	default
    max_wait	5s	profile production
    max_response_size	10MiB	default
    limits_store	file	default
    --- exit 0
    ");
}

#[tokio::test]
async fn a_flag_goes_before_a_variable_and_that_before_the_profile() {
    let home = home(CONFIG);
    let get = async |vars: &[(&str, &str)], line: &str| {
        let petstore = Petstore::bare().home(home.path());
        let petstore =
            vars.iter().fold(petstore, |petstore, (name, value)| petstore.var(name, value));
        petstore.run(&format!("{line} -o tsv")).await.stdout
    };
    let (var, profile) = (("PETSTORE_MAX_WAIT", "7"), ("PETSTORE_PROFILE", "production"));
    assert_eq!(get(&[], "config get max_wait").await, "2m\n");
    assert_eq!(get(&[profile], "config get max_wait").await, "5s\n");
    assert_eq!(get(&[profile, var], "config get max_wait").await, "7s\n");
    assert_eq!(get(&[profile, var], "config get max_wait --max-wait 9").await, "9s\n");
    let url = get(&[profile], "config get base_url --profile staging").await;
    assert_eq!(url, "https://staging.petstore.example/v1\n");
}

#[tokio::test]
async fn the_profile_is_what_a_command_uses() {
    let server = MockServer::builder().key("k", Plan::Free).start().await.unwrap();
    let text = format!("[profiles.default]\nbase_url = \"{}\"\noutput = \"id\"\n", server.url());
    let home = home(&text);
    let petstore = Petstore::bare().home(home.path()).var("PETSTORE_API_KEY", "k");
    assert_eq!(petstore.run("pets list --limit 2").await.stdout, "1\n2\n");
}

#[tokio::test]
async fn keeps_comments_and_layout_when_a_value_changes() {
    let home = home(CONFIG);
    for line in [
        "config set base_url https://new.petstore.example/v1",
        "config set max_wait 30 --profile new",
        "config unset output",
        "config use production",
    ] {
        let ran = run(&home, line).await;
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.code), ("", "", 0), "{line}");
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
async fn makes_the_file_where_there_is_none() {
    let home = tempfile::tempdir().unwrap();
    let ran = run(&home, "config set base_url https://petstore.example/v1").await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_snapshot!(config(&home), @r#"
    [profiles.default]
    base_url = "https://petstore.example/v1"
    "#);
    assert_eq!(run(&home, "config path").await.stdout, "HOME/config/config.toml\n");
}

#[tokio::test]
async fn says_where_the_file_is_wrong() {
    let wrong = async |text: &str| {
        let ran = run(&home(text), "pets list").await;
        assert_eq!((ran.stdout.as_str(), ran.code), ("", 3));
        ran.stderr
    };
    assert_snapshot!(wrong("[profiles.a]\n  base_ulr = \"x\"\n").await, @"
    error: HOME/config/config.toml line 2: no setting `base_ulr`
    hint: did you mean `base_url`?
    ");
    assert_snapshot!(wrong("profil = \"a\"\n").await, @"
    error: HOME/config/config.toml line 1: no setting `profil`
    hint: did you mean `profile`?
    ");
    assert_snapshot!(wrong("[profiles.a]\noutput = \"jsn\"\n").await, @"error: HOME/config/config.toml line 2: output `jsn` is not table, json, ndjson, csv, tsv or id");
    assert_snapshot!(wrong("[profiles.a]\nmax_wait = [1]\n").await, @"
    error: HOME/config/config.toml line 2: max_wait is not text, a number, true or false
    ");
    assert_snapshot!(wrong("[profiles.\"../a\"]\n").await, @"
    error: HOME/config/config.toml line 1: `../a` is not the name of a profile
    hint: a profile has up to 64 letters, digits, `-` and `_`
    ");
    assert_snapshot!(wrong("profile = \n").await, @"error: HOME/config/config.toml line 1: string values must be quoted, expected literal string");
    assert_snapshot!(wrong("profile = \"stagin\"\n[profiles.staging]\n").await, @"
    error: no profile `stagin`
    hint: did you mean `staging`?
    ");
}

#[tokio::test]
async fn help_version_and_the_mock_mind_no_broken_file() {
    let home = home("this is not TOML");
    for line in ["--help", "--version", "pets --help", "config path", "--mock pets list"] {
        assert_eq!(run(&home, line).await.code, 0, "{line}");
    }
    // Nor is a file that makes no sense overwritten.
    assert_eq!(run(&home, "config set max_wait 1").await.code, 3);
    assert_eq!(config(&home), "this is not TOML");
}

#[tokio::test]
async fn without_a_home_flags_and_variables_still_work() {
    let server = MockServer::builder().key("k", Plan::Free).start().await.unwrap();
    assert_eq!(Petstore::at(&server, "k").run("pets list").await.code, 0);
    let ran = Petstore::bare().run("config set max_wait 1").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: there is no folder for the configuration
    hint: set HOME or XDG_CONFIG_HOME; variables such as PETSTORE_BASE_URL need no folder
    --- exit 3
    ");
}

#[tokio::test]
#[cfg(unix)]
async fn a_home_that_cannot_be_written_is_told_of_only_where_it_must_be() {
    let server = MockServer::builder().key("k", Plan::Free).start().await.unwrap();
    // A file in the place of the folder stops the system's administrator too.
    let home = tempfile::tempdir().unwrap();
    for name in ["config", "state"] {
        std::fs::write(home.path().join(name), "").unwrap();
    }
    let petstore = || Petstore::at(&server, "k").home(Path::new("/proc/petstore"));
    assert_eq!(petstore().run("pets get 1").await.code, 0);
    let ran = petstore().run("config set max_wait 1").await;
    assert!(ran.stderr.starts_with("error: cannot write "), "{}", ran.stderr);
    assert_eq!(ran.code, 1);
    assert_eq!(Petstore::bare().home(home.path()).run("--version").await.code, 0);
}

#[tokio::test]
async fn mistyped_settings_and_profiles_get_a_suggestion() {
    let home = home(CONFIG);
    let ran = run(&home, "config get base_ulr").await;
    assert!(ran.stderr.contains("did you mean `base_url`?"), "{}", ran.stderr);
    assert_eq!(ran.code, 2);
    let ran = run(&home, "config use prodution").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: no profile `prodution`
    hint: did you mean `production`?
    --- exit 9
    ");
    let ran = run(&home, "config set output jsn").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: output `jsn` is not table, json, ndjson, csv, tsv or id
    --- exit 2
    ");
    let ran = run(&home, "config set base_url petstore").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    error: the base URL cannot be used: it does not begin with `https://`
    --- exit 2
    ");
}

#[tokio::test]
async fn lists_the_profiles() {
    let home = home(CONFIG);
    let ran = run(&home, "config profiles -o table").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
       PROFILE     BASE URL                             KEY
       production  https://petstore.example/v1          –
    *  staging     https://staging.petstore.example/v1  –
    --- exit 0
    ");
    let ran = run(&home, "config profiles").await;
    assert_snapshot!(ran.transcript(), @r#"
    --- stdout
    [
      {
        "profile": "production",
        "baseUrl": "https://petstore.example/v1",
        "key": false,
        "inUse": false
      },
      {
        "profile": "staging",
        "baseUrl": "https://staging.petstore.example/v1",
        "key": false,
        "inUse": true
      }
    ]
    --- exit 0
    "#);
}
