//! A store for several machines: a Redis server with a value for each key.
//!
//! An update is one round trip. It replaces the record if it is still that of the last update. A
//! command that times out may still run. That is harmless, because members report absolute numbers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo as _, TlsCertificates,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use crate::backoff::jitter;
use crate::clock;
use crate::rate_limit::quota::refusals::MAX_BLOCK;
use crate::rate_limit::shared::store::{Change, LimitStore, RecordKey, StoreError, StoreTime};

/// Sets a record if it has not changed since it was read. Returns whether it was set, the server's
/// time in microseconds, and the current record if it was not set.
const COMPARE_AND_SET: &str = "\
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local current = redis.call('GET', KEYS[1])
if string.sub(current or '', 1, 16) ~= ARGV[1] then return {0, now, current} end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return {1, now, false}";
/// A record begins with this many bytes, which are unique.
const TAG: usize = 16;
/// A record expires if nobody updates it for the duration of the longest block.
const TTL: Duration = MAX_BLOCK;
/// The time limit for connecting. It suffices for a server with a latency of 250 ms, and for many
/// processes that start at the same time on a busy machine.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(2);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The time limit for an update: it may connect, read, and write twice if members conflict.
const UPDATE_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum number of attempts of an update, if others update the record first each time.
const MAX_CONFLICTS: u32 = 50;
/// The bounds of the delay after conflicts, which starts at two round trips, and doubles.
const MIN_CONFLICT_PAUSE: Duration = Duration::from_millis(1);
const MAX_CONFLICT_PAUSE: Duration = Duration::from_millis(100);
/// The maximum number of records that are kept in memory.
const MAX_RECORDS: usize = 1_024;

/// Shares limits between machines, through Redis 6.2 or later, or a compatible server.
///
/// The URL is `redis://USER:PASSWORD@HOST:PORT/DB`, or `rediss://` for TLS with the system's
/// certificates. The server stores no secrets, and the API key only as a slow hash. Set its
/// `maxmemory-policy` to `noeviction`. A failover to a replica without the last updates may cause a
/// 429.
///
/// Clones share the connection, so several clients need only one.
///
/// ```no_run
/// use petstore_client::{Client, rate_limit::RedisStore};
///
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .shared_limits(RedisStore::new("redis://cache.internal:6379")?)
///     .build()?;
/// # let _ = client;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RedisStore {
    client: Client,
    location: String,
    prefix: String,
    connection: Arc<Mutex<Option<OpenConnection>>>,
    records: Arc<std::sync::Mutex<Records>>,
}

type Records = HashMap<RecordKey, Arc<Mutex<LastRecord>>>;

/// A connection, and the process that opened it. The child of a fork cannot use it.
struct OpenConnection {
    process: u32,
    connection: MultiplexedConnection,
}

/// The result of the last update.
#[derive(Default)]
struct LastRecord {
    record: Option<Vec<u8>>,
    clock: Option<ServerClock>,
    updates: u64,
}

/// The server's clock, as far as it is known.
#[derive(Clone, Copy)]
struct ServerClock {
    /// Microseconds since 1970, at a local time.
    time: u64,
    at: Instant,
}

impl ServerClock {
    /// Reads a response. The server has read its clock between `asked` and `answered`. What is known
    /// only changes if it contradicts that: otherwise, each slow response would move this member's
    /// clock.
    fn read(known: Option<Self>, time: u64, asked: Instant, answered: Instant) -> Self {
        let latest = time.saturating_add(micros(answered - asked));
        let time = match known {
            Some(known) => known.since_1970(answered).clamp(time, latest),
            None => time.midpoint(latest),
        };
        Self { time, at: answered }
    }

    fn since_1970(self, now: Instant) -> u64 {
        self.time.saturating_add(micros(now - self.at))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl RedisStore {
    /// Creates a store. It connects at the first update.
    ///
    /// # Errors
    ///
    /// Fails if the URL is invalid, or its scheme is neither `redis` nor `rediss`.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let info = url.into_connection_info().map_err(StoreError::new)?;
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            ensure_provider()?;
        }
        Ok(Self {
            client: Client::open(info).map_err(StoreError::new)?,
            location: without_credentials(url),
            prefix: "petstore:".to_owned(),
            connection: Arc::default(),
            records: Arc::default(),
        })
    }

    /// Sets the prefix of all record names (default: `petstore:`).
    #[must_use]
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        // Clones keep the old prefix, so they must not share these records.
        self.records = Arc::default();
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
        // Clones trust other certificates, so they must not share this connection.
        self.connection = Arc::default();
        Ok(self)
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
        let new = self
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await;
        let new = new.map_err(StoreError::new)?;
        *open = Some(OpenConnection {
            process,
            connection: new.clone(),
        });
        Ok(new)
    }

    /// Sends a command. After an error, the next command opens a new connection: the server may
    /// have become a replica, or the connection's runtime may be gone.
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

    fn last(&self, key: &RecordKey) -> Arc<Mutex<LastRecord>> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() >= MAX_RECORDS && !records.contains_key(key) {
            // This loses nothing: the next update of such a record reads it first.
            records.clear();
        }
        Arc::clone(records.entry(key.clone()).or_default())
    }

    fn name(&self, key: &RecordKey) -> String {
        format!("{}limits:{}", self.prefix, key.as_str())
    }
}

