//! A store for several machines: a Redis server with a stream for each key.
//!
//! The stream has the reports of all holders, in one order and with the server's times. Each process applies
//! all of them to its own replica of the ledger, so all replicas are equal, and each knows the answer to its own
//! report. That takes one round trip, whatever the others do: nothing conflicts. Now and then, a process adds
//! its replica to the stream, and removes the reports before it. A newcomer begins with the last replica.

use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::streams::StreamId;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo as _, TlsCertificates,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use url::Url;

use super::{FORMAT, StoreError};
use crate::clock;
use crate::rate_limit::quota::instant::{LedgerTime, MINUTE, micros};
use crate::rate_limit::quota::reading::MAX_BLOCK;
use crate::rate_limit::quota::{Answer, Ledger, Report};

/// Adds a report with the server's time in microseconds, and returns the entries from one on, or all if that is
/// gone.
const ADD_REPORT: &str = "\
local time = redis.call('TIME')
local micros = time[1] .. string.format('%06d', time[2])
local id = redis.call('XADD', KEYS[1], '*', 't', micros, 'r', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
local entries = redis.call('XRANGE', KEYS[1], ARGV[2], '+')
if not entries[1] or entries[1][1] ~= ARGV[2] then entries = redis.call('XRANGE', KEYS[1], '-', '+') end
return {id, entries}";
/// A replica is added to the stream after this many reports.
const REPLICA_INTERVAL: u64 = 256;
/// A stream that nobody uses expires after the longest block.
const TTL_MILLIS: i64 = (MAX_BLOCK + 60 * MINUTE) / 1_000;
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(2);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
const REPLICA_TIMEOUT: Duration = Duration::from_secs(1);

/// Shares limits between machines, through Redis 6.2 or later, or a compatible server.
///
/// The URL is `redis://USER:PASSWORD@HOST:PORT/DB`, or `rediss://` for TLS with the system's
/// certificates. The server stores no secrets, and the API key only as a slow hash. Set its
/// `maxmemory-policy` to `noeviction`. A failover to a replica without the last reports may cause a
/// 429.
///
/// Clones share the connection, so several clients need only one.
///
/// ```no_run
/// use petstore_client::Client;
/// use petstore_client::limits::{Limits, RedisStore};
///
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .limits(Limits::new().store(RedisStore::new("redis://cache.internal:6379")?))
///     .build()?;
/// # let _ = client;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RedisStore {
    client: Client,
    url: String,
    prefix: String,
    /// The trusted root certificates (PEM); empty for those of the system.
    roots: Vec<u8>,
    connection: Arc<Mutex<Option<OpenConnection>>>,
}

/// A connection, and the process that opened it. The child of a fork cannot use it.
struct OpenConnection {
    process: u32,
    connection: MultiplexedConnection,
}

/// The stream of one key's reports.
pub(crate) struct LedgerStream {
    store: RedisStore,
    name: String,
    replica: std::sync::Mutex<Option<Replica>>,
}

/// A ledger, and the last report that it includes.
#[derive(Debug, Clone)]
struct Replica {
    ledger: Ledger,
    last: EntryId,
    /// The server's time of that report, and when it was applied.
    time: LedgerTime,
    applied_at: Instant,
    /// The number of reports since the last replica in the stream.
    reports: u64,
}

/// The id of an entry: the server's time in milliseconds, and a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct EntryId {
    millis: u64,
    number: u64,
}

impl EntryId {
    fn parse(text: &str) -> Option<Self> {
        let (millis, number) = text.split_once('-')?;
        Some(Self {
            millis: millis.parse().ok()?,
            number: number.parse().ok()?,
        })
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.millis, self.number)
    }
}

