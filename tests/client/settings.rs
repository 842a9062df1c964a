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
    error.to_string()
}

#[test]
fn says_what_is_wrong_with_which_part() {
    for (base, expected) in [
        ("   ", "it is empty"),
        ("localhost:4010/v1", "neither http nor https"),
        ("https://h:99999/", "invalid port"),
        ("https://me@petstore.example/v1", "a user name or"),
        ("https://petstore.example/v1?a=b", "a query"),
        ("https://petstore.example/v1#a", "a fragment"),
        ("http://petstore.example/v1", "plain http to another"),
        ("http://127.0.0.1.example/v1", "plain http to another"),
    ] {
        let problem = problem(build(base));
        let begins = problem.starts_with("the base URL cannot be used: ");
        assert!(begins && problem.contains(expected), "{base}: {problem}");
    }
    let builder = || Client::builder("https://petstore.example/v1").api_key(KEY);
    let attempts = RetryPolicy::new().attempts(0);
    let proxy = Connection::new().proxy(Proxy::all("::pw"));
    for (builder, setting) in [
        (builder().api_key(""), "the API key"),
        (builder().user_agent("a\nb"), "the user agent"),
        (builder().retry(attempts), "the number of attempts"),
        (builder().header("Authorization", "x"), "the header"),
        (builder().header("X-Bad", "a\r\nb: c"), "the header"),
        (builder().connection(proxy), "the proxy"),
    ] {
        let problem = problem(builder.build());
        let begins = format!("{setting} cannot be used: ");
        assert!(problem.starts_with(&begins), "{problem}");
    }
}

#[tokio::test]
async fn no_attempts_at_all_are_refused() {
    let client = Client::new("https://petstore.example/v1", KEY).unwrap();
    let none = RequestOptions::new().max_attempts(0);
    let error = list_with(&client, &none).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
}

#[test]
fn allows_what_is_safe_or_was_allowed() {
    for base in [
        "https://petstore.example:8443/v1/",
        " https://petstore.example/v1\n",
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
    for (path, expected) in [
        ("", "/pets"),
        ("/v1/", "/v1/pets"),
        ("/v1//", "/v1/pets"),
        ("/a%20b/v1", "/a%20b/v1/pets"),
        ("/a/../v1", "/v1/pets"),
    ] {
        let client = client(&(server.origin() + path));
        client.pets().list().await.unwrap();
        client.request(Method::GET, "pets").await.unwrap();
        assert!(
            server
                .targets()
                .ends_with(&[expected, expected].map(str::to_owned))
        );
    }
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
    let authorization = seen.header("proxy-authorization");
    assert_eq!(authorization, Some("Basic a2VubmVsOnB3"));
}

#[tokio::test]
async fn the_programs_name_and_headers_are_sent_with_each_request() {
    let server = Wire::start(|_| no_pets());
    let client = builder(&server.base())
        .user_agent("kennel/2.1")
        .header("X-Team", "cats");
    let client = client.build().unwrap();
    client.pets().list().await.unwrap();
    let raw = client.request(Method::GET, "/x");
    raw.header("X-Team", "dogs").await.unwrap();
    let seen = server.seen();
    let agent = seen[0].header("user-agent").unwrap();
    assert!(agent.starts_with("kennel/2.1 petstore-client/"), "{agent}");
    assert_eq!(seen[0].header("x-team"), Some("cats"));
    let teams: Vec<_> = seen[1].values("x-team").collect();
    assert_eq!(teams, ["dogs"]);
    let built = client.pets().list().build().unwrap();
    assert_eq!(built.headers()["x-team"], "cats");
}