impl LimitStore for RedisStore {
    async fn update(&self, key: &RecordKey, mut change: Change<'_>) -> Result<(), StoreError> {
        let last = self.last(key);
        let mut last = last.lock().await;
        let name = self.name(key);
        for conflicts in 0..MAX_CONFLICTS {
            let tag = last.record.as_deref().unwrap_or_default();
            let tag = &tag[..tag.len().min(TAG)];
            let mut command = redis::cmd("EVAL");
            command.arg(COMPARE_AND_SET).arg(1).arg(&name);
            let new = match last.clock {
                Some(clock) => {
                    let since = Duration::from_micros(clock.since_1970(clock::now()));
                    let current = last.record.as_deref().map(|record| &record[TAG..]);
                    let record = change.apply(current, StoreTime::new(0, since));
                    let [member, update] = [change.member().get(), last.updates + 1];
                    Some([&member.to_le_bytes()[..], &update.to_le_bytes(), &record].concat())
                }
                // The first update only reads.
                None => None,
            };
            match &new {
                Some(new) => command.arg(tag).arg(new),
                None => command.arg("none").arg(""),
            };
            command.arg(TTL.as_secs() * 1_000);
            // The server reads its clock only once the connection is open.
            self.connection().await?;
            let asked = clock::now();
            let answer = self.query::<(bool, u64, Option<Vec<u8>>)>(&command).await?;
            let (is_set, time, current) = answer;
            last.clock = Some(ServerClock::read(last.clock, time, asked, clock::now()));
            last.updates += 1;
            if is_set {
                last.record = new;
                return Ok(());
            }
            last.record = current.filter(|record| record.len() >= TAG);
            // Try again at once, because the record that the conflict returned would soon be
            // outdated.
            if conflicts % 2 == 1 {
                let pause = asked.elapsed().max(MIN_CONFLICT_PAUSE) * (1 << conflicts.min(9));
                tokio::time::sleep(jitter(pause.min(MAX_CONFLICT_PAUSE))).await;
            }
        }
        Err(StoreError::new("other members always update first"))
    }

    async fn forget(&self, key: Option<&RecordKey>) -> Result<(), StoreError> {
        if let Some(key) = key {
            return self.query(redis::cmd("DEL").arg(self.name(key))).await;
        }
        let pattern = format!(
            "{}limits:*",
            self.prefix.replace(['*', '?', '[', '\\'], "?")
        );
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor)
                .arg("MATCH")
                .arg(&pattern)
                .arg("COUNT")
                .arg(1_000);
            let (next, names) = self.query::<(u64, Vec<String>)>(&scan).await?;
            if !names.is_empty() {
                self.query::<()>(redis::cmd("DEL").arg(names)).await?;
            }
            if next == 0 {
                return Ok(());
            }
            cursor = next;
        }
    }

    fn location(&self) -> Cow<'_, str> {
        self.location.as_str().into()
    }

    fn time_limit(&self) -> Duration {
        UPDATE_TIMEOUT
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("location", &self.location)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_response_does_not_move_the_servers_clock() {
        let start = clock::now();
        let at = |millis| start + Duration::from_millis(millis);
        // The server's clock is 1,000 s ahead of this test's.
        let server = |millis: u64| 1_000_000_000 + millis * 1_000;
        let known = ServerClock::read(None, server(3), at(0), at(6));
        assert_eq!(known.since_1970(at(6)), server(6));
        // It was read at the beginning or at the end of a slow request.
        for read in [101, 399] {
            let known = ServerClock::read(Some(known), server(read), at(100), at(400));
            assert_eq!(known.since_1970(at(500)), server(500), "{read}");
        }
        // It was set forward by a second, and back by a few milliseconds.
        for (set, earliest, latest) in [(1_101, 1_101, 1_103), (99, 99, 101)] {
            let known = ServerClock::read(Some(known), server(set), at(100), at(102));
            let now = known.since_1970(at(102));
            assert!((server(earliest)..=server(latest)).contains(&now), "{set}");
        }
    }

    #[test]
    fn a_first_slow_response_is_corrected_by_a_faster_one() {
        let start = clock::now();
        let at = |millis| start + Duration::from_millis(millis);
        let server = |millis: u64| 1_000_000_000 + millis * 1_000;
        for read in [0, 80] {
            let known = ServerClock::read(None, server(read), at(0), at(80));
            assert_ne!(known.since_1970(at(80)), server(80));
            let known = ServerClock::read(Some(known), server(101), at(100), at(102));
            let error = known.since_1970(at(102)).abs_diff(server(102));
            assert!(error <= 1_000, "{error}");
        }
    }
}
