//! Completions of an incomplete line.

use petstore_mock::Plan;

use super::harness::{Petstore, serve};

#[tokio::test]
async fn each_shell_gets_a_script_and_the_place_to_put_it() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = Petstore::bare().run(&format!("completions {shell}")).await;
        ran.shows("PETSTORE_COMPLETE");
        ran.says("note: put it into ");
        ran.ended(0);
    }
}

/// Requests completions like fish: a word with its description on each line.
pub(super) async fn follow(petstore: Petstore, words: &[&str]) -> Vec<String> {
    let asked = petstore.var("PETSTORE_COMPLETE", "fish");
    let words = [&["--", "petstore"], words].concat();
    let ran = asked.run_words(&words).await;
    ran.said("", 0);
    ran.stdout
        .lines()
        .map(|line| line.split('\t').next().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn profiles_and_values_complete_without_a_request() {
    let (server, home) = (serve("k", Plan::Free).await, tempfile::tempdir().unwrap());
    let at_home = || Petstore::at(&server, "k").home(home.path());
    for profile in ["staging", "production"] {
        let set = format!("config set max_wait 1 --profile {profile}");
        assert_eq!(at_home().run(&set).await.code, 0);
    }
    for (line, offered) in [
        ("pets list --profile ", "production staging"),
        ("--profile=s", "--profile=staging"),
        ("pets list --status s", "sold"),
        ("pets list --fields id,na", "id,name"),
        ("pets import --unknown c", "check"),
        ("pets list --fail", "--fail-if-truncated"),
        ("pets list --max-w", "--max-wait"),
        ("pets ", "list create get import export help --help"),
        ("pets ad", "add"),
        ("config set ma", "max_wait max_response_size"),
        ("config set limits_store o", "off"),
        ("config set retries ", "--help"),
        ("config delete p", "production"),
        ("api -X P", "POST PUT PATCH"),
    ] {
        let words: Vec<_> = line.split(' ').collect();
        assert_eq!(follow(at_home(), &words).await.join(" "), offered, "{line}");
    }
    std::fs::write(home.path().join("config/config.toml"), "broken").unwrap();
    assert_eq!(follow(at_home(), &["--profile", ""]).await, [""; 0]);
    assert_eq!(follow(at_home(), &["pe"]).await, ["pets"]);
    assert_eq!(server.requests(..).len(), 0);
}
