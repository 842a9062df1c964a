//! A running server: the methods that tests use, and its end.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use super::{
    connection::ServeContext,
    limits::Limits,
    listener::{self, Listener},
    thread::ServerThread,
    tls::Tls,
};
use crate::{
    clock::Clock,
    clock::real_time,
    exchange::Exchange,
    fault::Faults,
    handle::{Key, Keys, Orders, Pets, Scope},
    http::Service,
    pattern::Pattern,
    plan::Plan,
    report::Report,
    state::{AppState, ChangeError, Snapshot, block_on},
    verify::{Expectation, Times, check_order, check_times},
};

/// A running mock of the Pet Store service.
///
/// It runs on the tokio runtime it was started on, or on a thread of its own where it was started
/// with [`MockServer::start_blocking`]. Dropping it closes its port at once and cuts its connections;
/// [`MockServer::stop`] lets requests at hand finish first.
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
    grace: Duration,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
    app: Arc<AppState>,
    /// Shared with the accept loop, so that dropping closes the port without the loop's help.
    listener: Arc<Listener>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    /// The runtime, where it is the server's own. Last, since all else ends before it.
    thread: Option<ServerThread>,
}

impl MockServer {
    /// Serves on a bound listener.
    pub(super) fn serve(
        listener: TcpListener,
        addr: SocketAddr,
        app: Arc<AppState>,
        limits: Limits,
        tls: Option<Tls>,
    ) -> Self {
        let service = Service::new(Arc::clone(&app));
        let listener = Arc::new(Listener::new(listener));
        let (stop, stopped) = watch::channel(false);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let context = Arc::new(ServeContext { service, limits, tls: tls.clone() });
        let task = tokio::spawn({
            let listener = Arc::clone(&listener);
            async move { listener::serve(&listener, context, stopped).await }
        });
        let origin = format!("{scheme}://{}", reachable(addr));
        Self {
            url: format!("{origin}/v1"),
            origin,
            addr,
            grace: limits.grace,
            #[cfg(feature = "tls")]
            tls,
            app,
            listener,
            stop,
            task,
            thread: None,
        }
    }

    /// Returns the server with the runtime it runs on.
    pub(super) fn on(mut self, thread: ServerThread) -> Self {
        self.thread = Some(thread);
        self
    }

    /// Returns the base URL of the service, such as `http://127.0.0.1:4010/v1`.
    ///
    /// A server that listens on all addresses is named by the loopback one.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the URL without the `/v1`, for the mock's own paths such as `/_mock/health`.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the address the server listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the certificate of the authority that vouches for the server, as PEM: what a client has to
    /// trust; nothing where the server speaks plain HTTP ([`Builder::tls`](crate::Builder::tls)).
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn ca_certificate(&self) -> Option<&str> {
        self.tls.as_ref().map(Tls::authority)
    }

