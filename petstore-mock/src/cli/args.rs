//! The arguments. The docs of the fields are the help texts.

use std::{
    collections::BTreeSet, ffi::OsString, fmt, net::IpAddr, path::PathBuf, str::FromStr,
    time::Duration, time::SystemTime,
};

use clap::{
    Args, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, RangedU64ValueParser, TypedValueParser},
    value_parser,
};
use strum::VariantNames;

use super::{outcome::CliError, report::ReportArgs};
use crate::{
    ban::BanPolicy,
    clock::{self, Clock},
    cors::Cors,
    model::PetStatus,
    plan::Plan,
    quota::{RateHeaders, Window},
    server::{Builder, Limits, MockServer},
};

/// What can follow the name of the mock: a command, or the flags of `serve`.
///
/// It can be embedded in another command line: see [`MockArgs::run`].
#[derive(Args, Clone)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MockArgs {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) serve: ServeArgs,
}

impl fmt::Debug for MockArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the keys.
        f.debug_struct("MockArgs").finish_non_exhaustive()
    }
}

#[derive(Clone, Subcommand)]
pub(super) enum Command {
    /// Serves until SIGINT or SIGTERM; so does the mock without a command.
    Serve(Box<ServeArgs>),
    /// Serves while another command runs, and ends as that ends.
    ///
    /// The command finds the service by PETSTORE_BASE_URL, a key of its own in PETSTORE_API_KEY, and the
    /// mock's administration at PETSTORE_MOCK_URL. Signals are passed on to it.
    ///
    /// Exit status: that of the command, or 128 plus the number of the signal that ended it; 126 and 127
    /// if it can't be run or is not there; and where it ended with 0, 3 if the report has what --fail-on
    /// names.
    Exec(Box<ExecArgs>),
    /// Asks a mock whether it is ready: exit status 0 if it is.
    Health(HealthArgs),
    /// Prints the OpenAPI document of the service.
    #[command(name = "openapi")]
    OpenApi(OpenApiArgs),
}

#[derive(Args, Clone)]
#[command(after_help = "Example:\n  petstore-mock exec --fail-on warnings -- cargo test")]
pub(super) struct ExecArgs {
    /// Plan of the key the command is given: free, pro, business, enterprise, or
    /// enterprise:MINUTE/DAY.
    #[arg(long, value_name = "PLAN", default_value = "free")]
    pub(super) plan: Plan,

    /// The command and its arguments.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub(super) command: Vec<OsString>,

    #[command(flatten)]
    pub(super) serve: ServeArgs,
}

#[derive(Args, Clone)]
pub(super) struct HealthArgs {
    /// Where the mock is, with or without http://; only its scheme, address and port count.
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:4010")]
    pub(super) url: String,

    /// File with the certificate of the authority that is trusted (PEM), for https.
    ///
    /// It is what the mock's own flag of this name has written; SSL_CERT_FILE does the same.
    #[arg(long, value_name = "FILE")]
    pub(super) tls_ca_file: Option<PathBuf>,
}

#[derive(Args, Clone)]
pub(super) struct OpenApiArgs {
    /// Format to print it in.
    #[arg(long, value_name = "FORMAT", default_value = "yaml")]
    pub(super) format: DocumentFormat,

    /// Print the document of the mock's own administration instead.
    #[arg(long)]
    pub(super) admin: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum DocumentFormat {
    Yaml,
    Json,
}

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
    pub(super) report: ReportArgs,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Server")]
pub(super) struct ServerArgs {
    /// Address to listen on.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    addr: IpAddr,

    /// Port to listen on; 0 takes a free one (default: 4010, and for exec a free one).
    #[arg(long, value_name = "PORT")]
    pub(super) port: Option<u16>,

    /// File to write the port to, before the ready line is printed.
    #[arg(long, value_name = "FILE")]
    pub(super) port_file: Option<PathBuf>,

    /// Serve over TLS, with a certificate authority that is made anew at each start.
    ///
    /// The certificate is for localhost, 127.0.0.1, ::1 and the address listened on.
    #[cfg(feature = "tls")]
    #[arg(long)]
    tls: bool,

    /// File to write the authority's certificate to (PEM), before the ready line is printed.
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub(super) tls_ca_file: Option<PathBuf>,

    /// File with the token by which the mock can be administered from other machines.
    ///
    /// The variable PETSTORE_MOCK_ADMIN_TOKEN does the same; without either, it can't be.
    #[arg(long, value_name = "FILE")]
    pub(super) admin_token_file: Option<PathBuf>,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Service")]
pub(super) struct ServiceArgs {
    /// Key and its plan: free, pro, business, enterprise, or enterprise:MINUTE/DAY (repeatable).
    ///
    /// With a name, NAME:KEY=PLAN, reports and the journal show the key by that; write :KEY=PLAN for a
    /// key that holds a colon and has no name.
    ///
    /// The first one replaces the four that are there otherwise: free-key=free, pro-key=pro,
    /// business-key=business, enterprise-key=enterprise. Assumption: the specification does not
    /// show how a key maps to a plan, nor Enterprise's quotas (here 1000000 a minute and 100000000
    /// a day unless set).
    // Plain text, because clap would repeat a value it refuses, and this one holds a key.
    #[arg(long = "key", value_name = "[NAME:]KEY=PLAN")]
    pub(super) keys: Vec<String>,

    /// JSON file with the pets to start with; `none` for an empty store.
    ///
    /// An array of pets, or {"pets": [...], "orders": [...]}. A pet without an id gets one. Without
    /// this flag there are 25 pets, the same at each start.
    #[arg(long, value_name = "FILE|none")]
    pub(super) seed: Option<PathBuf>,