impl RedisStore {
    /// Creates a store. It connects at the first call.
    ///
    /// # Errors
    ///
    /// Fails if the URL is invalid.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let info = url.into_connection_info().map_err(StoreError::new)?;
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            ensure_provider()?;
        }
        Ok(Self {
            client: Client::open(info).map_err(StoreError::new)?,
            url: url.to_owned(),
            prefix: "petstore:".to_owned(),
            roots: Vec::new(),
            connection: Arc::default(),
        })
    }

    /// Sets the prefix of all names (default: `petstore:`).
    #[must_use]
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Trusts these root certificates (PEM) instead of the system's. Only for `rediss`.
    ///
    /// # Errors
    ///
    /// Fails if the PEM contains no certificate, or the scheme is not `rediss`.
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Result<Self, StoreError> {
        let pem = pem.as_ref();
        if CertificateDer::pem_slice_iter(pem).next().is_none() {
            return Err(StoreError::new("no root certificate in PEM was given"));
        }
        let certificates = TlsCertificates {
            client_tls: None,
            root_cert: Some(pem.to_vec()),
        };
        let info = self.client.get_connection_info().clone();
        self.client = Client::build_with_tls(info, certificates).map_err(StoreError::new)?;
        pem.clone_into(&mut self.roots);
        // Clones trust other certificates, so they must not share this connection.
        self.connection = Arc::default();
        Ok(self)
    }

    pub(super) fn ledger(&self, name: &str) -> LedgerStream {
        LedgerStream {
            store: self.clone(),
            name: format!("{}limits:{FORMAT}:{name}", self.prefix),
            replica: std::sync::Mutex::default(),
        }
    }

    /// Returns the settings, which tell it from other stores. They include the password.
    pub(super) fn identity(&self) -> [&[u8]; 3] {
        [self.url.as_bytes(), self.prefix.as_bytes(), &self.roots]
    }

    /// Returns the connection. Connects if there is none.
    async fn connection(&self) -> Result<MultiplexedConnection, StoreError> {
        let process = std::process::id();
        let mut open = self.connection.lock().await;
        if let Some(open) = &*open
            && open.process == process
        {
            return Ok(open.connection.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECTION_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let client = &self.client;
        let new = client.get_multiplexed_async_connection_with_config(&config);
        let connection = new.await.map_err(StoreError::new)?;
        *open = Some(OpenConnection {
            process,
            connection: connection.clone(),
        });
        Ok(connection)
    }

    /// Sends a command. After an error, the next command opens a new connection: the server may have become a
    /// replica, or the connection's runtime may be gone.
    async fn query<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, StoreError> {
        let mut connection = self.connection().await?;
        match command.query_async(&mut connection).await {
            Ok(value) => Ok(value),
            Err(error) => {
                *self.connection.lock().await = None;
                Err(StoreError::new(error))
            }
        }
    }
}

impl LedgerStream {
    pub(super) async fn exchange(&self, report: &Report) -> Result<Answer, StoreError> {
        let known = self.replica().clone();
        let from = known.as_ref().map(|known| known.last);
        let (own, entries) = self.add(report, from).await?;
        let follows = |known: &Replica| {
            let first = entries.first().and_then(|entry| EntryId::parse(&entry.id));
            first == Some(known.last)
        };
        let mut replica = match known {
            Some(known) if follows(&known) => known,
            // This process is new, or was away for so long that the reports were removed. Or the server has lost them.
            _ => Replica::of(&entries),
        };
        let answer = replica.apply(&entries, own);
        let is_turn = replica.reports > 0 && replica.reports.is_multiple_of(REPLICA_INTERVAL);
        if is_turn && replica.last == own {
            // If this fails, another process adds its own later.
            let added = timeout(REPLICA_TIMEOUT, self.add_replica(&replica));
            drop(added.await);
        }
        *self.replica() = Some(replica);
        answer.ok_or_else(|| StoreError::new("it has lost the report"))
    }

    /// Adds a report. Returns its id, and the entries from one on.
    async fn add(
        &self,
        report: &Report,
        from: Option<EntryId>,
    ) -> Result<(EntryId, Vec<StreamId>), StoreError> {
        let bytes = postcard::to_allocvec(report).map_err(StoreError::new)?;
        let from = from.map_or_else(|| "-".to_owned(), |from| from.to_string());
        let mut command = redis::cmd("EVAL");
        command.arg(ADD_REPORT).arg(1).arg(&self.name);
        command.arg(bytes).arg(from).arg(TTL_MILLIS);
        let (own, entries): (String, redis::streams::StreamRangeReply) =
            self.store.query(&command).await?;
        let own = EntryId::parse(&own).ok_or_else(|| StoreError::new("it returned no id"))?;
        Ok((own, entries.ids))
    }

    /// Adds a replica, and removes the reports that it includes, except the last one.
    async fn add_replica(&self, replica: &Replica) -> Result<(), StoreError> {
        let bytes = postcard::to_allocvec(&(replica.last, &replica.ledger));
        let bytes = bytes.map_err(StoreError::new)?;
        let mut commands = redis::pipe();
        commands.atomic();
        commands.xadd(&self.name, "*", &[("s", bytes)]).ignore();
        let trim = commands.cmd("XTRIM").arg(&self.name).arg("MINID");
        trim.arg(replica.last.to_string()).ignore();
        let mut connection = self.store.connection().await?;
        let added = commands.query_async::<()>(&mut connection).await;
        added.map_err(StoreError::new)
    }

    pub(super) fn last_seen(&self) -> (Ledger, LedgerTime) {
        match &*self.replica() {
            Some(replica) => {
                let since = replica.applied_at.elapsed();
                (replica.ledger.clone(), replica.time.plus(micros(since)))
            }
            None => (Ledger::default(), LedgerTime::default()),
        }
    }

    pub(super) fn location(&self) -> String {
        without_credentials(&self.store.url)
    }

    fn replica(&self) -> MutexGuard<'_, Option<Replica>> {
        self.replica.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Replica {
    /// Begins with the latest replica in a stream, if there is one.
    fn of(entries: &[StreamId]) -> Self {
        let stored = entries.iter().filter_map(|entry| {
            let bytes = entry.get::<Vec<u8>>("s")?;
            let (last, ledger): (EntryId, Ledger) = postcard::from_bytes(&bytes).ok()?;
            ledger.is_plausible().then_some((last, ledger))
        });
        // One that was added late may be older than the one before it.
        let stored = stored.max_by_key(|(last, _)| *last);
        let (last, ledger) = stored.unwrap_or_default();
        Self {
            ledger,
            last,
            time: LedgerTime::default(),
            applied_at: clock::now(),
            reports: 0,
        }
    }

    /// Applies the entries that it does not include yet. Returns the answer to one of these reports.
    fn apply(&mut self, entries: &[StreamId], own: EntryId) -> Option<Answer> {
        let mut answer = None;
        for entry in entries {
            let Some(id) = EntryId::parse(&entry.id) else {
                continue;
            };
            if id <= self.last {
                continue;
            }
            self.last = id;
            if entry.contains_key("s") {
                self.reports = 0;
            }
            // All replicas skip an entry that none can read.
            let Some((report, time)) = report_of(entry) else {
                continue;
            };
            self.reports += 1;
            self.time = time;
            let granted = self.ledger.exchange(&report, time);
            if id == own {
                answer = Some(granted);
            }
        }
        self.applied_at = clock::now();
        answer
    }
}

fn report_of(entry: &StreamId) -> Option<(Report, LedgerTime)> {
    let bytes = entry.get::<Vec<u8>>("r")?;
    let time = entry.get::<i64>("t")?;
    Some((postcard::from_bytes(&bytes).ok()?, LedgerTime(time)))
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("location", &without_credentials(&self.url))
            .finish_non_exhaustive()
    }
}

/// Returns a URL without credentials, for messages.
fn without_credentials(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else {
        return "Redis".to_owned();
    };
    let cleared = url.set_username("").and_then(|()| url.set_password(None));
    if cleared.is_ok() {
        url.to_string()
    } else {
        format!("{}:…", url.scheme())
    }
}

/// Makes sure that rustls has a crypto provider, without which it panics: the installed one, or
/// else the one of the feature `rustls`.
fn ensure_provider() -> Result<(), StoreError> {
    if rustls::crypto::CryptoProvider::get_default().is_some() {
        return Ok(());
    }
    #[cfg(feature = "rustls")]
    {
        // If another thread was faster, its provider is used.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Ok(())
    }
    #[cfg(not(feature = "rustls"))]
    Err(StoreError::new(
        "no crypto provider for rustls is installed; install one before the store is created, or \
         enable the feature `rustls` of petstore-client",
    ))
}
