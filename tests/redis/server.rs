//! A real Redis server of a test, and what makes it slow to reach.

use std::future::Future;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// A separate server, which ends with the test.
pub(crate) struct Redis {
    child: Child,
    port: u16,
    folder: TempDir,
    security: Security,
}

/// The authentication that a server requires.
#[derive(Clone, Copy)]
pub(crate) enum Security {
    Nothing,
    Password(&'static str),
    /// TLS, with a certificate in the server's folder.
    Tls,
}

impl Redis {
    /// Starts a server that requires nothing.
    pub(crate) async fn open() -> Self {
        Self::start(Security::Nothing).await
    }

    pub(crate) async fn start(security: Security) -> Self {
        // Another program may take the port before the server does. Then try another port.
        for _ in 0..10 {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            drop(listener);
            let folder = TempDir::new().unwrap();
            let child = launch(port, &folder, security);
            let mut redis = Self {
                child,
                port,
                folder,
                security,
            };
            if redis.is_up().await {
                return redis;
            }
        }
        panic!("redis-server does not start")
    }

    async fn is_up(&mut self) -> bool {
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end && self.child.try_wait().unwrap().is_none() {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    /// Starts the server again, without its data.
    pub(crate) async fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = launch(self.port, &self.folder, self.security);
        assert!(self.is_up().await);
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns another address of the server for each member.
    pub(crate) fn url(&self, member: u8) -> String {
        let start = match self.security {
            Security::Nothing => "redis://".to_owned(),
            Security::Password(password) => format!("redis://:{password}@"),
            Security::Tls => "rediss://".to_owned(),
        };
        format!("{start}127.0.0.1:{}/0?member={member}", self.port)
    }

    /// The certificate of a server with TLS.
    pub(crate) fn certificate(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("cert.pem")).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Runs a command by `redis-cli`, and returns what it prints.
    pub(crate) fn cli(&self, words: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        let command = command.args(["-p", &self.port.to_string(), "--raw"]);
        let output = command.args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

fn launch(port: u16, folder: &TempDir, security: Security) -> Child {
    let port = port.to_string();
    let mut command = Command::new("redis-server");
    command.args(["--save", "", "--bind", "127.0.0.1"]);
    match security {
        Security::Nothing => command.args(["--port", &port]),
        Security::Password(password) => command.args(["--port", &port, "--requirepass", password]),
        Security::Tls => {
            let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
            let write = |name, text| std::fs::write(folder.path().join(name), text).unwrap();
            write("cert.pem", own.cert.pem());
            write("key.pem", own.signing_key.serialize_pem());
            command.args([
                "--port",
                "0",
                "--tls-port",
                &port,
                "--tls-auth-clients",
                "no",
            ]);
            command.args(["--tls-cert-file", "cert.pem", "--tls-key-file", "key.pem"]);
            command.args(["--tls-ca-cert-file", "cert.pem"])
        }
    };
    command.current_dir(folder.path()).stdout(Stdio::null());
    command.spawn().unwrap()
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a proxy that passes each connection to a function. Returns its port.
async fn proxy<F>(port: u16, pass: impl Fn(TcpStream, TcpStream) -> F + Send + 'static) -> u16
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (near, _) = listener.accept().await.unwrap();
            let far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            tokio::spawn(pass(near, far));
        }
    });
    proxy
}

/// Starts a proxy that delays everything in both directions, like a distant server. Returns its
/// port.
pub(crate) async fn far_away(port: u16, delay: Duration) -> u16 {
    let pass = move |near: TcpStream, far: TcpStream| async move {
        let (near_reads, near_writes) = near.into_split();
        let (far_reads, far_writes) = far.into_split();
        tokio::spawn(pass_later(near_reads, far_writes, delay));
        pass_later(far_reads, near_writes, delay).await;
    };
    proxy(port, pass).await
}

async fn pass_later(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    tokio::spawn(async move {
        while let Some((at, bytes)) = receiver.recv().await {
            tokio::time::sleep_until(at).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let _ = sender.send((Instant::now() + delay, buffer[..length].to_vec()));
    }
}

/// Starts a proxy that passes on what a connection sends only after a delay, as if the network had
/// lost the first packet. Returns its port.
pub(crate) async fn slow_to_open(port: u16, delay: Duration) -> u16 {
    let pass = move |mut near: TcpStream, mut far: TcpStream| async move {
        tokio::time::sleep(delay).await;
        let _ = copy_bidirectional(&mut near, &mut far).await;
    };
    proxy(port, pass).await
}
