//! What can be typed, and what it means. The docs of the fields are the help texts.

use std::{collections::BTreeSet, net::IpAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, value_parser};

use super::{ServeError, limits::LimitArgs, report::ReportArgs};
use crate::{
    ban::BanPolicy,
    clock::{self, Clock},
    cors::Cors,
    model::PetStatus,
    plan::Plan,
    quota::{RateHeaders, Window},
    server::Builder,
    server::MockServer,
};

/// The flags of `serve`.
#[derive(Args, Clone)]
pub(super) struct ServeArgs {
    /// Address to listen on.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1", help_heading = "Server")]
    addr: IpAddr,

    /// Port to listen on; 0 takes a free one (default: 4010, and for exec a free one).
    #[arg(long, value_name = "PORT", help_heading = "Server")]
    pub(super) port: Option<u16>,

    /// File to write the port to, before the ready line is printed.
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(super) port_file: Option<PathBuf>,

    /// Serve over TLS, with a certificate authority that is made anew at each start.
    ///
    /// The certificate is for localhost, 127.0.0.1, ::1 and the address listened on.
    #[cfg(feature = "tls")]
    #[arg(long, help_heading = "Server")]
    tls: bool,

    /// File to write the authority's certificate to (PEM), before the ready line is printed.
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls", help_heading = "Server")]
    pub(super) tls_ca_file: Option<PathBuf>,

    /// File with the token by which the mock can be administered from other machines.
    ///
    /// The variable PETSTORE_MOCK_ADMIN_TOKEN does the same; without either, it can't be.
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(super) admin_token_file: Option<PathBuf>,

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
    #[arg(long = "key", value_name = "[NAME:]KEY=PLAN", help_heading = "Service")]
    keys: Vec<String>,

    /// JSON file with the pets to start with; `none` for an empty store.
    ///
    /// An array of pets, or {"pets": [...], "orders": [...]}. A pet without an id gets one. Without
    /// this flag there are 25 pets, the same at each start.
    #[arg(long, value_name = "FILE|none", help_heading = "Service")]
    pub(super) seed: Option<PathBuf>,

    /// File that keeps pets, orders and ids; made if it is not there (nothing is kept unless given).
    ///
    /// A pet that was answered 201 is there after the process was killed. The seed is for a new or
    /// empty file only. One petstore-mock at a time can use a file.
    #[cfg(feature = "data")]
    #[arg(long, value_name = "FILE", help_heading = "Service")]
    data: Option<PathBuf>,

    /// JSON file with an array of faults that are there from the start.
    ///
    /// Each is what POST /_mock/faults takes, such as {"operation": "listPets", "effect": {"status": 503}}.
    #[arg(long, value_name = "FILE", help_heading = "Service")]
    pub(super) faults: Option<PathBuf>,

    /// Date at which the mock's clock starts, such as 2030-12-04 or 2030-12-04T23:59:00Z (default: now).
    #[arg(long, value_name = "DATE", value_parser = clock::parse_date, help_heading = "Service")]
    start_at: Option<std::time::SystemTime>,

    /// Status of a pet that is added without one (assumption: it has none).
    #[arg(long, value_name = "STATUS", help_heading = "Assumptions")]
    default_status: Option<Status>,

    /// Whether a page that more pets follow has a Link to the next one (assumption: it has).
    #[arg(long, value_name = "SWITCH", default_value = "on", help_heading = "Assumptions")]
    paging: Switch,

    /// Kind of window the quotas count in (assumption: fixed).
    ///
    /// Fixed windows are aligned to the clock's minute and to the UTC day; sliding ones are the last
    /// 60 and 86400 seconds.
    #[arg(long, value_name = "KIND", default_value = "fixed", help_heading = "Assumptions")]
    window: WindowKind,

    /// Origin whose pages may use the service from a browser; `off` for none (assumption: all may).
    #[arg(long, value_name = "ORIGIN|*|off", default_value_t, help_heading = "Assumptions")]
    cors: Cors,

