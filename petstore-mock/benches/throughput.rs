//! Measures the mock, and compares it with a bare axum handler that answers the same bytes, in one
//! run: requests a second, CPU time per request, the time until it is ready, and memory. Also
//! measures whether slow clients delay others.
//!
//! `cargo bench -p petstore-mock`; with `-- --test` everything runs once, briefly; with `-- --million`
//! memory is read before and after a million requests.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark may panic")]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]
#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use axum::{Router, body::Body, routing::get};
use bytes::Bytes;
use http::Response;
use petstore_mock::{MockServer, Plan, Seed, SeedPet};

/// The number of concurrent connections.
const CONNECTIONS: usize = 16;

const KEY: &str = "bench-key-0123456789";

fn main() {
    let given = |flag: &str| std::env::args().any(|arg| arg == flag);
    let brief = given("--test");
    let (rounds, requests) = if brief { (1, 100) } else { (31, 4_000) };
    for (method, path) in [
        ("GET", "/v1/pets"),
        ("GET", "/v1/pets/1"),
        ("POST", "/v1/pets"),
    ] {
        compare(method, path, rounds, requests);
    }
    beside_slow_clients(if brief { 8 } else { 1_000 }, rounds, requests);
    ready(if brief { 1 } else { 300 });
    memory(if given("--million") { 1_000_000 } else { 1_000 });
}

/// A server on a separate thread, with one thread to serve.
struct Server {
    name: &'static str,
    addr: SocketAddr,
    /// The file in which Linux reports the CPU time of the thread.
    usage: PathBuf,
    connections: Vec<TcpStream>,
}

