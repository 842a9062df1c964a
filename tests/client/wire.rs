//! A server on plain TCP, for behaviour that an HTTP server does not support: truncation, resets,
//! stalls and other protocols.
//!
//! It runs on the test's runtime, so that paused time does not run ahead of it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// What the server does with a request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Writes these bytes and keeps the connection.
    Answer(Vec<u8>),
    /// Does the same after a while.
    Later(Duration, Vec<u8>),
    /// Writes these bytes and closes the connection.
    Cut(Vec<u8>),
    /// Writes these bytes and resets the connection.
    Reset(Vec<u8>),
    /// Writes these bytes and then nothing more.
    Stall(Vec<u8>),
    /// Writes the first bytes, and the second ones again and again.
    Flood(Vec<u8>, Vec<u8>),
    /// Writes these bytes piece by piece, with a pause before each, and then does something else.
    Drip(Vec<Vec<u8>>, Duration, Box<Act>),
}

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Method, target and version.
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) at: Instant,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    /// Returns all values of a header.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let lines = self.head.lines().skip(1);
        lines
            .filter_map(|line| line.split_once(": "))
            .filter(move |(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

/// The server; it stops when dropped.
pub(crate) struct Wire {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

type Script = Arc<Mutex<dyn FnMut(&Seen, usize) -> Act + Send>>;

impl Wire {
    /// Starts a server that asks `script` what to do with each request, counted from 0.
    pub(crate) fn start(script: impl FnMut(usize) -> Act + Send + 'static) -> Self {
        Self::at(listen(), script)
    }

    /// Starts a server that does these things in turn, the last one again and again.
    pub(crate) fn of(acts: Vec<Act>) -> Self {
        Self::start(move |number| acts[number.min(acts.len() - 1)].clone())
    }

    /// Starts a server whose script reads each request.
    pub(crate) fn reading(mut script: impl FnMut(&Seen) -> Act + Send + 'static) -> Self {
        Self::run(listen(), move |seen, _| script(seen))
    }

    /// Starts a server whose script has to know its address.
    pub(crate) fn at(
        listener: TcpListener,
        mut script: impl FnMut(usize) -> Act + Send + 'static,
    ) -> Self {
        Self::run(listener, move |_, number| script(number))
    }

    fn run(
        listener: TcpListener,
        script: impl FnMut(&Seen, usize) -> Act + Send + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let script: Script = Arc::new(Mutex::new(script));
        let log = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&log), Arc::clone(&script)));
            }
        });
        Self {
            address,
            seen,
            task,
        }
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// Returns the requested targets.
    pub(crate) fn targets(&self) -> Vec<String> {
        let target = |seen: Seen| seen.line.split(' ').nth(1).unwrap_or_default().to_owned();
        self.seen().into_iter().map(target).collect()
    }
}

/// Listens on an address that no earlier server of this process had. Otherwise the limits of the
/// earlier server, which outlive its clients, would apply to the new one. The backlog holds all
/// connections that a test opens at once, because in paused time a stalled one never continues.
pub(crate) fn listen() -> TcpListener {
    /// Mock servers are on 127.0.0.1. macOS has no other loopback address.
    const FIRST_HOST: usize = if cfg!(target_os = "macos") { 1 } else { 2 };
    /// For one address, the system first hands out 14,000 ports. Half of them may be in use
    /// elsewhere.
    const MAX_SERVERS: usize = 7_000;

    static USED: Mutex<BTreeSet<SocketAddr>> = Mutex::new(BTreeSet::new());
    let mut used = USED.lock().unwrap();
    let host = u8::try_from(FIRST_HOST + used.len() / MAX_SERVERS).unwrap();
    loop {
        let socket = TcpSocket::new_v4().unwrap();
        socket
            .bind(SocketAddr::from(([127, 0, 0, host], 0)))
            .unwrap();
        if used.insert(socket.local_addr().unwrap()) {
            return socket.listen(4_096).unwrap();
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, log: Arc<Mutex<Vec<Seen>>>, script: Script) {
    let mut left = Vec::new();
    while let Some(seen) = request(&mut stream, &mut left).await {
        let number = {
            let mut log = log.lock().unwrap();
            log.push(seen.clone());
            log.len() - 1
        };
        let mut act = (*script.lock().unwrap())(&seen, number);
        while let Act::Drip(pieces, pause, then) = act {
            for piece in pieces {
                tokio::time::sleep(pause).await;
                let _ = stream.write_all(&piece).await;
            }
            act = *then;
        }
        let bytes = match &act {
            Act::Drip(..) => unreachable!("it is done"),
            Act::Later(wait, bytes) => {
                tokio::time::sleep(*wait).await;
                bytes
            }
            Act::Answer(bytes) | Act::Cut(bytes) | Act::Reset(bytes) | Act::Stall(bytes) => bytes,
            Act::Flood(head, _) => head,
        };
        let is_written = stream.write_all(bytes).await.is_ok();
        match act {
            Act::Answer(_) | Act::Later(..) if is_written => {}
            Act::Reset(_) => return stream.set_zero_linger().unwrap(),
            Act::Stall(_) => std::future::pending().await,
            Act::Flood(_, more) if is_written => {
                while stream.write_all(&more).await.is_ok() {}
                return;
            }
            _ => return,
        }
    }
}

async fn request(stream: &mut TcpStream, left: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(at) = left.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(left).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&left[..end]).into_owned();
    left.drain(..end);
    let line = head.lines().next().unwrap_or_default().to_owned();
    let mut seen = Seen {
        line,
        head,
        body: Vec::new(),
        at: Instant::now(),
    };
    let length = seen
        .header("content-length")
        .map_or(0, |value| value.parse().unwrap());
    while left.len() < length {
        if stream.read_buf(left).await.ok()? == 0 {
            return None;
        }
    }
    seen.body = left.drain(..length).collect();
    Some(seen)
}
