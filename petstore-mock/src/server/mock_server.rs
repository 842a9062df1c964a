//! A running server.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{net::TcpListener, runtime::Runtime, sync::watch, task::JoinHandle};

use super::{
    connection::ServeContext,
    listener::{self, Listener},
};
use crate::{
    clock::Clock,
    clock::real_time,
    exchange::Exchange,
    fault::Faults,
    handle::{Key, Keys, Orders, Pets},
    journal::{self, Times},
    operation::Target,
    plan::Plan,
    report::Report,
    state::{AppState, ChangeError, Snapshot},
};

/// A running mock of the Pet Store service.
///
/// It runs on the tokio runtime on which it was started, or on its own thread with
/// [`MockServer::start_blocking`]. Dropping it closes its port and connections immediately;
/// [`MockServer::stop`] first lets requests in flight finish.
///
/// ```
/// use petstore_mock::MockServer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = MockServer::start().await;
/// assert!(server.url().ends_with("/v1"));
/// # }
/// ```
pub struct MockServer {
    origin: String,
    url: String,
    addr: SocketAddr,
    app: Arc<AppState>,
    /// Shared with the accept loop. So dropping the server can close the port, even if the loop
    /// does not run.
    listener: Arc<Listener>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    /// The server's own runtime, if any.
    runtime: Option<Runtime>,
}

impl MockServer {
    /// Serves on a bound listener.
    pub(super) fn serve(listener: TcpListener, addr: SocketAddr, context: ServeContext) -> Self {
        let context = Arc::new(context);
        let listener = Arc::new(Listener::new(listener));
        let (stop, stopped) = watch::channel(false);
        let scheme = match context.service.app().settings().authority {
            Some(_) => "https",
            None => "http",
        };
        let task = tokio::spawn({
            let (listener, context) = (Arc::clone(&listener), Arc::clone(&context));
            async move { listener::serve(&listener, context, stopped).await }
        });
        let origin = format!("{scheme}://{}", reachable(addr));
        Self {
            url: format!("{origin}/v1"),
            origin,
            addr,
            app: Arc::clone(context.service.app()),
            listener,
            stop,
            task,
            runtime: None,
        }
    }

    /// Returns the server with its own runtime.
    pub(super) fn on(mut self, runtime: Runtime) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Returns the base URL of the service, such as `http://127.0.0.1:4010/v1`.
    ///
    /// If the server listens on all addresses, this is the loopback address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the URL without `/v1`, for paths such as `/_mock/health`.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the address on which the server listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the certificate authority that clients must trust, as PEM; `None` without TLS
    /// ([`Builder::tls`](crate::Builder::tls)).
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn ca_certificate(&self) -> Option<&str> {
        self.app.settings().authority.as_deref()
    }

