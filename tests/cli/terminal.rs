//! Tests that text from the service is escaped in every format.

use petstore_mock::{MockServer, Plan, Seed, SeedPet};

use super::harness::Petstore;

const HARMFUL: &str =
    "\u{1b}]0;owned\u{7}a\tb\r\nc\\n\u{7f}\u{9b}2J\u{202e}evil\u{200b}\u{feff}\u{e0041}";

async fn server() -> MockServer {
    let seed = Seed::new()
        .pet(SeedPet::new(HARMFUL, 1))
        .pet(SeedPet::new("犬", 2));
    MockServer::builder()
        .key("k", Plan::Free)
        .seed(seed)
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_hostile_name_acts_on_no_terminal_and_no_line_based_tool() {
    let server = server().await;
    for line in [
        "pets list -o table",
        "pets list -o tsv",
        "api /pets -o table",
    ] {
        let ran = Petstore::at(&server, "k").run(line).await;
        let acts = |c: char| c.is_control() && !"\n\t".contains(c);
        assert!(!ran.stdout.contains(acts), "{line}: {:?}", ran.stdout);
        let shown =
            r"\u{1b}]0;owned\u{7}a\tb\r\nc\\n\u{7f}\u{9b}2J\u{202e}evil\u{200b}\u{feff}\u{e0041}";
        let lines = ran.stdout.lines().filter(|line| line.contains(shown));
        assert_eq!(lines.count(), 1, "{line}: {}", ran.stdout);
    }
    let ran = Petstore::at(&server, "k").run("pets list -o tsv").await;
    assert_eq!(ran.stdout.lines().next().unwrap().split('\t').count(), 4);
}

#[tokio::test]
async fn an_error_that_repeats_hostile_text_is_harmless() {
    let server = server().await;
    let path = format!("/pets?status={}", "%1b%5B2J%C2%9B%E2%80%AE");
    let ran = Petstore::at(&server, "k")
        .terminal()
        .run_words(&["api", &path])
        .await;
    assert_eq!(ran.code, 4);
    assert!(
        !ran.stderr.contains(|c: char| c.is_control() && c != '\n'),
        "{:?}",
        ran.stderr
    );
}

#[tokio::test]
async fn a_body_that_verbose_shows_is_harmless() {
    let ran = Petstore::at(&server().await, "k")
        .run("pets list -vvv")
        .await;
    ran.says("owned");
    let acts = |c: char| c.is_control() && !"\n\t".contains(c);
    assert!(!ran.stderr.contains(acts), "{:?}", ran.stderr);
    assert!(
        !ran.stderr.contains(['\u{202e}', '\u{200b}', '\u{e0041}']),
        "{:?}",
        ran.stderr
    );
}
