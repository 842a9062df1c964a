//! Compares the CPU time of calls with that of reqwest alone, and with reqwest-middleware and
//! reqwest-retry, with several tasks, on both kinds of runtime. Then compares the time of many calls at once, at a service that answers after 100 ms.
//! The mock runs in another process. The two clients take turns, so that the machine's speed
//! cancels out. The ratio is the median of all rounds.
//!
//! `cargo bench -p petstore-client --features file-store --bench cpu`; `-- --test` runs each once,
//! briefly, `-- shared` only those with a shared file, and `-- many` only those of many calls.

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
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use petstore_client::Client;
use petstore_client::limits::{FileStore, Limits};
use petstore_mock::{MockServer, Plan};
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};

const KEY: &str = "bench-key";
/// A separate key for the benchmark with shared limits, because clients that do not share them
/// would count as other users of the key.
const SHARED_KEY: &str = "shared-key";
/// A key whose responses are late.
const LATE_KEY: &str = "late-key";
const LATENCY: Duration = Duration::from_millis(100);

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
        let late = Plan::enterprise(1_000_000, 1_000_000_000);
        let builder = MockServer::builder()
            .key(KEY, plan)
            .key(SHARED_KEY, plan)
            .key(LATE_KEY, late);
        let server = builder.start().await.unwrap();
        let _late = server.faults().on(..).key(LATE_KEY).delay(LATENCY);
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

/// What a call cost, in microseconds.
#[derive(Clone, Copy)]
struct Cost {
    cpu: f64,
    time: f64,
}

/// Runs this many calls from this many tasks. Returns the cost of one call.
fn measure<F: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    tasks: usize,
    calls: usize,
    call: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> Cost {
    let left = Arc::new(AtomicUsize::new(calls));
    let before = cpu();
    let start = Instant::now();
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
    Cost {
        cpu: (cpu() - before).as_secs_f64() * 1e6 / calls,
        time: start.elapsed().as_secs_f64() * 1e6 / calls,
    }
}

type Size = (usize, usize);

/// What is compared.
#[derive(Clone, Copy)]
enum Of {
    Cpu,
    Time,
}

/// Runs two kinds of calls in turns, and prints the medians.
fn compare<A, B>(
    name: &str,
    of: Of,
    runtime: &Runtime,
    (tasks, (rounds, calls)): (usize, Size),
    (first, ours): (&str, impl Fn() -> A + Clone + Send + Sync + 'static),
    (second, other): (&str, impl Fn() -> B + Clone + Send + Sync + 'static),
) where
    A: Future<Output = ()> + Send + 'static,
    B: Future<Output = ()> + Send + 'static,
{
    let (what, of): (_, fn(Cost) -> f64) = match of {
        Of::Cpu => ("CPU", |cost| cost.cpu),
        Of::Time => ("time", |cost| cost.time),
    };
    measure(runtime, tasks, calls / 4 + 1, ours.clone());
    measure(runtime, tasks, calls / 4 + 1, other.clone());
    let mut rounds: Vec<_> = (0..rounds)
        .map(|_| {
            let ours = of(measure(runtime, tasks, calls, ours.clone()));
            let other = of(measure(runtime, tasks, calls, other.clone()));
            (ours / other, ours, other)
        })
        .collect();
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, ours, other) = rounds[rounds.len() / 2];
    println!(
        "{name:14} {tasks:4} tasks: {first} {ours:6.1} us of {what} a call, {second} {other:6.1}: {ratio:.3}"
    );
}

/// A call of the client.
fn call(client: Client) -> impl Fn() -> BoxFuture<'static, ()> + Clone + Send + Sync {
    move || {
        let call = client.store().orders().send();
        Box::pin(async move { drop(call.await.unwrap()) })
    }
}

/// The same request with reqwest alone, sent again if the connection fails: too many new ones at
/// once overflow the server's queue.
fn bare(
    server: &Server,
    key: &'static str,
) -> impl Fn() -> BoxFuture<'static, ()> + Clone + Send + Sync + use<> {
    let http = reqwest::Client::new();
    let url = format!("{}/store/orders", server.url);
    move || {
        let (http, url) = (http.clone(), url.clone());
        Box::pin(async move {
            let response = loop {
                if let Ok(response) = http.get(&url).bearer_auth(key).send().await {
                    break response;
                }
            };
            let body = response.bytes().await.unwrap();
            drop(serde_json::from_slice::<serde_json::Value>(&body).unwrap());
        })
    }
}

/// The same request with reqwest-middleware and reqwest-retry.
fn retried(
    server: &Server,
    key: &'static str,
) -> impl Fn() -> BoxFuture<'static, ()> + Clone + Send + Sync + use<> {
    let policy = ExponentialBackoff::builder().build_with_max_retries(3);
    let http = reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
        .with(RetryTransientMiddleware::new_with_policy(policy))
        .build();
    let url = format!("{}/store/orders", server.url);
    move || {
        let (http, url) = (http.clone(), url.clone());
        Box::pin(async move {
            let response = http.get(&url).bearer_auth(key).send().await.unwrap();
            let body = response.bytes().await.unwrap();
            drop(serde_json::from_slice::<serde_json::Value>(&body).unwrap());
        })
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "--serve") {
        return serve();
    }
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let is_all = !has("shared") && !has("many");
    let briefly = has("--test");
    let size = if briefly { (1, 100) } else { (15, 10_000) };
    let server = Server::start();
    let current = Builder::new_current_thread().enable_all().build().unwrap();
    let multi = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let builder = |key: &'static str| Client::builder(&server.url).api_key(key);
    let runtimes = [("current thread", &current), ("multi thread", &multi)];
    let against_reqwest = |of, key, tasks, size| {
        for (name, runtime) in runtimes {
            let ours = ("client", call(builder(key).build().unwrap()));
            compare(
                name,
                of,
                runtime,
                (tasks, size),
                ours,
                ("reqwest", bare(&server, key)),
            );
        }
    };
    if is_all {
        for tasks in [1, 16, 64] {
            against_reqwest(Of::Cpu, KEY, tasks, size);
        }
        for (name, runtime) in runtimes {
            let ours = ("client", call(builder(KEY).build().unwrap()));
            let theirs = ("middleware", retried(&server, KEY));
            compare(name, Of::Cpu, runtime, (16, size), ours, theirs);
        }
    }
    if is_all || has("many") {
        against_reqwest(Of::Time, LATE_KEY, 1024, size);
    }
    if is_all || has("shared") {
        let folder = tempfile::tempdir().unwrap();
        for tasks in [1, 64, 256] {
            let store = FileStore::new(folder.path());
            let shared = builder(SHARED_KEY)
                .limits(Limits::new().store(store))
                .build()
                .unwrap();
            let shared = ("by a file", call(shared));
            let alone = ("alone", call(builder(KEY).build().unwrap()));
            compare("shared", Of::Cpu, &current, (tasks, size), shared, alone);
        }
    }
}