    /// Returns the server's clock, which a test can move.
    ///
    /// ```
    /// # use std::time::{Duration, SystemTime};
    /// # use petstore_mock::{Clock, MockServer};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), petstore_mock::StartError> {
    /// let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_735_732_800);
    /// let server = MockServer::builder().clock(Clock::frozen(noon)).start().await?;
    /// server.clock().advance(Duration::from_secs(60));
    /// assert_eq!(server.clock().now(), noon + Duration::from_secs(60));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn clock(&self) -> &Clock {
        self.app.clock()
    }

    /// Returns the server's pets, to add, read and remove them.
    #[must_use]
    pub fn pets(&self) -> Pets<'_> {
        Pets::new(&self.app)
    }

    /// Returns the server's orders, to add, read and remove them.
    #[must_use]
    pub fn orders(&self) -> Orders<'_> {
        Orders(&self.app)
    }

    /// Creates a key with its own quotas, for one test.
    #[must_use]
    pub fn key(&self, plan: Plan) -> Key {
        Key::fresh(&self.app, plan)
    }

    /// Returns the server's keys, to add, read and ban them.
    #[must_use]
    pub fn keys(&self) -> Keys<'_> {
        Keys(&self.app)
    }

    /// Restores the initial pets, orders and keys, with unused quotas and no bans. Removes keys
    /// that were added since. Does not change the clock.
    ///
    /// # Errors
    ///
    /// Fails if the data file cannot be written.
    pub fn reset(&self) -> Result<(), ChangeError> {
        self.app.reset()
    }

    /// Returns the pets and orders, to restore them later.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.app.stores().all().clone()
    }

    /// Restores the pets and orders of a snapshot. Every key has unused quotas and no ban afterwards.
    /// Does not change the clock.
    ///
    /// # Errors
    ///
    /// Fails if the data file cannot be written.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), ChangeError> {
        self.app.restore(snapshot.clone())
    }

    /// Returns the server's faults, to set and remove them.
    ///
    /// ```
    /// # use petstore_mock::{MockServer, Operation};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = MockServer::start().await;
    /// let fault = server.faults().on(Operation::ListPets).first(3).reset();
    /// assert_eq!(fault.hits(), 0);
    /// // It was not hit at all: without this, dropping it would fail the test.
    /// fault.detach();
    /// # }
    /// ```
    #[must_use]
    pub fn faults(&self) -> &Faults {
        self.app.faults()
    }

    /// Returns the exchanges in the journal, by number: all for `..`, or those that [`Target`] means.
    ///
    /// An exchange is available as soon as its response is being sent. The journal does not contain
    /// requests to `/_mock`.
    #[must_use]
    pub fn requests(&self, target: impl Into<Target>) -> Vec<Exchange> {
        self.app.journal().matching(&target.into())
    }

    /// Checks the number of requests in the journal.
    ///
    /// ```
    /// # use petstore_mock::{MockServer, Operation};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), reqwest::Error> {
    /// # let server = MockServer::start().await;
    /// # reqwest::get(format!("{}/pets?limit=5", server.url())).await?;
    /// server.verify(Operation::ListPets, 1);
    /// server.verify(Operation::CreatePet, 0);
    /// server.verify((http::Method::GET, "/store/inventory"), ..=2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the number is wrong. The message shows the last requests. Also panics if the number is
    /// uncertain because the journal has dropped requests.
    #[track_caller]
    #[expect(clippy::panic, reason = "an assertion panics")]
    pub fn verify(&self, target: impl Into<Target>, times: impl Into<Times>) {
        if let Err(text) = journal::verify(self.app.journal(), &target.into(), &times.into()) {
            panic!("{text}");
        }
    }

    /// Waits until the journal has this number of requests, for at most a minute in real time.
    ///
    /// ```
    /// # use petstore_mock::{MockServer, Operation};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = MockServer::start().await;
    /// let url = format!("{}/pets", server.url());
    /// tokio::spawn(async move { reqwest::get(url).await });
    /// server.wait_for(Operation::ListPets, 1..).await;
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If they do not come. The message shows the last requests.
    #[expect(clippy::panic, reason = "an assertion panics")]
    pub async fn wait_for(&self, target: impl Into<Target>, times: impl Into<Times>) {
        let (target, times) = (target.into(), times.into());
        if let Err(text) = journal::wait_for(self.app.journal(), &target, &times).await {
            panic!("{text}");
        }
    }

    /// Returns the compliance report since the start of the server. A reset does not clear it.
    ///
    /// ```
    /// # use petstore_mock::MockServer;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = MockServer::start().await;
    /// // … let the client under test work …
    /// server.report().assert_compliant();
    /// # }
    /// ```
    pub fn report(&self) -> Report {
        self.app.journal().report()
    }

    /// Returns the journal, which outlives the server.
    #[cfg(feature = "cli")]
    pub(crate) fn journal(&self) -> Arc<crate::journal::Journal> {
        Arc::clone(self.app.journal())
    }

    /// Stops the server: closes the port and idle connections, and waits for requests in flight,
    /// for 5 seconds at most, in real time.
    pub async fn stop(mut self) {
        self.listener.close();
        self.app.journal().close();
        // An error means that the server has already ended.
        let _ = self.stop.send(true);
        // Dropping `self` closes the remaining connections.
        tokio::select! {
            _ = &mut self.task => {}
            () = real_time::sleep(Duration::from_secs(5)) => {}
        }
    }
}

impl fmt::Debug for MockServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockServer")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.listener.close();
        self.task.abort();
        self.app.stores().close();
        // A runtime must not be dropped within another one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Returns an address to which a client can connect: loopback, if the server listens on all
/// addresses.
fn reachable(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, addr.port())
}
