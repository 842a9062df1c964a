//! The flags of a server, and the builder that they configure.

use std::{
    collections::BTreeSet,
    fmt, fs,
    net::IpAddr,
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::SystemTime,
};

use clap::Args;

use super::{
    assume,
    gate::{GateArgs, rule},
    outcome::CliError,
};
use crate::{
    clock::{self, Clock},
    fault::Fault,
    plan::Plan,
    routes::Route,
    server::{Builder, MockServer},
    state::{NewKey, Seed},
    text::read_array,
};

/// The flags of `serve`.
#[derive(Args)]
#[command(next_help_heading = "Server")]
pub(super) struct ServeArgs {
    /// Log each request on stderr: method, path, key, status, duration and faults.
    #[arg(short, long)]
    pub(super) verbose: bool,

    /// Address to listen on.
    #[arg(long, value_name = "ADDR", value_parser = address, default_value = "127.0.0.1")]
    addr: IpAddr,

    /// Port to listen on; 0 for a free port (default: 4010; with exec, a free port).
    #[arg(long, value_name = "PORT", value_parser = port)]
    port: Option<u16>,

    /// File to write the port to, before the ready line.
    #[arg(long, value_name = "FILE")]
    pub(super) port_file: Option<PathBuf>,

    /// Serve over TLS, with a new certificate authority at each start.
    ///
    /// The certificate is for localhost, 127.0.0.1, ::1 and the listening address.
    #[arg(long)]
    tls: bool,

    /// File to write the authority's certificate to (PEM), before the ready line.
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub(super) tls_ca_file: Option<PathBuf>,

    /// File with a token for administration from other machines.
    ///
    /// The variable PETSTORE_MOCK_ADMIN_TOKEN also sets it. Without a token, administration is
    /// local only.
    #[arg(long, value_name = "FILE")]
    pub(super) admin_token_file: Option<PathBuf>,

    #[command(flatten)]
    service: ServiceArgs,

    /// Severity of a rule: off, notice, warning or violation (repeatable).
    ///
    /// Rules: told-to-wait (violation), back-off (violation), repeated-post (violation), key
    /// (violation), retry-after (warning), deprecated (notice). A notice never fails a run.
    #[arg(long = "rule", value_name = "NAME=SEVERITY", help_heading = "Report")]
    rules: Vec<String>,

    #[command(flatten)]
    pub(super) gate: GateArgs,
}

#[derive(Args)]
#[command(next_help_heading = "Service")]
struct ServiceArgs {
    /// Key and its plan: free, pro, business, enterprise or enterprise:MINUTE/DAY
    /// (repeatable).
    ///
    /// NAME:KEY=PLAN gives the key a name for reports and the journal. Write :KEY=PLAN if a key
    /// without a name contains a colon. `,senders=8` after the plan is --senders for this key.
    ///
    /// Replaces the default keys: free-key=free, pro-key=pro, business-key=business,
    /// enterprise-key=enterprise. Assumption: the specification shows neither how a key maps to a
    /// plan nor the quotas of Enterprise (default: 1000000 per minute and 100000000 per day).
    // Parsed later: clap would print an invalid value, which contains a key.
    #[arg(long = "key", value_name = "[NAME:]KEY=PLAN")]
    keys: Vec<String>,

    /// Most requests of a key that may be under way at once, for the compliance report (default: 1).
    ///
    /// Each of these senders may have to learn by itself that it is told to wait. Declare no more than
    /// there are, or the report finds less.
    #[arg(long, value_name = "N", value_parser = senders)]
    senders: Option<NonZeroU32>,

    /// JSON file with the initial pets; `none` for an empty store.
    ///
    /// An array of pets, or {"pets": [...], "orders": [...]}. A pet without an id gets one. The
    /// default is 25 pets, the same at each start.
    #[arg(long, value_name = "FILE|none")]
    seed: Option<PathBuf>,

    /// File that keeps pets, orders and ids; created if missing (default: keep nothing).
    ///
    /// A pet confirmed with 201 survives a kill of the process. The seed applies only to a new
    /// or empty file. Only one petstore-mock at a time can use a file.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// Give each key its own pets and orders, for tests that run in parallel.
    ///
    /// A key begins with the pets that the server has at the key's first request.
    #[arg(long, conflicts_with = "data")]
    isolate_keys: bool,

