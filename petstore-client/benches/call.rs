//! Measures the time and the allocations of one call at a time over loopback, and compares them
//! with those of reqwest alone. The mock runs on the same runtime.
//!
//! `cargo bench -p petstore-client --bench call`

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

use divan::{AllocProfiler, Bencher};
use petstore_client::Client;
use petstore_client::limits::Limits;
use petstore_mock::{MockServer, Plan};
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

fn setup() -> (Runtime, MockServer) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let plan = Plan::enterprise(1_000_000_000, 1_000_000_000);
    let builder = MockServer::builder().key("bench-key", plan);
    let server = runtime.block_on(builder.start()).unwrap();
    (runtime, server)
}

fn call(bencher: Bencher<'_, '_>, rate_limiting: bool) {
    let (runtime, server) = setup();
    let builder = Client::builder(server.url())
        .api_key("bench-key")
        .limits(Limits::new().enabled(rate_limiting));
    let client = builder.build().unwrap();
    bencher.bench_local(|| runtime.block_on(client.store().orders().send()).unwrap());
}

#[divan::bench]
fn with_rate_limiting(bencher: Bencher<'_, '_>) {
    call(bencher, true);
}

#[divan::bench]
fn without_rate_limiting(bencher: Bencher<'_, '_>) {
    call(bencher, false);
}

#[divan::bench]
fn by_reqwest_alone(bencher: Bencher<'_, '_>) {
    let (runtime, server) = setup();
    let http = reqwest::Client::new();
    let url = format!("{}/store/orders", server.url());
    bencher.bench_local(|| {
        runtime.block_on(async {
            let response = http
                .get(&url)
                .bearer_auth("bench-key")
                .send()
                .await
                .unwrap();
            serde_json::from_slice::<serde_json::Value>(&response.bytes().await.unwrap()).unwrap()
        })
    });
}
