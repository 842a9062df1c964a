//! Tests of which clients of a process share a limiter.

use std::sync::Arc;

use http::HeaderValue;
use url::Url;

use crate::rate_limit::{ClientLimiters, FileStore, Limiter, Limits};

/// Returns the limiter of a new client with these limits.
fn limiter(limits: Limits) -> Arc<Limiter> {
    let base = Url::parse("https://registry.example/v1").unwrap();
    ClientLimiters::new(base, limits).get(&HeaderValue::from_static("Bearer key"))
}

#[tokio::test]
async fn clients_share_a_limiter_if_their_stores_are_in_one_folder() {
    let in_folder = |folder| limiter(Limits::new().store(FileStore::new(folder)));
    assert!(Arc::ptr_eq(&in_folder("one"), &in_folder("one")));
    assert!(!Arc::ptr_eq(&in_folder("one"), &in_folder("other")));
    assert!(!Arc::ptr_eq(&in_folder("one"), &limiter(Limits::new())));
}

/// A corrected password must not wait for the end of the process.
#[cfg(feature = "redis")]
#[tokio::test]
async fn a_redis_with_other_settings_is_another_store() {
    use crate::rate_limit::RedisStore;

    let server = petstore_mock::MockServer::builder().tls().start();
    let server = server.await.unwrap();
    let at = |url: &str| RedisStore::new(url).unwrap();
    let of = |store: RedisStore| limiter(Limits::new().store(store));
    let url = "rediss://user:wrong@127.0.0.1:1/0";
    let first = of(at(url));
    assert!(Arc::ptr_eq(&first, &of(at(url))));
    for other in [
        at("rediss://user:right@127.0.0.1:1/0"),
        at("rediss://127.0.0.1:1/0"),
        at(url).key_prefix("a:"),
        at(url)
            .root_certificates(server.ca_certificate().unwrap())
            .unwrap(),
    ] {
        assert!(!Arc::ptr_eq(&first, &of(other.clone())), "{other:?}");
        assert!(Arc::ptr_eq(&of(other.clone()), &of(other)));
    }
    let prefixes = ["a:", "b:"].map(|prefix| of(at(url).key_prefix(prefix)));
    assert!(!Arc::ptr_eq(&prefixes[0], &prefixes[1]));
}
