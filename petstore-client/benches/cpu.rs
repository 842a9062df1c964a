//! Compares the CPU time of calls with that of reqwest alone, with several tasks, on both kinds of
//! runtime. The mock runs in another process. The two clients take turns, so that the machine's
//! speed cancels out. The ratio is the median of all rounds.
//!
//! `cargo bench -p petstore-client --features file-store --bench cpu`; `-- --test` runs each once,
//! briefly, and `-- shared` only those with a shared file.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, or has failed"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "no runtime waits for this process"
)]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use petstore_client::Client;
use petstore_client::rate_limit::FileStore;
use petstore_mock::{MockServer, Plan};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};

const KEY: &str = "bench-key";
/// A separate key for the benchmark with shared limits, because clients that do not share them
/// would count as other users of the key.
const SHARED_KEY: &str = "shared-key";

/// The mock, in another process.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        let program = std::env::current_exe().unwrap();
        let mut process = Command::new(program)
            .arg("--serve")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.as_mut().unwrap())
            .read_line(&mut url)
            .unwrap();
        Self {
            process,
            url: url.trim().to_owned(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn serve() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let plan = Plan::enterprise(1_000_000_000, 1_000_000_000);
        let builder = MockServer::builder().key(KEY, plan).key(SHARED_KEY, plan);
        let server = builder.start().await.unwrap();
        println!("{}", server.url());
        std::future::pending::<()>().await;
    });
}

/// Returns the CPU time of this process.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap(),
    )
}

/// Runs this many calls from this many tasks. Returns the CPU time of one call in microseconds.
fn measure<F: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    tasks: usize,
    calls: usize,
    call: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> f64 {
    let left = Arc::new(AtomicUsize::new(calls));
    let before = cpu();
    runtime.block_on(async {
        let tasks = (0..tasks).map(|_| {
            let (left, call) = (Arc::clone(&left), call.clone());
            tokio::spawn(async move {
                let take = |left: usize| left.checked_sub(1);
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                    .is_ok()
                {
                    call().await;
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    });
    #[expect(clippy::cast_precision_loss, reason = "a number of calls")]
    let calls = calls as f64;
    (cpu() - before).as_secs_f64() * 1e6 / calls
}

type Size = (usize, usize);

/// Runs two kinds of calls in turns, and prints the medians.
fn compare<A, B>(
    name: &str,
    runtime: &Runtime,
    (tasks, (rounds, calls)): (usize, Size),
    (first, ours): (&str, impl Fn() -> A + Clone + Send + Sync + 'static),
    (second, other): (&str, impl Fn() -> B + Clone + Send + Sync + 'static),
) where
    A: Future<Output = ()> + Send + 'static,
    B: Future<Output = ()> + Send + 'static,
{
    measure(runtime, tasks, calls / 4 + 1, ours.clone());
    measure(runtime, tasks, calls / 4 + 1, other.clone());
    let mut rounds: Vec<_> = (0..rounds)
        .map(|_| {
            let ours = measure(runtime, tasks, calls, ours.clone());
            let other = measure(runtime, tasks, calls, other.clone());
            (ours / other, ours, other)
        })
        .collect();
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, ours, other) = rounds[rounds.len() / 2];
    println!(
        "{name:14} {tasks:4} tasks: {first} {ours:6.1} us of CPU a call, {second} {other:6.1}: {ratio:.3}"
    );
}

/// A call of the client.
fn call(client: Client) -> impl Fn() -> BoxFuture<'static, ()> + Clone + Send + Sync {
    move || {
        let call = client.store().orders().send();
        Box::pin(async move { drop(call.await.unwrap()) })
    }
}

/// The same request with reqwest alone.
fn bare(server: &Server) -> impl Fn() -> BoxFuture<'static, ()> + Clone + Send + Sync + use<> {
    let http = reqwest::Client::new();
    let url = format!("{}/store/orders", server.url);
    move || {
        let call = http.get(&url).bearer_auth(KEY).send();
        Box::pin(async move {
            let body = call.await.unwrap().bytes().await.unwrap();
            drop(serde_json::from_slice::<serde_json::Value>(&body).unwrap());
        })
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "--serve") {
        return serve();
    }
    // Run only the benchmark with shared limits.
    let shared_only = arguments.iter().any(|argument| argument == "shared");
    let briefly = arguments.iter().any(|argument| argument == "--test");
    let size = if briefly { (1, 100) } else { (15, 10_000) };
    let server = Server::start();
    let current = Builder::new_current_thread().enable_all().build().unwrap();
    let multi = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let builder = |key| Client::builder(&server.url).api_key(key);
    for tasks in if shared_only { &[][..] } else { &[1, 64] } {
        for (name, runtime) in [("current thread", &current), ("multi thread", &multi)] {
            let alone = call(builder(KEY).build().unwrap());
            compare(
                name,
                runtime,
                (*tasks, size),
                ("client", alone),
                ("reqwest", bare(&server)),
            );
        }
    }
    let folder = tempfile::tempdir().unwrap();
    for tasks in [1, 64, 256] {
        let store = FileStore::new(folder.path());
        let shared = call(builder(SHARED_KEY).shared_limits(store).build().unwrap());
        let alone = call(builder(KEY).build().unwrap());
        compare(
            "shared",
            &current,
            (tasks, size),
            ("by a file", shared),
            ("alone", alone),
        );
    }
}