impl Server {
    fn start<F>(name: &'static str, serve: F) -> Self
    where
        F: AsyncFnOnce(mpsc::Sender<SocketAddr>) + Send + 'static,
    {
        let (tell, told) = mpsc::channel();
        let (tell_addr, told_addr) = mpsc::channel();
        let thread = std::thread::Builder::new().name(name.to_owned());
        let serve = move || {
            let thread = fs::read_link("/proc/thread-self").unwrap_or_default();
            tell.send(thread).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(serve(tell_addr));
        };
        thread.spawn(serve).unwrap();
        let usage = PathBuf::from("/proc")
            .join(told.recv().unwrap())
            .join("schedstat");
        let addr = told_addr.recv().unwrap();
        let connections = (0..CONNECTIONS).map(|_| connect(addr)).collect();
        Self {
            name,
            addr,
            usage,
            connections,
        }
    }

    fn mock(name: &'static str, journal: usize) -> Self {
        Self::start(name, async move |tell| {
            let server = builder().journal(journal).start().await.unwrap();
            tell.send(server.addr()).unwrap();
            std::future::pending::<()>().await;
        })
    }

    /// A bare axum handler with the same response as the server `like`.
    fn bare(method: &'static str, path: &'static str, like: &Self) -> Self {
        let (head, body) = like.answer(method, path);
        let answer = copy(&head, body);
        Self::start("bare axum", async move |tell| {
            let handler = move |_: Bytes| std::future::ready(answer.clone().map(Body::from));
            let posted = handler.clone();
            let handler = move || handler(Bytes::new());
            let routes = Router::new().route(path, get(handler).post(posted));
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            axum::serve(
                axum::serve::ListenerExt::tap_io(listener, |stream| {
                    stream.set_nodelay(true).unwrap();
                }),
                routes,
            )
            .await
            .unwrap();
        })
    }

    /// Returns the head of an answer, and its body.
    fn answer(&self, method: &str, path: &str) -> (String, Bytes) {
        let mut connection = connect(self.addr);
        connection
            .write_all(request(method, path).as_bytes())
            .unwrap();
        let mut answer = vec![0; 64 * 1024];
        let length = connection.read(&mut answer).unwrap();
        answer.truncate(length);
        let end = answer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        (head, Bytes::from(answer.split_off(end + 4)))
    }

    /// Sends this many requests. Returns the elapsed time and the CPU time of the server.
    fn run(&mut self, method: &str, path: &str, requests: usize) -> (Duration, Option<Duration>) {
        let request = request(method, path);
        let (head, body) = self.answer(method, path);
        let length = head.len() + 4 + body.len();
        let mut answer = vec![0; length];
        let (begun, used) = (Instant::now(), self.used());
        for _ in 0..requests.div_ceil(CONNECTIONS) {
            for connection in &mut self.connections {
                connection.write_all(request.as_bytes()).unwrap();
            }
            for connection in &mut self.connections {
                connection.read_exact(&mut answer).unwrap();
                assert!(answer.starts_with(b"HTTP/1.1 20"), "{}", self.name);
            }
        }
        let took = begun.elapsed();
        (
            took,
            self.used()
                .zip(used)
                .map(|(after, before)| after.saturating_sub(before)),
        )
    }

    fn used(&self) -> Option<Duration> {
        let text = fs::read_to_string(&self.usage).ok()?;
        text.split(' ')
            .next()?
            .parse()
            .ok()
            .map(Duration::from_nanos)
    }
}

/// Returns the builder of a mock whose responses always have the same length.
fn builder() -> petstore_mock::Builder {
    // The ids of pets that are added have the same length, too.
    let pet = |id| SeedPet::new("Captain Plume", 7).with_id(id);
    let seed = (1..=25)
        .chain([1_000_000])
        .fold(Seed::none(), |seed, id| seed.pet(pet(id)));
    MockServer::builder()
        .key(KEY, Plan::enterprise(2_000_000_000, 4_000_000_000))
        .seed(seed)
}

fn connect(addr: SocketAddr) -> TcpStream {
    let connection = TcpStream::connect(addr).unwrap();
    connection.set_nodelay(true).unwrap();
    connection
}

fn request(method: &str, path: &str) -> String {
    if method == "POST" {
        let body = r#"{"name":"Rex","categoryId":7,"status":"available"}"#;
        let length = body.len();
        return format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\n\
             Authorization: Bearer {KEY}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
    }
    format!(
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\n\
         Authorization: Bearer {KEY}\r\n\r\n"
    )
}

/// Returns a response with these fields, except those that the server adds itself.
fn copy(head: &str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = head.split(' ').nth(1).unwrap().parse().unwrap();
    for line in head.lines().skip(1) {
        let (name, value) = line.split_once(": ").unwrap();
        if name != "date" && name != "content-length" {
            let name = http::HeaderName::try_from(name).unwrap();
            response.headers_mut().append(name, value.parse().unwrap());
        }
    }
    response
}

/// Runs three servers in turn, and prints the medians.
fn compare(method: &'static str, path: &'static str, rounds: usize, requests: usize) {
    let mock = Server::mock("mock", 1_000);
    let bare = Server::bare(method, path, &mock);
    let silent = Server::mock("mock, no journal", 0);
    let mut servers = [bare, mock, silent];
    let lengths = servers.each_ref().map(|server| {
        let (head, body) = server.answer(method, path);
        head.len() + body.len()
    });
    assert!(
        lengths.iter().all(|length| *length == lengths[0]),
        "{path}: {lengths:?}"
    );
    let mut measured = [const { (Vec::new(), Vec::new()) }; 3];
    for _ in 0..rounds {
        for (server, (took, used)) in servers.iter_mut().zip(&mut measured) {
            let (time, cpu) = server.run(method, path, requests);
            took.push(micros(time, requests));
            used.push(cpu.map_or(f64::NAN, |cpu| micros(cpu, requests)));
        }
    }
    println!(
        "{method} {path}, {CONNECTIONS} connections, {} bytes each",
        lengths[0]
    );
    let base = (median(&measured[0].0), median(&measured[0].1));
    for (server, (took, used)) in servers.iter().zip(&measured) {
        let (took, used) = (median(took), median(used));
        println!(
            "  {:<18}{:>9.0} requests/s ({:>3.0} %) {:>7.2} µs of CPU each ({:>3.0} %)",
            server.name,
            1_000_000.0 / took,
            base.0 / took * 100.0,
            used,
            used / base.1 * 100.0,
        );
    }
}

/// Prints the throughput of a client while others are slow: in a head, in a body, or without
/// sending anything.
fn beside_slow_clients(slow: usize, rounds: usize, requests: usize) {
    let mut servers = [
        Server::mock("alone", 1_000),
        Server::mock("beside slow ones", 1_000),
    ];
    let _slow: Vec<TcpStream> = (0..slow)
        .map(|number| {
            let mut stream = connect(servers[1].addr);
            let said: &[u8] = match number % 3 {
                0 => b"",
                1 => b"GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Slow: ",
                _ => {
                    b"POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer bench-key-0123456789\r\n\
                      Content-Type: application/json\r\nContent-Length: 32\r\n\r\n{"
                }
            };
            stream.write_all(said).unwrap();
            stream
        })
        .collect();
    let mut measured = [const { Vec::new() }; 2];
    for _ in 0..rounds {
        for (server, took) in servers.iter_mut().zip(&mut measured) {
            took.push(micros(server.run("GET", "/v1/pets", requests).0, requests));
        }
    }
    let [alone, beside] = measured.map(|took| median(&took));
    println!(
        "beside {slow} slow clients {:>4.0} % of the requests/s",
        alone / beside * 100.0
    );
}

/// Prints how long a server takes to be ready, in this process and as a separate one.
fn ready(times: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let in_process = (0..times).map(|_| {
        let begun = Instant::now();
        let server = runtime.block_on(MockServer::start());
        let took = begun.elapsed();
        drop(server);
        micros(took, 1)
    });
    println!(
        "ready in process   {:>9.0} µs",
        median(&in_process.collect::<Vec<_>>())
    );
    let process = (0..times.div_ceil(10)).map(|_| {
        let begun = Instant::now();
        let process = Process::start();
        let took = begun.elapsed();
        drop(process);
        micros(took, 1)
    });
    println!(
        "ready as a process {:>9.0} µs",
        median(&process.collect::<Vec<_>>())
    );
}

/// Prints how much memory a server has after so many requests.
fn memory(requests: usize) {
    let process = Process::start();
    let connections = (0..CONNECTIONS).map(|_| connect(process.addr)).collect();
    let name = "memory";
    let mut server = Server {
        name,
        addr: process.addr,
        usage: PathBuf::new(),
        connections,
    };
    server.run("GET", "/v1/pets", 10_000.min(requests));
    let early = process.memory();
    server.run("GET", "/v1/pets", requests);
    println!(
        "memory             {early} after the first, {} after {requests}",
        process.memory()
    );
}

/// The binary.
struct Process {
    child: Child,
    addr: SocketAddr,
}

impl Process {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_petstore-mock"))
            .args([
                "--port",
                "0",
                "--key",
                &format!("{KEY}=enterprise:2000000000/4000000000"),
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let addr = line.trim().strip_prefix("listening on http://").unwrap();
        Self {
            child,
            addr: addr.strip_suffix("/v1").unwrap().parse().unwrap(),
        }
    }

    /// Only Linux reports this number.
    fn memory(&self) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.map_or_else(|| "unknown".to_owned(), |line| line.trim().to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "far fewer than a float can count"
)]
fn micros(time: Duration, parts: usize) -> f64 {
    time.as_secs_f64() * 1_000_000.0 / parts as f64
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