    /// Let requests choose a fault with X-Mock-Fault: NAME.
    ///
    /// NAME is that of a fault with "when": "named", a status such as 503, reset, emptyReply, hang or
    /// malformedJson.
    #[arg(long)]
    fault_header: bool,

    /// JSON array of initial faults, or a file with one.
    ///
    /// The format of each is that of POST /_mock/faults, such as [{"operation": "listPets",
    /// "effect": {"status": 503}}].
    #[arg(long, value_name = "JSON|FILE")]
    faults: Option<String>,

    /// JSON file with an array of own routes, for operations that the contract does not show.
    ///
    /// Each is such as {"method": "PUT", "path": "/pets/{petId}", "status": 200, "headers":
    /// {"x-a": "1"}, "json": {"id": 7}}, or has a "text" instead.
    #[arg(long, value_name = "FILE")]
    routes: Option<PathBuf>,

    /// Start of the mock's clock, such as 2030-12-04 or 2030-12-04T23:59:00Z (default: now).
    #[arg(long, value_name = "DATE", value_parser = clock::parse_date)]
    start_at: Option<SystemTime>,

    /// Freeze the mock's clock, at --start-at or now, until it is moved.
    #[arg(long)]
    frozen: bool,

    /// Change an assumption about what the specification leaves open (repeatable).
    ///
    /// default-status=available|pending|sold: status of a pet that is created without one
    /// (default: none)
    ///
    /// paging=on|off: whether a page has a Link to the next page (default: on)
    ///
    /// window=fixed|sliding: kind of quota window: the clock's minute and the UTC day, or the
    /// last 60 and 86400 seconds (default: fixed)
    ///
    /// cors=on|off: whether web pages of other origins may use the service (default: on)
    ///
    /// rate-headers=tightest|minute|day: quota in the X-RateLimit headers (default: tightest, the
    /// one with the fewest requests left)
    ///
    /// ban-after=N: requests before the end of Retry-After that do not cause a ban, for each
    /// declared sender (default: 10)
    ///
    /// ban-within=SECONDS: seconds within which those requests are counted (default: 60)
    ///
    /// ban-for=SECONDS: duration of a ban in seconds; 0 disables bans (default: 300)
    #[arg(long = "assume", value_name = "NAME=VALUE")]
    assumptions: Vec<String>,
}

fn address(text: &str) -> Result<IpAddr, &'static str> {
    text.parse()
        .map_err(|_| "give an IP address, such as 127.0.0.1, and the port as --port")
}

fn port(text: &str) -> Result<u16, &'static str> {
    text.parse()
        .map_err(|_| "give a whole number from 0 to 65535")
}

fn senders(text: &str) -> Result<NonZeroU32, &'static str> {
    text.parse().map_err(|_| "give a whole number from 1 on")
}

impl ServeArgs {
    /// Returns a builder for the flags. The port applies unless there is a flag for it.
    pub(super) fn builder(&self, port: u16) -> Result<Builder, CliError> {
        let mut builder = MockServer::builder()
            .addr(self.addr)
            .port(self.port.unwrap_or(port));
        if self.tls {
            builder = builder.tls();
        }
        for text in words(&self.rules) {
            let parsed = rule(text);
            let (rule, severity) =
                parsed.map_err(|problem| CliError::usage(format!("--rule {text}: {problem}")))?;
            builder = builder.rule(rule, severity);
        }
        self.service.apply(builder)
    }

    /// Returns whether the flags have keys, which replace the default ones.
    pub(super) fn has_keys(&self) -> bool {
        !self.service.keys.is_empty()
    }
}

