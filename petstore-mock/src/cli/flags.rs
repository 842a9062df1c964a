//! The flags of a server, and the builder that they configure.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::SystemTime,
};

use clap::{Args, builder::FalseyValueParser, value_parser};

use super::{
    assume::AssumeArgs,
    gate::{GateArgs, RuleArgs},
    outcome::CliError,
};
use crate::{
    clock::{self, Clock},
    plan::Plan,
    server::{Builder, MockServer},
    state::InitialKey,
};

/// The flags of `serve`.
#[derive(Args, Clone)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) service: ServiceArgs,
    #[command(flatten)]
    assumptions: AssumeArgs,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    pub(super) gate: GateArgs,
}

/// A port; `None` if the variable is the address of a service.
#[derive(Clone, Copy, Debug)]
struct Port(Option<u16>);

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
    #[arg(long, env = "PETSTORE_MOCK_PORT", hide_env = true, value_name = "PORT", value_parser = port)]
    port: Option<Port>,

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
        value_name = "[NAME:]KEY=PLAN"
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

    /// JSON array of initial faults, or a file with one.
    ///
    /// The format of each is that of POST /_mock/faults, such as [{"operation": "listPets",
    /// "effect": {"status": 503}}].
    #[arg(
        long,
        env = "PETSTORE_MOCK_FAULTS",
        hide_env = true,
        value_name = "JSON|FILE"
    )]
    pub(super) faults: Option<String>,

    /// JSON file with an array of own routes, for operations that the contract does not show.
    ///
    /// Each is such as {"method": "PUT", "path": "/pets/{petId}", "status": 200, "headers":
    /// {"x-a": "1"}, "json": {"id": 7}}, or has a "text" instead.
    #[arg(
        long,
        env = "PETSTORE_MOCK_ROUTES",
        hide_env = true,
        value_name = "FILE"
    )]
    pub(super) routes: Option<PathBuf>,

    /// Start of the mock's clock, such as 2030-12-04 or 2030-12-04T23:59:00Z (default: now).
    #[arg(long, env = "PETSTORE_MOCK_START_AT", hide_env = true, value_name = "DATE", value_parser = clock::parse_date)]
    start_at: Option<SystemTime>,

    /// Freeze the mock's clock, at --start-at or now, until it is moved.
    #[arg(long, env = "PETSTORE_MOCK_FROZEN", hide_env = true, value_parser = FalseyValueParser::new())]
    frozen: bool,
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

/// Parses a port. Kubernetes sets the variable to `tcp://…` for a service named `petstore-mock`,
/// which means nothing here.
fn port(text: &str) -> Result<Port, String> {
    if text.starts_with("tcp://") {
        return Ok(Port(None));
    }
    let port = text.parse();
    port.map(|port| Port(Some(port)))
        .map_err(|_| "a port is a number from 0 to 65535".to_owned())
}

impl ServeArgs {
    /// Returns a builder for the flags, without the contents of files.
    pub(super) fn builder(&self) -> Result<Builder, CliError> {
        let Self {
            server,
            service,
            assumptions,
            rules,
            gate: _,
        } = self;
        let mut builder = MockServer::builder().addr(server.addr);
        builder = assumptions.apply(builder);
        builder = match (service.start_at, service.frozen) {
            (Some(start), true) => builder.clock(Clock::frozen(start)),
            (Some(start), false) => builder.clock(Clock::scaled(start, 1.0)),
            (None, true) => builder.clock(Clock::frozen(Clock::system().now())),
            (None, false) => builder,
        };
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
    /// Returns the port, if one is given.
    pub(super) fn port(&self) -> Option<u16> {
        self.port?.0
    }

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
