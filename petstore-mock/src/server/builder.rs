//! Configures, checks, binds and starts a server.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, mpsc},
};

use http::Method;
use tokio::runtime;

#[cfg(feature = "tls")]
use super::tls;
use super::{
    connection::{Limits, ServeContext},
    listener,
    mock_server::MockServer,
};
use crate::{
    clock::Clock,
    fault::Fault,
    http::Service,
    model::PetStatus,
    plan::Plan,
    report::{Rule, Severity},
    routes::{Route, RouteError, RouteResponse, Routes},
    state::{
        AppState, BanPolicy, DEFAULT_KEYS, DataError, KeyError, NewKey, RateHeaders, Seed,
        SeedError, Settings, Window, is_sendable,
    },
};

impl MockServer {
    /// Starts a server with the default settings: a free port of 127.0.0.1, the keys `free-key`,
    /// `pro-key`, `business-key` and `enterprise-key`, and 25 pets.
    ///
    /// # Panics
    ///
    /// If no port of 127.0.0.1 can be bound. Use [`MockServer::builder`] to get an error instead.
    #[must_use = "dropping the server stops it"]
    pub async fn start() -> Self {
        Self::builder()
            .start()
            .await
            .expect("the defaults are valid, and 127.0.0.1 has a free port")
    }

    /// Starts a server like [`MockServer::start`], but on its own thread. For tests without a
    /// runtime, and for a server that outlives the runtimes of its tests.
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
    /// If no port of 127.0.0.1 can be bound, or no thread can be started.
    #[must_use = "dropping the server stops it"]
    pub fn start_blocking() -> Self {
        Self::builder()
            .start_blocking()
            .expect("the defaults are valid, and 127.0.0.1 has a free port")
    }

    /// Returns a builder with the settings of [`MockServer::start`].
    pub fn builder() -> Builder {
        Builder::new()
    }
}

