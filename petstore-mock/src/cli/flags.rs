//! The flags of a server, and the builder that they configure.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
    time::SystemTime,
};

use clap::{
    Args, ValueEnum,
    builder::{FalseyValueParser, PossibleValuesParser, RangedU64ValueParser, TypedValueParser},
    value_parser,
};

use super::{
    gate::{GateArgs, RuleArgs},
    outcome::CliError,
};
use crate::{
    clock::{self, Clock},
    cors::Cors,
    model::PetStatus,
    plan::Plan,
    server::{Builder, Limits, MockServer},
    state::{BanPolicy, InitialKey, RateHeaders, Window},
};

/// The flags of `serve`.
#[derive(Args, Clone)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) service: ServiceArgs,
    #[command(flatten)]
    assumptions: AssumptionArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    pub(super) gate: GateArgs,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Server")]
pub(super) struct ServerArgs {
    /// Address to listen on.
    #[arg(
        long,
        env = "PETSTORE_MOCK_ADDR",
        hide_env = true,
        value_name = "ADDR",
        value_parser = address,
        default_value = "127.0.0.1"
    )]
    addr: IpAddr,

    /// Port to listen on; 0 for a free port (default: 4010; with exec, a free port).
    #[arg(long, env = "PETSTORE_MOCK_PORT", hide_env = true, value_name = "PORT")]
    pub(super) port: Option<u16>,

    /// File to write the port to, before the ready line.
    #[arg(
        long,
        env = "PETSTORE_MOCK_PORT_FILE",
        hide_env = true,
        value_name = "FILE"
    )]
    pub(super) port_file: Option<PathBuf>,

    /// Serve over TLS, with a new certificate authority at each start.
    ///
    /// The certificate is for localhost, 127.0.0.1, ::1 and the listening address.
    #[cfg(feature = "tls")]
    #[arg(long, env = "PETSTORE_MOCK_TLS", hide_env = true, value_parser = FalseyValueParser::new())]
    tls: bool,

    /// File to write the authority's certificate to (PEM), before the ready line.
    #[cfg(feature = "tls")]
    #[arg(
        long,
        env = "PETSTORE_MOCK_TLS_CA_FILE",
        hide_env = true,
        value_name = "FILE",
        requires = "tls"
    )]
    pub(super) tls_ca_file: Option<PathBuf>,

    /// File with a token for administration from other machines.
    ///
    /// The variable PETSTORE_MOCK_ADMIN_TOKEN also sets it. Without a token, administration is
    /// local only.
    #[arg(
        long,
        env = "PETSTORE_MOCK_ADMIN_TOKEN_FILE",
        hide_env = true,
        value_name = "FILE"
    )]
    pub(super) admin_token_file: Option<PathBuf>,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Service")]
