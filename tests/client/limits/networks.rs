//! Tests of limits over HTTP/2 and IPv6.

use petstore_client::transport::Connection;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};

use futures_util::future::join_all;
use petstore_mock::Plan;
use tokio::time::Instant;

use crate::client::kit::{key, mock, secs};
use crate::client::service::{MINUTE, get, patient, refused};

/// Returns the loopback addresses of this machine.
fn hosts() -> impl Iterator<Item = IpAddr> {
    let hosts: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    hosts
        .into_iter()
        .filter(|host| TcpListener::bind((*host, 0)).is_ok())
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_used_up_without_a_refusal_over_http_2_and_ipv6() {
    for host in hosts() {
        for over_tls in [false, true] {
            let name = format!("{}-{host}-{over_tls}", key());
            let server = mock(name.clone(), Plan::Free).addr(host);
            // With TLS, client and mock agree on HTTP/2.
            let server = if over_tls { server.tls() } else { server };
            let server = server.start().await.unwrap();
            let mut client = patient(server.url()).api_key(name);
            if let Some(authority) = server.ca_certificate() {
                client = client.connection(Connection::new().roots(authority));
            }
            let client = client.build().unwrap();
            let began = Instant::now();
            let calls = join_all((0..130).map(|_| get(&client)));
            for result in calls.await {
                result.unwrap();
            }
            let took = began.elapsed();
            assert_eq!(refused(&server), 0, "{host} {over_tls}");
            assert!(took < 2 * MINUTE + secs(10), "{host} {over_tls}: {took:?}");
        }
    }
}