/// Builds a [`MockServer`].
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
    /// If this is empty, the server has the default keys.
    keys: Vec<NewKey>,
    seed: Seed,
    data: Option<PathBuf>,
    clock: Clock,
    limits: Limits,
    #[cfg(feature = "tls")]
    tls: bool,
    settings: Settings,
    faults: Vec<Fault>,
    routes: Vec<Route>,
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
            routes: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(super) fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the address to listen on (default: 127.0.0.1).
    pub fn addr(mut self, addr: IpAddr) -> Self {
        self.addr.set_ip(addr);
        self
    }

    /// Sets the port to listen on. The default is 0: a free port, which no earlier server of this
    /// process had.
    pub fn port(mut self, port: u16) -> Self {
        self.addr.set_port(port);
        self
    }

    /// Serves over TLS, with HTTP/2 or HTTP/1.1 as the client chooses (default: plain HTTP).
    ///
    /// Each start creates a certificate authority, which clients must trust, and a certificate for
    /// `localhost`, 127.0.0.1, ::1 and the listening address.
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

    /// Sets whether web pages of other origins may use the service (default: true).
    pub fn cors(mut self, cors: bool) -> Self {
        self.settings.cors = cors;
        self
    }

    /// Adds a key with a plan. The first call replaces the default keys. If a key is added
    /// twice, the last plan counts.
    pub fn key(self, key: impl Into<String>, plan: Plan) -> Self {
        self.new_key(NewKey::new(Some(key.into()), plan))
    }

    /// Adds a key like [`Builder::key`], with a name for reports and the journal, which no other key has.
    pub fn named_key(self, name: impl Into<String>, key: impl Into<String>, plan: Plan) -> Self {
        self.new_key(NewKey::new(Some(key.into()), plan).with_name(name))
    }

    pub(crate) fn new_key(mut self, key: NewKey) -> Self {
        match self.keys.iter_mut().find(|known| known.key() == key.key()) {
            Some(known) => *known = key,
            None => self.keys.push(key),
        }
        self
    }

    /// Declares how many requests of each key may be under way at once (default: 1), for keys for which
    /// nothing else is declared ([`Key::senders`](crate::Key::senders)).
    ///
    /// Each of these senders may have to learn by itself that it is told to wait. Declare no more than
    /// there are: see the [guide](crate::guide::compliance).
    pub fn senders(mut self, senders: u32) -> Self {
        self.settings.senders = senders;
        self
    }

    /// Sets the severity of a rule of the compliance report; `None` disables the rule.
    ///
    /// ```
    /// # use petstore_mock::{MockServer, Rule, Severity};
    /// let builder = MockServer::builder()
    ///     .rule(Rule::BackOff, Severity::Notice)
    ///     .rule(Rule::Deprecated, None);
    /// ```
    pub fn rule(mut self, rule: Rule, severity: impl Into<Option<Severity>>) -> Self {
        self.settings.severities.insert(rule, severity.into());
        self
    }

    /// Sets the initial content of the store (default: 25 built-in pets).
    pub fn seed(mut self, seed: Seed) -> Self {
        self.seed = seed;
        self
    }

    /// Keeps pets, orders and ids in a file, which is created if it is missing. A pet confirmed
    /// with 201 survives a kill of the process. By default, nothing is kept.
    ///
    /// The seed applies only to a new file. Only one server at a time can use a file; dropping the
    /// server closes it. The file does not keep how much of the quotas the keys have used.
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

    /// Sets the clock (default: the machine's clock).
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the kind of quota window (default: fixed).
    pub fn window(mut self, window: Window) -> Self {
        self.settings.window = window;
        self
    }

    /// Sets the quota in the `X-RateLimit-*` headers (default: the one with the fewest requests left).
    pub fn rate_headers(mut self, rate_headers: RateHeaders) -> Self {
        self.settings.rate_headers = rate_headers;
        self
    }

    /// Sets whether a page has a `Link` to the next page (default: true).
    pub fn paging(mut self, paging: bool) -> Self {
        self.settings.paging = paging;
        self
    }

    /// Sets the status of pets that are created without one (default: none).
    pub fn default_status(mut self, status: PetStatus) -> Self {
        self.settings.default_status = Some(status);
        self
    }

    /// Sets when the service bans a key, and for how long: see [`BanPolicy`].
    pub fn ban(mut self, policy: BanPolicy) -> Self {
        self.settings.ban = policy;
        self
    }

    /// Sets the maximum number of exchanges in the journal (default: 1,000, and at most 4 MiB); 0
    /// keeps none.
    pub fn journal(mut self, exchanges: usize) -> Self {
        self.settings.journal = exchanges;
        self
    }

    /// Gives each key its own pets and orders (default: all keys share them), so that tests that
    /// run in parallel on one server do not disturb each other.
    ///
    /// A key begins with the pets that the server has at the key's first request. A data file
    /// contains only the shared pets. [`Key::pets`](crate::Key::pets) returns those of a key.
    ///
    /// ```
    /// # use petstore_mock::{MockServer, Plan, SeedPet};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = MockServer::builder().isolate_keys().start().await?;
    /// let (one, other) = (server.key(Plan::Free), server.key(Plan::Free));
    /// one.pets().insert(SeedPet::new("Rex", 7))?;
    /// assert_eq!((one.pets().len(), other.pets().len()), (26, 25));
    /// # Ok(())
    /// # }
    /// ```
    pub fn isolate_keys(mut self) -> Self {
        self.settings.isolate_keys = true;
        self
    }

    /// Lets requests choose a fault with `X-Mock-Fault: NAME` (default: the header is ignored).
    ///
    /// The name is that of a fault that hits only such requests
    /// ([`FaultBuilder::only_named`](crate::FaultBuilder::only_named)), a status such as `503`, or one
    /// of `reset`, `emptyReply`, `hang` and `malformedJson`. Another name is answered 400.
    pub fn fault_header(mut self) -> Self {
        self.settings.fault_header = true;
        self
    }

    /// Sets the token for administration from other machines, which send `Authorization: Bearer
    /// TOKEN`. Without a token, administration is local only.
    pub fn admin_token(mut self, token: impl Into<String>) -> Self {
        self.settings.admin_token = Some(token.into());
        self
    }

    /// Sets a fault from the first request. [`MockServer::faults`] sets faults later. If it is for a
    /// key, the server must have that key from its start.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Adds an own route: a static response for an operation that the contract does not show.
    ///
    /// It has the same keys, quotas, journal, faults and report as the contract's operations. The
    /// path is below `/v1`. A segment in braces stands for any value; a literal one beats it. A
    /// `HEAD` request is answered like a `GET`.
    ///
    /// ```
    /// # use petstore_mock::{MockServer, RouteResponse};
    /// use http::Method;
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let stock = RouteResponse::json(&json!({"available": 7}));
    /// let server = MockServer::builder()
    ///     .route(Method::GET, "/store/inventory", stock)
    ///     .route(Method::DELETE, "/pets/{petId}", RouteResponse::empty().with_status(204))
    ///     .start()
    ///     .await?;
    /// let url = format!("{}/store/inventory", server.url());
    /// let reply = reqwest::Client::new().get(url).bearer_auth("free-key").send().await?;
    /// assert_eq!(reply.text().await?, r#"{"available":7}"#);
    /// # Ok(())
    /// # }
    /// ```
    pub fn route(self, method: Method, path: &str, response: RouteResponse) -> Self {
        self.routes([Route::new(method, path, response)])
    }

    pub(crate) fn routes(mut self, routes: impl IntoIterator<Item = Route>) -> Self {
        self.routes.extend(routes);
        self
    }

    /// Binds the port and starts serving, on the current tokio runtime, which needs I/O and time.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be bound, a key is invalid in a header, the seed contradicts
    /// itself, or an own route cannot be used.
    pub async fn start(self) -> Result<MockServer, StartError> {
        let Self {
            addr,
            mut keys,
            seed,
            data,
            clock,
            limits,
            mut settings,
            faults,
            routes,
            ..
        } = self;
        if keys.is_empty() {
            keys = DEFAULT_KEYS
                .map(|(key, plan)| NewKey::new(Some(key.into()), plan))
                .into();
        }
        if !settings.admin_token.iter().all(|token| is_sendable(token)) {
            return Err(StartError::AdminToken);
        }
        settings.routes = Routes::new(routes).map_err(StartError::Route)?;
        let store = seed.into_store().map_err(StartError::Seed)?;
        #[cfg(feature = "tls")]
        let mut acceptor = None;
        #[cfg(feature = "tls")]
        if self.tls {
            let created = tls::create(addr.ip()).map_err(io::Error::other);
            let (authority, tls) = created.map_err(StartError::Tls)?;
            (settings.authority, acceptor) = (Some(authority), Some(tls));
        }
        let app = AppState::new(clock, settings, keys, store, faults.clone());
        let app = app.map_err(StartError::Key)?;
        if let Some(problem) = faults.iter().find_map(|fault| app.problem_of(fault)) {
            return Err(StartError::Fault(problem));
        }
        app.reset_faults();
        let bind_error = |cause| StartError::Bind { addr, cause };
        let listener = listener::bind(addr).await.map_err(bind_error)?;
        let addr = listener.local_addr().map_err(bind_error)?;
        let app = match data {
            // The data file comes last, so that a server that cannot start creates no file.
            Some(path) => {
                let file = path.clone();
                let opened = tokio::task::spawn_blocking(move || app.with_data(&file)).await;
                let opened = opened.unwrap_or_else(|error| Err(io::Error::other(error).into()));
                opened.map_err(|cause| StartError::Data { path, cause })?
            }
            None => app,
        };
        let context = ServeContext {
            service: Service::new(Arc::new(app)),
            limits,
            #[cfg(feature = "tls")]
            tls: acceptor,
        };
        Ok(MockServer::serve(listener, addr, context))
    }

    /// Binds the port and starts serving on a new thread, which ends when the server is dropped.
    /// Also works within a runtime.
    ///
    /// # Errors
    ///
    /// Fails like [`Builder::start`], and if no thread can be started.
    pub fn start_blocking(self) -> Result<MockServer, StartError> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("petstore-mock")
            .enable_all()
            .build()
            .map_err(StartError::Thread)?;
        let (send, receive) = mpsc::channel();
        // If this thread were gone, nobody would wait for the server.
        runtime.spawn(async move { drop(send.send(self.start().await)) });
        let gone = |error| Err(StartError::Thread(io::Error::other(error)));
        match receive.recv().unwrap_or_else(gone) {
            Ok(server) => Ok(server.on(runtime)),
            Err(error) => {
                // A runtime may not be dropped within another one.
                runtime.shutdown_background();
                Err(error)
            }
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The keys are not shown.
        f.debug_struct("Builder")
            .field("addr", &self.addr)
            .field("keys", &self.keys.len())
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

/// Why a server cannot be started. The message contains the whole cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address cannot be bound.
    #[error("cannot listen on {addr}: {cause}")]
    Bind {
        /// The address with the requested port.
        addr: SocketAddr,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// A key is invalid in a header, or its name in a report, or two have one name. The message does not
    /// contain the key.
    #[error("{0}")]
    Key(KeyError),
    /// The admin token is empty, or contains a space or a non-ASCII character.
    #[error("the admin token is empty, or contains a space or a non-ASCII character")]
    AdminToken,
    /// The data file cannot be used.
    #[error("cannot use the data file {path}: {cause}", path = path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: DataError,
    },
    /// The certificates cannot be created.
    #[cfg(feature = "tls")]
    #[error("cannot create the certificates for TLS: {0}")]
    Tls(io::Error),
    /// The thread cannot be started.
    #[error("cannot start a thread for the server: {0}")]
    Thread(io::Error),
    /// The seed contradicts itself.
    #[error("the seed cannot be used: {0}")]
    Seed(SeedError),
    /// A fault can never hit a request, or is for a key that the server does not have.
    #[error("{0}")]
    Fault(String),
    /// An own route is invalid, repeated, or an operation of the contract.
    #[error("{0}")]
    Route(RouteError),
}