pub(super) struct ServiceArgs {
    /// Key and its plan: free, pro, business, enterprise, enterprise:MINUTE/DAY or
    /// enterprise:MINUTE/HOUR/DAY (repeatable).
    ///
    /// NAME:KEY=PLAN gives the key a name for reports and the journal. Write :KEY=PLAN if a key
    /// without a name contains a colon. `,senders=8` after the plan is --senders for this key.
    ///
    /// Replaces the default keys: free-key=free, pro-key=pro, business-key=business,
    /// enterprise-key=enterprise. Assumption: the specification shows neither how a key maps to a
    /// plan nor the quotas of Enterprise (default: 1000000 per minute and 100000000 per day).
    // Parsed later: clap would print an invalid value, which contains a key.
    #[arg(
        long = "key",
        env = "PETSTORE_MOCK_KEY",
        hide_env = true,
        value_delimiter = ' ',
        value_name = "[NAME:]KEY=PLAN[,senders=N]"
    )]
    pub(super) keys: Vec<String>,

    /// Most requests of a key that may be under way at once, for the compliance report (default: 1).
    ///
    /// Each of these senders may have to learn by itself that it is told to wait. Declare no more than
    /// there are, or the report finds less.
    #[arg(
        long,
        env = "PETSTORE_MOCK_SENDERS",
        hide_env = true,
        value_name = "N",
        value_parser = value_parser!(u32).range(1..)
    )]
    senders: Option<u32>,

    /// JSON file with the initial pets; `none` for an empty store.
    ///
    /// An array of pets, or {"pets": [...], "orders": [...]}. A pet without an id gets one. The
    /// default is 25 pets, the same at each start.
    #[arg(
        long,
        env = "PETSTORE_MOCK_SEED",
        hide_env = true,
        value_name = "FILE|none"
    )]
    pub(super) seed: Option<PathBuf>,

    /// File that keeps pets, orders and ids; created if missing (default: keep nothing).
    ///
    /// A pet confirmed with 201 survives a kill of the process. The seed applies only to a new
    /// or empty file. Only one petstore-mock at a time can use a file.
    #[arg(long, env = "PETSTORE_MOCK_DATA", hide_env = true, value_name = "FILE")]
    data: Option<PathBuf>,

    /// Give each key its own pets and orders, for tests that run in parallel.
    ///
    /// A key begins with the pets that the server has at the key's first request.
    #[arg(long, env = "PETSTORE_MOCK_ISOLATE_KEYS", hide_env = true, value_parser = FalseyValueParser::new())]
    #[arg(conflicts_with = "data")]
    isolate_keys: bool,

    /// Let requests choose a fault with X-Mock-Fault: NAME.
    ///
    /// NAME is that of a fault with "when": "named", a status such as 503, reset, emptyReply, hang or
    /// malformedJson.
    #[arg(long, env = "PETSTORE_MOCK_FAULT_HEADER", hide_env = true, value_parser = FalseyValueParser::new())]
    fault_header: bool,

    /// JSON file with an array of initial faults.
    ///
    /// The format of each is that of POST /_mock/faults, such as {"operation": "listPets",
    /// "effect": {"status": 503}}.
    #[arg(
        long,
        env = "PETSTORE_MOCK_FAULTS",
        hide_env = true,
        value_name = "FILE"
    )]
    pub(super) faults: Option<PathBuf>,

    /// Start of the mock's clock, such as 2030-12-04 or 2030-12-04T23:59:00Z (default: now).
    #[arg(long, env = "PETSTORE_MOCK_START_AT", hide_env = true, value_name = "DATE", value_parser = clock::parse_date)]
    start_at: Option<SystemTime>,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Assumptions")]
struct AssumptionArgs {
    /// Status of a pet that is created without one (assumption: none).
    #[arg(long, env = "PETSTORE_MOCK_DEFAULT_STATUS", hide_env = true, value_name = "STATUS", value_parser = one_of::<PetStatus>(PetStatus::NAMES))]
    default_status: Option<PetStatus>,

