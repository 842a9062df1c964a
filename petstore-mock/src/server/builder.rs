//! How a server is configured, checked, bound and started.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use tokio::net::TcpListener;

#[cfg(feature = "tls")]
use super::tls::Tls;
use super::{limits::Limits, mock_server::MockServer, thread::ServerThread};
use crate::{
    ban::BanPolicy,
    clock::Clock,
    cors::Cors,
    fault::Fault,
    model::PetStatus,
    plan::Plan,
    quota::{RateHeaders, Window},
    report::{Rule, Severity},
    state::{
        AppState, DEFAULT_KEYS, DataError, FirstKey, KeyError, Seed, SeedError, Settings,
        is_sendable,
    },
};

impl MockServer {
    /// Starts a server with the default settings: on a free port of 127.0.0.1, with the keys `free-key`, `pro-key`, `business-key` and `enterprise-key`, and 25 pets.
    ///
    /// # Panics
    ///
    /// Where no port of 127.0.0.1 can be bound: a test has nothing better to do then. Use
    /// [`MockServer::builder`] to get an error instead.
    #[must_use = "dropping the server stops it"]
    pub async fn start() -> Self {
        Self::builder()
            .start()
            .await
            .expect("the defaults are valid, and a machine has a free port on 127.0.0.1")
    }

    /// Starts a server as [`MockServer::start`] does, on a thread of its own: for tests without a
    /// runtime, and where a server is to outlive the runtimes of the tests that use it.
    ///
    /// ```
    /// use std::io::{Read, Write};
    /// use petstore_mock::MockServer;
    ///
    /// let server = MockServer::start_blocking();
    /// let mut stream = std::net::TcpStream::connect(server.addr())?;
    /// stream.write_all(b"GET /_mock/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    /// let mut answer = String::new();
    /// stream.read_to_string(&mut answer)?;
    /// assert!(answer.starts_with("HTTP/1.1 200 OK"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Where no port of 127.0.0.1 can be bound, or no thread started.
    #[must_use = "dropping the server stops it"]
    pub fn start_blocking() -> Self {
        Self::builder()
            .start_blocking()
            .expect("the defaults are valid, and a machine has a free port on 127.0.0.1")
    }

    /// Returns a builder, to set what should differ from [`MockServer::start`].
    pub fn builder() -> Builder {
        Builder::new()
    }
}