    /// File that keeps pets, orders and ids; made if it is not there (nothing is kept unless given).
    ///
    /// A pet that was answered 201 is there after the process was killed. The seed is for a new or
    /// empty file only. One petstore-mock at a time can use a file.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,

    /// JSON file with an array of faults that are there from the start.
    ///
    /// Each is what POST /_mock/faults takes, such as {"operation": "listPets", "effect": {"status": 503}}.
    #[arg(long, value_name = "FILE")]
    pub(super) faults: Option<PathBuf>,

    /// Date at which the mock's clock starts, such as 2030-12-04 or 2030-12-04T23:59:00Z (default: now).
    #[arg(long, value_name = "DATE", value_parser = clock::parse_date)]
    start_at: Option<SystemTime>,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Assumptions")]
struct AssumptionArgs {
    /// Status of a pet that is added without one (assumption: it has none).
    #[arg(long, value_name = "STATUS", value_parser = one_of::<PetStatus>())]
    default_status: Option<PetStatus>,

    /// Whether a page that more pets follow has a Link to the next one (assumption: it has).
    #[arg(long, value_name = "SWITCH", default_value = "on")]
    paging: Switch,

    /// Kind of window the quotas count in (assumption: fixed).
    ///
    /// Fixed windows are aligned to the clock's minute and to the UTC day; sliding ones are the last
    /// 60 and 86400 seconds.
    #[arg(long, value_name = "KIND", default_value = "fixed", value_parser = one_of::<Window>())]
    window: Window,

    /// Origin whose pages may use the service from a browser; `off` for none (assumption: all may).
    #[arg(long, value_name = "ORIGIN|*|off", default_value_t)]
    cors: Cors,

    /// Quota the X-RateLimit headers describe (assumption: the one with the fewest requests left).
    #[arg(
        long,
        value_name = "QUOTA",
        default_value = "tightest",
        value_parser = one_of::<RateHeaders>()
    )]
    rate_headers: RateHeaders,

    /// Requests sent during a Retry-After that are forgiven before a ban (assumption: 10).
    #[arg(
        long,
        value_name = "N",
        default_value_t = BanPolicy::default().after,
        value_parser = value_parser!(u32).range(..=i64::from(BanPolicy::MAX_AFTER))
    )]
    ban_after: u32,

    /// Seconds within which they count together (assumption: 60).
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds())]
    ban_within: Duration,

    /// Seconds a ban lasts; 0 switches bans off (assumption: 300).
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds())]
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
    /// Connections served at once; those beyond are answered 503.
    #[arg(
        long,
        value_name = "N",
        default_value = "4096",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..)
    )]
    max_connections: usize,

    /// Bytes a body may have that is sent to the mock's administration, then it is answered 413.
    #[arg(long, value_name = "BYTES", default_value = "268435456")]
    max_admin_body: usize,

    /// Seconds the head of a request may take, then it is answered 408; 0 for any time.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds())]
    head_timeout: Duration,

    /// Seconds the body of a request may take, then it is answered 408; 0 for any time.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds())]
    body_timeout: Duration,

    /// Seconds a connection may be idle, then it is closed; 0 for any time.
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds())]
    idle_timeout: Duration,

    /// Seconds a client may take nothing of its answer, then it is cut; 0 for any time.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds())]
    write_timeout: Duration,

    /// Seconds requests at hand may take when the server stops; a second signal ends that wait.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds())]
    grace: Duration,
}

/// Takes the names of an enum's variants.
fn one_of<T>() -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = strum::ParseError> + VariantNames + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(T::VARIANTS).try_map(|name| name.parse::<T>())
}

/// Takes whole seconds, up to ten years.
fn seconds() -> impl TypedValueParser<Value = Duration> {
    value_parser!(u64).range(..=10 * 366 * 86_400).map(Duration::from_secs)
}

impl ServeArgs {
    /// Returns a builder of the server the flags describe; what stands in files is left out.
    pub(super) fn builder(&self) -> Result<Builder, CliError> {
        let Self { server, service, assumptions, limits, report } = self;
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
        if let Some(path) = &service.data {
            builder = builder.data(path);
        }
        for (rule, severity) in &report.rules {
            builder = builder.rule(*rule, *severity);
        }
        service.add_keys(builder)
    }
}

impl ServiceArgs {
    fn add_keys(&self, mut builder: Builder) -> Result<Builder, CliError> {
        let mut seen = BTreeSet::new();
        for text in &self.keys {
            // From the right: a key may hold an equals sign, a plan does not.
            let (key, plan) = text.rsplit_once('=').ok_or_else(|| {
                let message = "a --key has no `=`: give it as KEY=PLAN, such as --key my-key=free";
                CliError::usage(message)
            })?;
            let plan: Plan = plan.parse().map_err(|error| {
                CliError::usage(format!("a --key has no known plan after its last `=`: {error}"))
            })?;
            let (name, key) = key.split_once(':').unwrap_or(("", key));
            if !seen.insert(key) {
                let message =
                    "a --key names a key that another one names already: give each key once";
                return Err(CliError::usage(message));
            }
            builder = match name {
                "" => builder.key(key, plan),
                name => builder.named_key(name, key, plan),
            };
        }
        Ok(builder)
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
    fn the_flags_have_the_defaults_of_the_library() {
        let ServeArgs { assumptions, limits, .. } = Flags::parse_from([""]).serve;
        assert_eq!(limits.limits(), Limits::default());
        assert_eq!(limits.max_admin_body, crate::state::Settings::default().admin_body);
        let BanPolicy { within, length, .. } = BanPolicy::default();
        assert_eq!((assumptions.ban_within, assumptions.ban_for), (within, length));
    }
}
