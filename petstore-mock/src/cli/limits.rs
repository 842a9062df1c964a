//! The flags that bound what clients may take. What the limits mean is left to `limits`.

use std::time::Duration;

use clap::{Args, builder::RangedU64ValueParser, value_parser};

use crate::{server::Limits, state::Settings};

const TEN_YEARS: u64 = 10 * 366 * 86_400;

/// How many connections there may be, and how long clients may take.
#[derive(Args, Clone, Debug)]
pub(super) struct LimitArgs {
    /// Connections served at once; those beyond are answered 503.
    #[arg(
        long,
        value_name = "N",
        default_value_t = Limits::default().connections,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..),
        help_heading = "Limits"
    )]
    max_connections: usize,

    /// Bytes a body may have that is sent to the mock's administration, then it is answered 413.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = Settings::default().admin_body,
        help_heading = "Limits"
    )]
    pub(super) max_admin_body: usize,

    /// Seconds the head of a request may take, then it is answered 408; 0 for any time.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = Limits::default().head.as_secs(),
        value_parser = value_parser!(u64).range(..=TEN_YEARS),
        help_heading = "Limits"
    )]
    head_timeout: u64,

    /// Seconds the body of a request may take, then it is answered 408; 0 for any time.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = Limits::default().body.as_secs(),
        value_parser = value_parser!(u64).range(..=TEN_YEARS),
        help_heading = "Limits"
    )]
    body_timeout: u64,

    /// Seconds a connection may be idle, then it is closed; 0 for any time.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = Limits::default().idle.as_secs(),
        value_parser = value_parser!(u64).range(..=TEN_YEARS),
        help_heading = "Limits"
    )]
    idle_timeout: u64,

    /// Seconds a client may take nothing of its answer, then it is cut; 0 for any time.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = Limits::default().write.as_secs(),
        value_parser = value_parser!(u64).range(..=TEN_YEARS),
        help_heading = "Limits"
    )]
    write_timeout: u64,

    /// Seconds requests at hand may take when the server stops; a second signal ends that wait.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = Limits::default().grace.as_secs(),
        value_parser = value_parser!(u64).range(..=TEN_YEARS),
        help_heading = "Limits"
    )]
    grace: u64,
}

impl LimitArgs {
    /// Returns what was typed.
    pub(super) fn limits(&self) -> Limits {
        Limits::default()
            .with_connections(self.max_connections)
            .with_head(Duration::from_secs(self.head_timeout))
            .with_body(Duration::from_secs(self.body_timeout))
            .with_idle(Duration::from_secs(self.idle_timeout))
            .with_write(Duration::from_secs(self.write_timeout))
            .with_grace(Duration::from_secs(self.grace))
    }
}