    /// Quota the X-RateLimit headers describe (assumption: the one with the fewest requests left).
    #[arg(long, value_name = "QUOTA", default_value = "tightest", help_heading = "Assumptions")]
    rate_headers: Shown,

    /// Requests sent during a Retry-After that are forgiven before a ban (assumption: 10).
    #[arg(
        long,
        value_name = "N",
        default_value_t = BanPolicy::default().after,
        value_parser = value_parser!(u32).range(..=i64::from(BanPolicy::MOST)),
        help_heading = "Assumptions"
    )]
    ban_after: u32,

    /// Seconds within which they count together (assumption: 60).
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = BanPolicy::default().within.as_secs(),
        value_parser = value_parser!(u64).range(..=TEN_YEARS),
        help_heading = "Assumptions"
    )]
    ban_within: u64,

    /// Seconds a ban lasts; 0 switches bans off (assumption: 300).
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = BanPolicy::default().length.as_secs(),
        value_parser = value_parser!(u64).range(..=TEN_YEARS),
        help_heading = "Assumptions"
    )]
    ban_for: u64,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    pub(super) report: ReportArgs,
}

const TEN_YEARS: u64 = 10 * 366 * 86_400;

impl ServeArgs {
    /// Returns whether any key is given.
    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Returns a builder of the server the flags describe; port, seed and token are left out.
    pub(super) fn builder(&self) -> Result<Builder, ServeError> {
        let ban = BanPolicy::default()
            .with_after(self.ban_after)
            .with_within(Duration::from_secs(self.ban_within))
            .with_length(Duration::from_secs(self.ban_for));
        let mut builder = MockServer::builder()
            .addr(self.addr)
            .paging(matches!(self.paging, Switch::On))
            .cors(self.cors.clone())
            .window(self.window.into())
            .rate_headers(self.rate_headers.into())
            .ban(ban)
            .limits(self.limits.limits())
            .admin_body(self.limits.max_admin_body);
        if let Some(start) = self.start_at {
            builder = builder.clock(Clock::scaled(start, 1.0));
        }
        if let Some(status) = self.default_status {
            builder = builder.default_status(status.into());
        }
        #[cfg(feature = "tls")]
        if self.tls {
            builder = builder.tls();
        }
        #[cfg(feature = "data")]
        if let Some(path) = &self.data {
            builder = builder.data(path);
        }
        for (rule, severity) in &self.report.rules {
            builder = builder.rule(*rule, *severity);
        }
        let mut seen = BTreeSet::new();
        for text in &self.keys {
            // From the right: a key may hold an equals sign, a plan does not.
            let (key, plan) = text.rsplit_once('=').ok_or(ServeError::KeyWithoutPlan)?;
            let plan: Plan = plan.parse().map_err(ServeError::Plan)?;
            let (name, key) = key.split_once(':').unwrap_or(("", key));
            if !seen.insert(key) {
                return Err(ServeError::RepeatedKey);
            }
            builder = match name {
                "" => builder.key(key, plan),
                name => builder.named_key(name, key, plan),
            };
        }
        Ok(builder)
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Status {
    Available,
    Pending,
    Sold,
}

impl From<Status> for PetStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Available => Self::Available,
            Status::Pending => Self::Pending,
            Status::Sold => Self::Sold,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WindowKind {
    Fixed,
    Sliding,
}

impl From<WindowKind> for Window {
    fn from(kind: WindowKind) -> Self {
        match kind {
            WindowKind::Fixed => Self::Fixed,
            WindowKind::Sliding => Self::Sliding,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shown {
    Tightest,
    Minute,
    Day,
}

impl From<Shown> for RateHeaders {
    fn from(shown: Shown) -> Self {
        match shown {
            Shown::Tightest => Self::Tightest,
            Shown::Minute => Self::Minute,
            Shown::Day => Self::Day,
        }
    }
}

impl std::fmt::Debug for ServeArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the keys: a log is no place for them.
        f.debug_struct("ServeArgs")
            .field("addr", &self.addr)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
