//! Checks that the client uses the proxy of the environment only with its feature `system-proxy`.
//! The proxy is a listener of this program. The first process sets the variables, and starts the
//! second one, which makes the call.
#![allow(clippy::disallowed_methods, reason = "a program reads its environment")]

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use petstore_client::transport::Connection;
use petstore_client::{Client, RequestOptions};

fn main() {
    if std::env::var_os("HTTP_PROXY").is_some() {
        return call();
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let proxy = format!("http://{}", listener.local_addr().expect("an address"));
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        again.env(name, &proxy);
    }
    for name in ["NO_PROXY", "no_proxy", "REQUEST_METHOD"] {
        again.env_remove(name);
    }
    assert!(again.status().expect("it runs").success());
    let was_used = listener.accept().is_ok();
    assert_eq!(
        was_used,
        cfg!(feature = "system-proxy"),
        "the proxy was used: {was_used}"
    );
}

/// Makes a call that always fails: without a proxy, because no host name ends in `.invalid` (RFC
/// 6761), and with the proxy, because that does not answer.
fn call() {
    let once = RequestOptions::new()
        .attempt_timeout(Duration::from_secs(2))
        .max_attempts(1);
    let client = Client::builder("http://petstore.invalid/v1")
        .api_key("key")
        .connection(Connection::new().allow_insecure_http(true))
        .options(&once)
        .build()
        .expect("a client");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    runtime
        .block_on(client.pets().list().send())
        .expect_err("there is no service");
}
