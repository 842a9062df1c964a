//! What is checked before the first request, through the public builder.

use petstore_client::{Client, Error, ErrorKind};

use super::kit::{KEY, client, no_pets};
use super::wire::Wire;

fn build(base: &str) -> Result<Client, Error> {
    Client::builder(base).api_key(KEY).build()
}

fn problem(result: Result<Client, Error>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert_eq!((error.operation(), error.attempts(), error.status()), (None, 0, None));
    error.to_string()
}

#[test]
fn says_what_is_wrong_with_which_part() {
    for (base, expected) in [
        ("", "the base URL cannot be used: it is empty"),
        ("   ", "the base URL cannot be used: it is empty"),
        ("petstore.example/v1", "the base URL cannot be used: it does not begin with `https://`"),
        ("localhost:4010/v1", "neither http nor https"),
        ("ftp://petstore.example/v1", "neither http nor https"),
        ("https://", "empty host"),
        ("https://a b/", "invalid"),
        ("https://[::1/", "invalid IPv6 address"),
        ("https://h:99999/", "invalid port"),
        ("https://me@petstore.example/v1", "a user name or a password"),
        ("https://petstore.example/v1?a=b", "a query"),
        ("https://petstore.example/v1#a", "a fragment"),
        ("http://petstore.example/v1", "plain http to another machine"),
        ("http://127.0.0.1.example/v1", "plain http to another machine"),
        ("http://localhost.example/v1", "plain http to another machine"),
    ] {
        let problem = problem(build(base));
        assert!(problem.contains(expected), "{base}: {problem}");
        assert!(problem.starts_with("the base URL cannot be used: "), "{base}: {problem}");
    }
    for key in ["", " k", "k\n", "k k", "\u{0}", "schlüssel"] {
        let result = Client::builder("https://petstore.example/v1").api_key(key).build();
        assert!(problem(result).starts_with("the API key cannot be used: it"), "{key:?}");
    }
    let none = Client::builder("https://petstore.example/v1").build();
    assert!(problem(none).contains("the API key cannot be used: none was given"));
    let agent = Client::builder("https://petstore.example/v1").api_key(KEY).user_agent("a\nb");
    assert!(problem(agent.build()).contains("the user agent cannot be used"));
}

#[tokio::test]
async fn no_attempts_at_all_are_refused() {
    let none = Client::builder("https://petstore.example/v1").api_key(KEY).max_attempts(0).build();
    let expected = "the number of attempts cannot be used: it must be at least 1";
    assert_eq!(problem(none), expected);
    let client = Client::new("https://petstore.example/v1", KEY).unwrap();
    let error = client.pets().list().max_attempts(0).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn allows_what_is_safe_or_was_allowed() {
    for base in [
        "https://petstore.example",
        "https://petstore.example:8443/v1/",
        " https://petstore.example/v1\n",
        "http://127.0.0.1:4010/v1",
        "http://127.9.9.9/v1",
        "http://[::1]:4010/v1",
        "http://localhost:4010/v1",
    ] {
        build(base).unwrap();
    }
    let client = Client::builder("http://petstore.example/v1").api_key(KEY);
    client.allow_insecure_http(true).build().unwrap();
}

#[tokio::test]
async fn a_base_url_may_have_any_path_or_none_and_a_slash_at_its_end_or_none() {
    let server = Wire::start(|_| no_pets()).await;
    for path in ["", "/", "/v1", "/v1/", "/v1//", "/a%20b/v1", "/a/../v1"] {
        let client = client(&(server.origin() + path));
        client.pets().list().send().await.unwrap();
        client.request(petstore_client::Method::GET, "pets").send().await.unwrap();
    }
    let each = ["/pets", "/pets", "/v1/pets", "/v1/pets", "/v1/pets", "/a%20b/v1/pets", "/v1/pets"];
    let expected: Vec<_> = each.iter().flat_map(|path| [*path, *path]).collect();
    assert_eq!(server.targets(), expected);
}

#[tokio::test]
async fn what_could_carry_the_key_off_stays_off_whatever_client_is_brought_along() {
    let thief = Wire::start(|_| no_pets()).await;
    let target = thief.base();
    let server = Wire::start(move |_| super::kit::answer(307, &[("Location", &target)], "")).await;
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::limited(5));
    let client = Client::builder(server.base()).api_key(KEY).http_client(http).build().unwrap();
    let error = client.pets().list().send().await.unwrap_err();
    assert_eq!(error.status().unwrap(), 307);
    assert_eq!(thief.count(), 0);
}

#[tokio::test]
async fn a_proxy_is_not_asked_for_a_server_on_this_machine() {
    let proxy = Wire::start(|_| no_pets()).await;
    let server = Wire::start(|_| no_pets()).await;
    let http = reqwest::Client::builder().proxy(reqwest::Proxy::all(proxy.origin()).unwrap());
    let client = Client::builder(server.base()).api_key(KEY).http_client(http).build().unwrap();
    client.pets().list().send().await.unwrap();
    assert_eq!((proxy.count(), server.count()), (0, 1));
}
