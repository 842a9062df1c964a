//! What a shell is told can follow.

use petstore_mock::{MockServer, Plan};
use serde_json::Value;

use super::harness::{Petstore, Ran};
use super::help::{names, printed};

/// All flags of a tree, without their dashes.
fn flags(entry: &Value, into: &mut Vec<String>) {
    for argument in entry["arguments"].as_array().unwrap() {
        let usage = argument["usage"].as_str().unwrap();
        let long = usage.split("--").nth(1).map(|long| long.split([' ', '.', '[']).next().unwrap());
        into.extend(long.map(ToOwned::to_owned));
    }
    entry["commands"].as_array().unwrap().iter().for_each(|inner| flags(inner, into));
}

#[tokio::test]
async fn of_every_shell_know_every_command_and_flag() {
    let tree = serde_json::from_str(&printed("docs --format json").await).unwrap();
    let (mut commands, mut longs) = (Vec::new(), Vec::new());
    names(&tree, &mut commands);
    flags(&tree, &mut longs);
    assert!(longs.len() > 50, "{longs:?}");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = printed(&format!("completions {shell}")).await;
        for name in &commands {
            let last = name.split(' ').next_back().unwrap();
            assert!(script.contains(last), "{shell}: {name}");
        }
        for flag in &longs {
            let dashes = if shell == "fish" { "-l " } else { "--" };
            assert!(script.contains(&format!("{dashes}{flag}")), "{shell}: {flag}");
        }
        assert!(script.contains("ndjson") || shell == "powershell" || shell == "elvish", "{shell}");
        let asks = printed(&format!("completions {shell} --dynamic")).await;
        assert!(asks.contains("PETSTORE_COMPLETE") && asks.len() < 3_000, "{shell}: {asks}");
    }
}

/// Asks what can follow, as fish does: a word on each line, with what it means.
async fn follow(petstore: Petstore, words: &[&str]) -> Vec<String> {
    let asked = petstore.var("PETSTORE_COMPLETE", "fish");
    let Ran { stdout, stderr, code } =
        asked.run_words(&[&["--", "petstore"], words].concat()).await;
    assert_eq!((stderr.as_str(), code), ("", 0));
    stdout.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn that_ask_know_profiles_formats_and_topics_and_send_nothing() {
    let (server, home) = (
        MockServer::builder().key("k", Plan::Free).start().await.unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let at_home = || Petstore::at(&server, "k").home(home.path());
    for profile in ["staging", "production"] {
        let set = format!("config set max_wait 1 --profile {profile}");
        assert_eq!(at_home().run(&set).await.code, 0);
    }
    assert_eq!(follow(at_home(), &["pe"]).await, ["pets"]);
    assert_eq!(
        follow(at_home(), &["pets", "list", "--profile", ""]).await,
        ["production", "staging"]
    );
    assert_eq!(follow(at_home(), &["--profile=s"]).await, ["--profile=staging"]);
    assert_eq!(follow(at_home(), &["config", "use", "p"]).await, ["production"]);
    assert_eq!(follow(at_home(), &["pets", "list", "-o", "t"]).await, ["table", "tsv"]);
    assert_eq!(follow(at_home(), &["pets", "list", "--status", "s"]).await, ["sold"]);
    assert_eq!(follow(at_home(), &["help", "ex"]).await, ["exit-codes"]);
    assert_eq!(follow(at_home(), &["pets", "list", "--fail"]).await, ["--fail-if-truncated"]);
    std::fs::write(home.path().join("config/config.toml"), "broken").unwrap();
    assert_eq!(follow(at_home(), &["--profile", ""]).await, [""; 0]);
    assert_eq!(follow(at_home(), &["pe"]).await, ["pets"]);
    assert_eq!(server.requests(..).len(), 0);
}