impl ServiceArgs {
    fn apply(&self, builder: Builder) -> Result<Builder, CliError> {
        let mut builder = assume::apply(words(&self.assumptions), builder)?;
        builder = match (self.start_at, self.frozen) {
            (Some(start), true) => builder.clock(Clock::frozen(start)),
            (Some(start), false) => builder.clock(Clock::starting_at(start)),
            (None, true) => builder.clock(Clock::frozen(Clock::system().now())),
            (None, false) => builder,
        };
        if self.isolate_keys {
            builder = builder.isolate_keys();
        }
        if self.fault_header {
            builder = builder.fault_header();
        }
        if let Some(path) = &self.data {
            builder = builder.data(path);
        }
        if let Some(senders) = self.senders {
            builder = builder.senders(senders.get());
        }
        let mut seen = BTreeSet::new();
        for text in words(&self.keys) {
            let (key, initial) = initial_key(text)?;
            if !seen.insert(key) {
                let message =
                    "a --key names a key that another one names already: give each key once";
                return Err(CliError::usage(message));
            }
            builder = builder.new_key(initial);
        }
        if let Some(given) = &self.faults {
            let is_json = given.trim_ascii_start().starts_with(['[', '{']);
            let faults = match is_json {
                true => parse_faults(given.as_bytes())
                    .map_err(|error| CliError::usage(format!("--faults: {error}")))?,
                false => read("faults", Path::new(given), parse_faults)?,
            };
            for fault in faults {
                builder = builder.fault(fault);
            }
        }
        if let Some(path) = &self.routes {
            builder = builder.routes(read("routes", path, Route::all_from_json)?);
        }
        if let Some(path) = &self.seed {
            builder = builder.seed(match path.as_os_str() == "none" {
                true => Seed::none(),
                false => read("seed", path, Seed::from_json)?,
            });
        }
        Ok(builder)
    }
}

/// Splits values at white space, as the variables have it between several.
fn words(values: &[String]) -> impl Iterator<Item = &str> {
    values.iter().flat_map(|value| {
        let mut words: Vec<_> = value.split_whitespace().collect();
        if words.is_empty() {
            // A blank value is a mistake.
            words.push(value);
        }
        words
    })
}

/// Parses a `--key`. Returns the key itself, too. No error shows it.
fn initial_key(text: &str) -> Result<(&str, NewKey), CliError> {
    let (text, senders) = match text.rsplit_once(",senders=") {
        // Without an equals sign before it, this is a part of the key.
        Some((text, senders)) if text.contains('=') => (text, Some(senders)),
        _ => (text, None),
    };
    // From the right, because a key may contain an equals sign.
    let (key, plan) = text.rsplit_once('=').ok_or_else(|| {
        CliError::usage("a --key has no `=`: give it as KEY=PLAN, such as --key my-key=free")
    })?;
    let plan: Plan = plan.parse().map_err(|error| {
        CliError::usage(format!(
            "a --key has no known plan after its last `=`: {error}; `,senders=8` may follow it"
        ))
    })?;
    let (name, key) = key.split_once(':').unwrap_or(("", key));
    let mut initial = NewKey::new(Some(key.to_owned()), plan);
    if !name.is_empty() {
        initial = initial.with_name(name);
    }
    match senders.map(self::senders) {
        None => Ok((key, initial)),
        Some(Ok(senders)) => Ok((key, initial.with_senders(senders))),
        Some(_) => Err(CliError::usage(
            "a --key has no number from 1 on after `senders=`, such as --key my-key=free,senders=8",
        )),
    }
}

/// Reads a file, and parses it. An error names it.
fn read<T, E: fmt::Display>(
    what: &str,
    path: &Path,
    parse: impl FnOnce(&[u8]) -> Result<T, E>,
) -> Result<T, CliError> {
    let text = fs::read(path);
    let text = text.map_err(|error| CliError::file(&format!("read the {what}"), path, &error))?;
    parse(&text).map_err(|error| CliError::new(format!("{}: {error}", path.display())))
}

fn parse_faults(text: &[u8]) -> Result<Vec<Fault>, String> {
    read_array(text, Fault::EXAMPLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_stand_after_the_plan_of_a_key() {
        for text in ["ci:k=free,senders=8", "k=free", ":k=free"] {
            assert_eq!(initial_key(text).ok().unwrap().0, "k", "{text}");
        }
        assert_eq!(initial_key("k,senders=free").ok().unwrap().0, "k,senders");
        for text in ["k=free,senders=0", "k=free,senders=", "k=free,senders=x"] {
            let error = initial_key(text).err().unwrap().to_string();
            assert!(error.contains("after `senders=`"), "{text}: {error}");
        }
    }
}