    /// Whether a page has a Link to the next page (assumption: on).
    #[arg(
        long,
        env = "PETSTORE_MOCK_PAGING",
        hide_env = true,
        value_name = "SWITCH",
        default_value = "on"
    )]
    paging: Switch,

    /// Kind of quota window (assumption: fixed).
    ///
    /// Fixed windows are aligned to the minute and to the UTC day. Sliding windows are the last 60
    /// and 86400 seconds.
    #[arg(long, env = "PETSTORE_MOCK_WINDOW", hide_env = true, value_name = "KIND", default_value = "fixed", value_parser = one_of::<Window>(Window::NAMES))]
    window: Window,

    /// Origin whose web pages may use the service; `*` for all, `off` for none (assumption: all).
    #[arg(
        long,
        env = "PETSTORE_MOCK_CORS",
        hide_env = true,
        value_name = "ORIGIN|*|off",
        default_value_t
    )]
    cors: Cors,

    /// Quota in the X-RateLimit headers (assumption: the one with the fewest requests left).
    #[arg(
        long, env = "PETSTORE_MOCK_RATE_HEADERS", hide_env = true,
        value_name = "QUOTA",
        default_value = "tightest",
        value_parser = one_of::<RateHeaders>(RateHeaders::NAMES)
    )]
    rate_headers: RateHeaders,

    /// Requests before the end of Retry-After that do not cause a ban (assumption: 10).
    #[arg(
        long, env = "PETSTORE_MOCK_BAN_AFTER", hide_env = true,
        value_name = "N",
        default_value_t = BanPolicy::default().after,
        value_parser = value_parser!(u32).range(..=i64::from(BanPolicy::MAX_AFTER))
    )]
    ban_after: u32,

    /// Seconds within which those requests are counted (assumption: 60).
    #[arg(long, env = "PETSTORE_MOCK_BAN_WITHIN", hide_env = true, value_name = "SECONDS", default_value = "60", value_parser = seconds())]
    ban_within: Duration,

    /// Duration of a ban in seconds; 0 disables bans (assumption: 300).
    #[arg(long, env = "PETSTORE_MOCK_BAN_FOR", hide_env = true, value_name = "SECONDS", default_value = "300", value_parser = seconds())]
    ban_for: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Maximum connections at once; others are answered 503.
    #[arg(
        long, env = "PETSTORE_MOCK_MAX_CONNECTIONS", hide_env = true,
        value_name = "N",
        default_value = "4096",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..)
    )]
    max_connections: usize,

    /// Maximum size in bytes of a body for the administration; larger ones are answered 413.
    #[arg(
        long,
        env = "PETSTORE_MOCK_MAX_ADMIN_BODY",
        hide_env = true,
        value_name = "BYTES",
        default_value = "268435456"
    )]
    max_admin_body: usize,

    /// Seconds for the head of a request, then it is answered 408; 0 for no limit.
    #[arg(long, env = "PETSTORE_MOCK_HEAD_TIMEOUT", hide_env = true, value_name = "SECONDS", default_value = "10", value_parser = seconds())]
    head_timeout: Duration,

    /// Seconds for the body of a request, then it is answered 408; 0 for no limit.
    #[arg(long, env = "PETSTORE_MOCK_BODY_TIMEOUT", hide_env = true, value_name = "SECONDS", default_value = "30", value_parser = seconds())]
    body_timeout: Duration,

    /// Seconds that a connection may be idle, then it is closed; 0 for no limit.
    #[arg(long, env = "PETSTORE_MOCK_IDLE_TIMEOUT", hide_env = true, value_name = "SECONDS", default_value = "120", value_parser = seconds())]
    idle_timeout: Duration,

    /// Seconds after which a connection is reset if its client does not read the response; 0 for no
    /// limit.
    #[arg(long, env = "PETSTORE_MOCK_WRITE_TIMEOUT", hide_env = true, value_name = "SECONDS", default_value = "30", value_parser = seconds())]
    write_timeout: Duration,

    /// Seconds for requests in flight when the server stops; a second signal stops it immediately.
    #[arg(long, env = "PETSTORE_MOCK_GRACE", hide_env = true, value_name = "SECONDS", default_value = "5", value_parser = seconds())]
    grace: Duration,
}

/// Parses the name of an enum variant.
fn one_of<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: std::error::Error + Send + Sync> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>())
}

/// Parses an IP address. An address with a port is a common mistake.
fn address(text: &str) -> Result<IpAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    match text.parse::<SocketAddr>() {
        Ok(both) => {
            let (address, port) = (both.ip(), both.port());
            Err(format!(
                "the port has its own flag: use `--addr {address} --port {port}`"
            ))
        }
        Err(_) => Err("give an IP address, such as 127.0.0.1".to_owned()),
    }
}

/// Parses whole seconds, up to ten years.
pub(super) fn seconds() -> impl TypedValueParser<Value = Duration> {
    value_parser!(u64)
        .range(..=10 * 366 * 86_400)
        .map(Duration::from_secs)
}

impl ServeArgs {
    /// Returns a builder for the flags, without the contents of files.
    pub(super) fn builder(&self) -> Result<Builder, CliError> {
        let Self {
            server,
            service,
            assumptions,
            limits,
            rules,
            gate: _,
        } = self;
        let mut builder = MockServer::builder()
            .addr(server.addr)
            .paging(assumptions.paging == Switch::On)
            .cors(assumptions.cors.clone())
            .window(assumptions.window)
            .rate_headers(assumptions.rate_headers)
            .ban(BanPolicy {
                after: assumptions.ban_after,
                within: assumptions.ban_within,
                length: assumptions.ban_for,
            })
            .limits(limits.limits())
            .admin_body(limits.max_admin_body);
        if let Some(start) = service.start_at {
            builder = builder.clock(Clock::scaled(start, 1.0));
        }
        if let Some(status) = assumptions.default_status {
            builder = builder.default_status(status);
        }
        #[cfg(feature = "tls")]
        if server.tls {
            builder = builder.tls();
        }
        if service.isolate_keys {
            builder = builder.isolate_keys();
        }
        if service.fault_header {
            builder = builder.fault_header();
        }
        if let Some(path) = &service.data {
            builder = builder.data(path);
        }
        for (rule, severity) in rules.severities() {
            builder = builder.rule(*rule, *severity);
        }
        if let Some(senders) = service.senders {
            builder = builder.senders(senders);
        }
        service.add_keys(builder)
    }
}