    /// Returns the server's clock, by which a test lets time pass.
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
        &self.app.clock
    }

    /// Returns the server's pets, to add, look at and remove.
    #[must_use]
    pub fn pets(&self) -> Pets<'_> {
        Pets::new(&self.app)
    }

    /// Returns the server's orders, to add, look at and remove.
    #[must_use]
    pub fn orders(&self) -> Orders<'_> {
        Orders::new(&self.app)
    }

    /// Makes a key of its own, with quotas that no other test uses.
    #[must_use]
    pub fn key(&self, plan: Plan) -> Key {
        Key::fresh(&self.app, plan)
    }

    /// Returns the server's keys, to add, look at and ban.
    #[must_use]
    pub fn keys(&self) -> Keys<'_> {
        Keys::new(&self.app)
    }

    /// Goes back to how the server started: its pets, orders and keys, with nothing used and no one
    /// banned. Keys that were made since are gone. Only the clock stays as it is.
    ///
    /// # Errors
    ///
    /// Where the file that keeps the data can't be written.
    pub fn reset(&self) -> Result<(), ChangeError> {
        block_on(self.app.reset())
    }

    /// Returns the pets and orders, and what the keys have used, to be put back later.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.app.snapshot()
    }

    /// Puts back what a snapshot holds, all of it or nothing. Keys that it does not know stay as they
    /// are, and so does the clock.
    ///
    /// # Errors
    ///
    /// Where the snapshot contradicts itself or counts in another kind of window than this server, or
    /// the file that keeps the data can't be written.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<(), ChangeError> {
        block_on(self.app.restore(snapshot))
    }

    /// Begins a scope, such as a test: returns a guard that puts pets, orders, and what the keys have used
    /// back when it is dropped.
    ///
    /// The report names the scope with what it finds meanwhile. Of tests that run at the same time, each
    /// needs a key of its own ([`MockServer::key`]), or a client that sends `X-Mock-Scope: NAME`.
    ///
    /// ```
    /// # use petstore_mock::MockServer;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), petstore_mock::ChangeError> {
    /// let server = MockServer::start().await;
    /// {
    ///     let _scope = server.scope("empty_store");
    ///     server.pets().clear()?;
    /// }
    /// assert_eq!(server.pets().len(), 25);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scope(&self, name: &str) -> Scope {
        Scope::new(&self.app, name)
    }

    /// Returns the server's faults, by which a test lets things go wrong.
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
        &self.app.faults
    }

    /// Returns the exchanges that the journal still has and that the pattern means, by number.
    ///
    /// An exchange is there as soon as its answer is on its way; what was asked under `/_mock` is
    /// not in the journal.
    #[must_use]
    pub fn requests(&self, pattern: impl Into<Pattern>) -> Vec<Exchange> {
        self.app.journal.matching(&pattern.into())
    }

    /// Checks that so many of the requests that the journal has are as the pattern says.
    ///
    /// ```
    /// # use petstore_mock::{MockServer, Operation, Pattern};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), reqwest::Error> {
    /// # let server = MockServer::start().await;
    /// # reqwest::get(format!("{}/pets?limit=5", server.url())).await?;
    /// server.verify(Operation::ListPets, 1);
    /// server.verify(Pattern::from(Operation::ListPets).query("limit", "5"), 1..);
    /// server.verify(Operation::CreatePet, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Where it is otherwise, with the requests that came nearest and what they have instead. Also
    /// where it can't be known, because the journal has forgotten some.
    #[track_caller]
    #[expect(clippy::panic, reason = "that is what an assertion does")]
    pub fn verify(&self, pattern: impl Into<Pattern>, times: impl Into<Times>) {
        if let Err(text) = check_times(&self.app.journal, &pattern.into(), &times.into(), 0) {
            panic!("{text}");
        }
    }

    /// Checks that requests arrived as these patterns say, in this order; others may have arrived
    /// in between.
    ///
    /// # Panics
    ///
    /// Where they did not, with how far it went and what came nearest to the one that is missing.
    #[track_caller]
    #[expect(clippy::panic, reason = "that is what an assertion does")]
    pub fn verify_order<P: Into<Pattern>>(&self, patterns: impl IntoIterator<Item = P>) {
        let patterns: Vec<Pattern> = patterns.into_iter().map(Into::into).collect();
        if let Err(text) = check_order(&self.app.journal, &patterns) {
            panic!("{text}");
        }
    }

    /// Expects so many requests from now on that are as the pattern says: it is checked at the end of
    /// the scope.
    pub fn expect(&self, pattern: impl Into<Pattern>, times: impl Into<Times>) -> Expectation {
        Expectation::new(Arc::clone(&self.app.journal), pattern.into(), times.into())
    }

    /// Returns what the server's clients did, since it was started, that the specification forbids,
    /// that does harm, or that could be better. A reset forgets none of it.
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
        self.app.journal.report()
    }

    /// Returns the journal, which outlives the server.
    #[cfg(feature = "cli")]
    pub(crate) fn journal(&self) -> Arc<crate::journal::Journal> {
        Arc::clone(&self.app.journal)
    }

    /// Stops the server: closes the port, closes idle connections, and waits for requests at
    /// hand, as long as [`Limits::grace`] says: in real time, also where the time of the runtime is paused.
    pub async fn stop(mut self) {
        self.listener.close();
        self.app.journal.close();
        // Nobody listening means that the server has ended already.
        let _ = self.stop.send(true);
        // What is still there after that is cut when `self` is dropped.
        tokio::select! {
            _ = &mut self.task => {}
            () = real_time::sleep(self.grace) => {}
        }
    }
}

impl fmt::Debug for MockServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockServer").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.listener.close();
        self.task.abort();
        self.app.close();
    }
}

/// An address that can be connected to: "all addresses" can be listened on only.
fn reachable(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, addr.port())
}