/// Makes a [`MockServer`].
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use petstore_mock::{Clock, MockServer, Plan, Seed, Window};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), petstore_mock::StartError> {
/// let server = MockServer::builder()
///     .key("my-key", Plan::Free)
///     .seed(Seed::none())
///     .clock(Clock::frozen(SystemTime::UNIX_EPOCH))
///     .window(Window::Sliding)
///     .start()
///     .await?;
/// # server.stop().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it is started"]
pub struct Builder {
    addr: SocketAddr,
    /// The default keys, if there are none.
    keys: Vec<FirstKey>,
    seed: Seed,
    data: Option<PathBuf>,
    clock: Clock,
    limits: Limits,
    #[cfg(feature = "tls")]
    tls: bool,
    settings: Settings,
    faults: Vec<Fault>,
}

impl Builder {
    fn new() -> Self {
        Self {
            addr: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
            keys: Vec::new(),
            seed: Seed::default(),
            data: None,
            clock: Clock::system(),
            limits: Limits::default(),
            #[cfg(feature = "tls")]
            tls: false,
            settings: Settings::default(),
            faults: Vec::new(),
        }
    }

    /// Sets the address to listen on: 127.0.0.1 unless set.
    pub fn addr(mut self, addr: IpAddr) -> Self {
        self.addr.set_ip(addr);
        self
    }

    /// Sets the port to listen on: 0, which takes a free one, unless set.
    pub fn port(mut self, port: u16) -> Self {
        self.addr.set_port(port);
        self
    }

    /// Sets how many connections there may be, and how long clients may take: see [`Limits`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves over TLS (HTTP/2 and HTTP/1.1, as the client chooses): plain HTTP unless set.
    ///
    /// The certificate, for `localhost`, 127.0.0.1, ::1 and the address listened on, is made anew at each
    /// start, with an authority of the server's own, which a client is told to trust.
    ///
    /// ```
    /// # use petstore_mock::MockServer;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = MockServer::builder().tls().start().await?;
    /// let authority = server.ca_certificate().unwrap_or_default();
    /// let client = reqwest::Client::builder()
    ///     .tls_certs_merge([reqwest::Certificate::from_pem(authority.as_bytes())?])
    ///     .build()?;
    /// let pets = client.get(format!("{}/pets", server.url())).bearer_auth("free-key").send().await?;
    /// assert_eq!(pets.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tls")]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Sets which pages of other origins may use the service from a browser: all of them unless set.
    pub fn cors(mut self, cors: Cors) -> Self {
        self.settings.cors = cors;
        self
    }

    /// Adds a key and its plan. The first one given replaces the four default keys; a key given
    /// twice has the plan given last.
    pub fn key(mut self, key: impl Into<String>, plan: Plan) -> Self {
        self.add_key(FirstKey { key: key.into(), plan, name: None });
        self
    }

    /// Adds a key as [`Builder::key`] does, with a name by which reports and the journal show it.
    pub fn named_key(
        mut self,
        name: impl Into<String>,
        key: impl Into<String>,
        plan: Plan,
    ) -> Self {
        self.add_key(FirstKey { key: key.into(), plan, name: Some(name.into()) });
        self
    }

    fn add_key(&mut self, key: FirstKey) {
        match self.keys.iter_mut().find(|known| known.key == key.key) {
            Some(known) => *known = key,
            None => self.keys.push(key),
        }
    }

    /// Sets how severe a breach of a rule of the compliance report is; `None` turns the rule off.
    ///
    /// ```
    /// # use petstore_mock::{MockServer, Rule, Severity};
    /// let builder = MockServer::builder()
    ///     .rule(Rule::KeepAlive, Severity::Warning)
    ///     .rule(Rule::Deprecated, None);
    /// ```
    pub fn rule(mut self, rule: Rule, severity: impl Into<Option<Severity>>) -> Self {
        self.settings.severities.set(rule, severity.into());
        self
    }

    /// Sets what the store holds at first: 25 pets of the mock's own unless set.
    pub fn seed(mut self, seed: Seed) -> Self {
        self.seed = seed;
        self
    }

    /// Keeps pets, orders and ids in a file, which is made if it is not there: a pet that was answered
    /// 201 is there after the process was killed. Nothing is kept unless set.
    ///
    /// The seed is for a new file only. One server at a time can use a file; dropping it closes the
    /// file. What the keys have used is not kept.
    ///
    /// ```
    /// # use petstore_mock::{MockServer, SeedPet};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let file = std::env::temp_dir().join(format!("petstore-mock-{}.data", std::process::id()));
    /// let server = MockServer::builder().data(&file).start().await?;
    /// let rex = server.pets().insert(SeedPet::new("Rex", 7))?;
    /// drop(server);
    ///
    /// let server = MockServer::builder().data(&file).start().await?;
    /// assert_eq!(server.pets().get(rex.id), Some(rex));
    /// # drop(server);
    /// # std::fs::remove_file(file)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn data(mut self, path: impl Into<PathBuf>) -> Self {
        self.data = Some(path.into());
        self
    }

    /// Sets the clock: the machine's unless set.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets what kind of window the quotas count in: fixed ones unless set.
    pub fn window(mut self, window: Window) -> Self {
        self.settings.window = window;
        self
    }

    /// Sets which quota the `X-RateLimit-*` headers describe: the tightest unless set.
    pub fn rate_headers(mut self, rate_headers: RateHeaders) -> Self {
        self.settings.rate_headers = rate_headers;
        self
    }

    /// Sets whether a page that more pets follow has a `Link` to the next one: it has unless set.
    pub fn paging(mut self, paging: bool) -> Self {
        self.settings.paging = paging;
        self
    }

    /// Sets the status of pets that are added without one: they have none unless set.
    pub fn default_status(mut self, status: PetStatus) -> Self {
        self.settings.default_status = Some(status);
        self
    }

    /// Sets when a key is banned, and for how long: see [`BanPolicy`].
    pub fn ban(mut self, policy: BanPolicy) -> Self {
        self.settings.ban = policy;
        self
    }

    /// Sets how many exchanges the journal keeps: the last 1,000, and 4 MiB of them, unless set; 0
    /// keeps none.
    pub fn journal(mut self, exchanges: usize) -> Self {
        self.settings.journal = exchanges;
        self
    }

    /// Sets the token with which the mock can be administered from other machines, as
    /// `Authorization: Bearer TOKEN`: without one, it can't be.
    pub fn admin_token(mut self, token: impl Into<String>) -> Self {
        self.settings.admin_token = Some(token.into());
        self
    }

    /// Sets how long a body administration takes, in bytes: 256 MiB unless set, so that a store of
    /// millions of pets can be put back.
    pub fn admin_body(mut self, bytes: usize) -> Self {
        self.settings.admin_body = bytes;
        self
    }

    /// Sets a fault from the first request on; more are set with [`MockServer::faults`].
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Binds the port and starts serving, on the tokio runtime this is awaited on, which needs its
    /// I/O and time enabled.
    ///
    /// # Errors
    ///
    /// Where the address can't be bound, a key can't travel in a header, or the seed contradicts
    /// itself.
    pub async fn start(self) -> Result<MockServer, StartError> {
        let Self { addr, mut keys, seed, data, clock, limits, settings, faults, .. } = self;
        if keys.is_empty() {
            let first = |(key, plan): (&str, _)| FirstKey { key: key.to_owned(), plan, name: None };
            keys = DEFAULT_KEYS.map(first).into();
        }
        if !settings.admin_token.iter().all(|token| is_sendable(token)) {
            return Err(StartError::AdminToken);
        }
        let store = seed.into_store()?;
        let app = AppState::new(clock, settings, keys, store, faults).map_err(StartError::Key)?;
        #[cfg(feature = "tls")]
        let tls = self.tls.then(|| Tls::new(addr.ip())).transpose().map_err(StartError::Tls)?;
        #[cfg(not(feature = "tls"))]
        let tls = None;
        let bind_error = |source| StartError::Bind { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(bind_error)?;
        let addr = listener.local_addr().map_err(bind_error)?;
        let app = match data {
            // Last, so that a server that can't start makes no file.
            Some(path) => {
                let data_error = |source| StartError::Data { path: path.clone(), source };
                app.with_data(path.clone()).await.map_err(data_error)?
            }
            None => app,
        };
        Ok(MockServer::serve(listener, addr, Arc::new(app), limits, tls))
    }

    /// Binds the port and starts serving on a thread of the server's own, which ends when the server
    /// is dropped; from within a runtime too.
    ///
    /// # Errors
    ///
    /// As for [`Builder::start`], and where no thread can be started.
    pub fn start_blocking(self) -> Result<MockServer, StartError> {
        let (server, thread) = ServerThread::run(self.start()).map_err(StartError::Thread)?;
        Ok(server?.on(thread))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the keys.
        f.debug_struct("Builder")
            .field("addr", &self.addr)
            .field("keys", &self.keys.len())
            .field("clock", &self.clock)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Why a server can't be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address can't be listened on.
    #[error("can't listen on {addr}: {source}")]
    Bind {
        /// The address, with the port asked for.
        addr: SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
    /// A key is empty, or holds a space or a character beyond ASCII, and so can't be sent in a
    /// header. The message does not repeat it.
    #[error("{0}")]
    Key(KeyError),
    /// The token of administration is empty, or holds a space or a character beyond ASCII.
    #[error("the admin token is empty, or holds a space or a character beyond ASCII")]
    AdminToken,
    /// The file that keeps the data can't be used.
    #[error("can't use the data file {path}: {source}", path = path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: DataError,
    },
    /// The certificates can't be made.
    #[cfg(feature = "tls")]
    #[error("can't make the certificates for TLS: {0}")]
    Tls(io::Error),
    /// There is no thread for the server.
    #[error("can't start a thread for the server: {0}")]
    Thread(io::Error),
    /// The seed contradicts itself.
    #[error("the seed can't be used: {0}")]
    Seed(#[from] SeedError),
}
