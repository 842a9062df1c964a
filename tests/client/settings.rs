//! Tests of the checks of the builder.

use petstore_client::http::Method;
use petstore_client::retry::RetryPolicy;
use petstore_client::transport::{Connection, Proxy};
use petstore_client::{Client, Error, ErrorKind, RequestOptions};

use super::kit::{KEY, builder, client, list_with, no_pets};
use super::wire::Wire;

fn build(base: &str) -> Result<Client, Error> {
    Client::builder(base).api_key(KEY).build()
}

fn problem(result: Result<Client, Error>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert_eq!(
        (error.operation(), error.attempts(), error.status()),
        (None, 0, None)
    );
    error.to_string()
}

#[test]
fn says_what_is_wrong_with_which_part() {
    for (base, expected) in [
        ("   ", "it is empty"),
        ("petstore.example/v1", "it does not begin with `https://`"),
        ("localhost:4010/v1", "neither http nor https"),
        ("https://", "empty host"),
        ("https://a b/", "invalid"),
        ("https://h:99999/", "invalid port"),
        ("https://me@petstore.example/v1", "a user name or"),
        ("https://petstore.example/v1?a=b", "a query"),
        ("https://petstore.example/v1#a", "a fragment"),
        ("http://petstore.example/v1", "plain http to another"),
        ("http://127.0.0.1.example/v1", "plain http to another"),
        ("http://localhost.example/v1", "plain http to another"),
    ] {
        let problem = problem(build(base));
        let begins = problem.starts_with("the base URL cannot be used: ");
        assert!(begins && problem.contains(expected), "{base}: {problem}");
    }
    let builder = || Client::builder("https://petstore.example/v1");
    let attempts = RetryPolicy::new().attempts(0);
    for (builder, expected) in [
        (builder().api_key(""), "the API key cannot be used: it"),
        (builder(), "the API key cannot be used: none was given"),
        (
            builder().api_key(KEY).user_agent("a\nb"),
            "the user agent cannot be used",
        ),
        (
            builder().api_key(KEY).retry(attempts),
            "the number of attempts cannot be used: it must be at least 1",
        ),
        (
            builder().api_key(KEY).header("Authorization", "x"),
            "the header cannot be used: ",
        ),
        (
            builder().api_key(KEY).header("bad name", "x"),
            "the header cannot be used: ",
        ),
        (
            builder().api_key(KEY).header("X-Bad", "a\r\nb: c"),
            "the header cannot be used: ",
        ),
        (
            builder()
                .api_key(KEY)
                .connection(Connection::new().proxy(Proxy::all("::pw"))),
            "the proxy cannot be used: its URL is not valid",
        ),
    ] {
        let problem = problem(builder.build());
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[tokio::test]
async fn no_attempts_at_all_are_refused() {
    let client = Client::new("https://petstore.example/v1", KEY).unwrap();
    let none = RequestOptions::new().max_attempts(0);
    let error = list_with(&client, &none).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    let expected = "the number of attempts cannot be used: it must be at least 1";
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
    client
        .connection(Connection::new().allow_insecure_http(true))
        .build()
        .unwrap();
}

#[tokio::test]
async fn a_base_url_may_have_any_path_and_a_trailing_slash() {
    let server = Wire::start(|_| no_pets());
    for path in ["", "/", "/v1", "/v1/", "/v1//", "/a%20b/v1", "/a/../v1"] {
        let client = client(&(server.origin() + path));
        client.pets().list().await.unwrap();
        client.request(Method::GET, "pets").send().await.unwrap();
    }
    let each = [
        "/pets",
        "/pets",
        "/v1/pets",
        "/v1/pets",
        "/v1/pets",
        "/a%20b/v1/pets",
        "/v1/pets",
    ];
    let expected: Vec<_> = each.iter().flat_map(|path| [*path, *path]).collect();
    assert_eq!(server.targets(), expected);
}

#[tokio::test]
async fn a_proxy_is_not_asked_for_a_server_on_this_machine() {
    let proxy = Wire::start(|_| no_pets());
    let server = Wire::start(|_| no_pets());
    let client = builder(&server.base())
        .connection(Connection::new().proxy(Proxy::all(proxy.origin())))
        .build()
        .unwrap();
    client.pets().list().await.unwrap();
    assert_eq!((proxy.count(), server.count()), (0, 1));
}

#[tokio::test]
async fn a_proxy_is_used_for_remote_servers_with_its_credentials() {
    let proxy = Wire::start(|_| no_pets());
    let settings = Proxy::all(proxy.origin())
        .basic_auth("kennel", "pw")
        .no_proxy(".internal");
    assert!(!format!("{settings:?}").contains("pw"));
    let client = Client::builder("http://petstore.test/v1")
        .api_key(KEY)
        .connection(Connection::new().proxy(settings).allow_insecure_http(true));
    let client = client.build().unwrap();
    client.pets().list().await.unwrap();
    let seen = proxy.seen().remove(0);
    assert_eq!(seen.line, "GET http://petstore.test/v1/pets HTTP/1.1");
    let head = seen.head.to_ascii_lowercase();
    assert!(
        head.contains("proxy-authorization: basic a2vubmvsonb3"),
        "{head}"
    );
}

#[tokio::test]
async fn the_programs_name_and_headers_are_sent_with_each_request() {
    let server = Wire::start(|_| no_pets());
    let client = builder(&server.base())
        .user_agent("kennel/2.1")
        .header("X-Team", "cats");
    let client = client.build().unwrap();
    client.pets().list().await.unwrap();
    client
        .request(Method::GET, "/x")
        .header("X-Team", "dogs")
        .await
        .unwrap();
    let head = |number: usize| server.seen()[number].head.to_ascii_lowercase();
    assert!(
        head(0).contains("user-agent: kennel/2.1 petstore-client/"),
        "{}",
        head(0)
    );
    assert!(
        head(0).contains("x-team: cats") && !head(1).contains("cats"),
        "{}",
        head(1)
    );
    assert!(head(1).contains("x-team: dogs"), "{}", head(1));
    let built = client.pets().list().build().unwrap();
    assert_eq!(built.headers()["x-team"], "cats");
}