impl ServerArgs {
    /// Returns the file for the authority's certificate, if one is to be written.
    pub(super) fn ca_file(&self) -> Option<&Path> {
        #[cfg(feature = "tls")]
        return self.tls_ca_file.as_deref();
        #[cfg(not(feature = "tls"))]
        None
    }
}

impl ServiceArgs {
    fn add_keys(&self, mut builder: Builder) -> Result<Builder, CliError> {
        let mut seen = BTreeSet::new();
        for text in &self.keys {
            let (text, senders) = split_senders(text)?;
            // From the right, because a key may contain an equals sign.
            let (key, plan) = text.rsplit_once('=').ok_or_else(|| {
                let message = "a --key has no `=`: give it as KEY=PLAN, such as --key my-key=free";
                CliError::usage(message)
            })?;
            let plan: Plan = plan.parse().map_err(|error| {
                CliError::usage(format!(
                    "a --key has no known plan after its last `=`: {error}"
                ))
            })?;
            let (name, key) = key.split_once(':').unwrap_or(("", key));
            if !seen.insert(key) {
                let message =
                    "a --key names a key that another one names already: give each key once";
                return Err(CliError::usage(message));
            }
            let mut initial = InitialKey::new(key, plan);
            if !name.is_empty() {
                initial = initial.with_name(name);
            }
            if let Some(senders) = senders {
                initial = initial.with_senders(senders.get());
            }
            builder = builder.initial_key(initial);
        }
        Ok(builder)
    }
}

/// Splits `,senders=8` off a `--key`.
fn split_senders(text: &str) -> Result<(&str, Option<NonZeroU32>), CliError> {
    match text.rsplit_once(",senders=") {
        // Without an equals sign before it, this is a part of the key.
        Some((key, senders)) if key.contains('=') => {
            let senders = senders.parse().map_err(|_| {
                let message = "a --key has no number from 1 on after `senders=`, such as \
                               --key my-key=free,senders=8";
                CliError::usage(message)
            })?;
            Ok((key, Some(senders)))
        }
        _ => Ok((text, None)),
    }
}

impl LimitArgs {
    fn limits(&self) -> Limits {
        Limits {
            connections: self.max_connections,
            head: self.head_timeout,
            body: self.body_timeout,
            idle: self.idle_timeout,
            write: self.write_timeout,
            grace: self.grace,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        serve: ServeArgs,
    }

    #[test]
    fn senders_stand_after_the_plan_of_a_key() {
        let split = |text| {
            let split = split_senders(text);
            split.map(|(key, senders)| (key, senders.map(NonZeroU32::get)))
        };
        assert_eq!(
            split("ci:k=free,senders=8").unwrap(),
            ("ci:k=free", Some(8))
        );
        assert_eq!(split("k=free").unwrap(), ("k=free", None));
        assert_eq!(split("k,senders=free").unwrap(), ("k,senders=free", None));
        for text in ["k=free,senders=0", "k=free,senders=", "k=free,senders=x"] {
            assert!(
                split(text)
                    .unwrap_err()
                    .to_string()
                    .contains("after `senders=`"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_flags_have_the_defaults_of_the_library() {
        let ServeArgs {
            assumptions,
            limits,
            ..
        } = Flags::parse_from([""]).serve;
        assert_eq!(limits.limits(), Limits::default());
        assert_eq!(
            limits.max_admin_body,
            crate::state::Settings::default().admin_body
        );
        let BanPolicy { within, length, .. } = BanPolicy::default();
        assert_eq!(
            (assumptions.ban_within, assumptions.ban_for),
            (within, length)
        );
    }
}
