//! What the quota gate costs: by itself, and as part of a call.
//!
//! `cargo bench -p petstore-client --features unstable-internals`

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]

use divan::{AllocProfiler, Bencher, black_box};
use petstore_client::Client;
use petstore_client::internals::OpenGate;
use petstore_mock::{MockServer, Plan};
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

#[divan::bench]
fn acquire_and_release(bencher: Bencher<'_, '_>) {
    let gate = OpenGate::default();
    bencher.bench_local(|| black_box(&gate).acquire_and_release());
}

#[divan::bench]
fn acquire_and_observe(bencher: Bencher<'_, '_>) {
    let gate = OpenGate::default();
    bencher.bench_local(|| black_box(&gate).acquire_and_observe());
}

#[divan::bench(args = [10, 10_000])]
fn join_and_leave_a_line_of(bencher: Bencher<'_, '_>, waiters: usize) {
    let gate = OpenGate::default();
    gate.with_waiters(waiters, |gate| bencher.bench_local(|| black_box(gate).join_and_leave()));
}

/// A whole call over loopback, against a mock on the same runtime.
#[divan::bench_group]
mod call {
    use super::*;

    fn setup() -> (Runtime, MockServer) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let plan = Plan::enterprise(1_000_000_000, 1_000_000_000);
        let builder = MockServer::builder().key("bench-key", plan);
        let server = runtime.block_on(builder.start()).unwrap();
        (runtime, server)
    }

    fn call(bencher: Bencher<'_, '_>, gated: bool) {
        let (runtime, server) = setup();
        let builder = Client::builder(server.url()).api_key("bench-key").quota_gate(gated);
        let client = builder.build().unwrap();
        // The value alone, as from reqwest: what came around it is dropped in the time measured.
        bencher
            .bench_local(|| runtime.block_on(client.store().orders().send()).unwrap().into_inner());
    }

    #[divan::bench]
    fn with_the_gate(bencher: Bencher<'_, '_>) {
        call(bencher, true);
    }

    #[divan::bench]
    fn without_the_gate(bencher: Bencher<'_, '_>) {
        call(bencher, false);
    }

    #[divan::bench]
    fn by_reqwest_alone(bencher: Bencher<'_, '_>) {
        let (runtime, server) = setup();
        let http = reqwest::Client::new();
        let url = format!("{}/store/orders", server.url());
        bencher.bench_local(|| {
            runtime.block_on(async {
                let response = http.get(&url).bearer_auth("bench-key").send().await.unwrap();
                serde_json::from_slice::<serde_json::Value>(&response.bytes().await.unwrap())
                    .unwrap()
            })
        });
    }
}
