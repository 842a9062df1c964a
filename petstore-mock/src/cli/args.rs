//! The arguments. The docs of the fields are the help texts.

use std::{ffi::OsString, fmt, path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum, builder::FalseyValueParser};

use super::{
    flags::{ServeArgs, seconds},
    gate::GateArgs,
};
use crate::plan::Plan;

/// The arguments of the mock: a command, or the flags of `serve`.
///
/// Another program can embed them: see [`MockArgs::run`].
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
    /// Serve until SIGINT or SIGTERM (default command).
    Serve(Box<ServeArgs>),
    /// Serve while another command runs, and exit with its status.
    ///
    /// The command finds the service in PETSTORE_BASE_URL, its key in PETSTORE_API_KEY, and the
    /// mock's administration in PETSTORE_MOCK_URL. Signals are passed on to it.
    ///
    /// Exit status: the status of the command, or 128 plus the number of the signal that ended it;
    /// 126 if it cannot be run, 127 if it is not found. If it ended with 0, but the report has
    /// findings that --fail-on names, or fewer requests than --min-requests: 3.
    Exec(Box<ExecArgs>),
    /// Forward requests to a real service, and judge the client and the service.
    ///
    /// All else is as with `serve`: the journal, faults, the inspector and the report. The report has
    /// a part about the service: how it broke its contract.
    #[cfg(feature = "proxy")]
    Proxy(Box<ProxyArgs>),
    /// Check whether a mock is ready: exit status 0 if it is.
    Health(HealthArgs),
    /// Print the compliance report of a running mock, and judge it.
    ///
    /// Exit status: 3 if the report has findings that --fail-on names, or fewer requests than
    /// --min-requests; 1 if the mock does not answer.
    Report(ReportArgs),
    /// Print the OpenAPI document of the service.
    #[command(name = "openapi")]
    OpenApi(OpenApiArgs),
}

#[derive(Args, Clone)]
#[command(after_help = "Example:\n  petstore-mock exec --fail-on warnings -- cargo test")]
pub(super) struct ExecArgs {
    /// Plan of the command's key: free, pro, business, enterprise, enterprise:MINUTE/DAY or
    /// enterprise:MINUTE/HOUR/DAY.
    #[arg(
        long,
        env = "PETSTORE_MOCK_PLAN",
        hide_env = true,
        value_name = "PLAN",
        default_value = "free"
    )]
    pub(super) plan: Plan,

    /// The command and its arguments.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub(super) command: Vec<OsString>,

    #[command(flatten)]
    pub(super) serve: ServeArgs,
}

#[cfg(feature = "proxy")]
#[derive(Args, Clone)]
#[command(after_help = "Example:\n  petstore-mock proxy --upstream https://petstore.example/v1")]
pub(super) struct ProxyArgs {
    /// Base URL of the service. https trusts the system's certificates, or those of SSL_CERT_FILE.
    #[arg(
        long,
        env = "PETSTORE_MOCK_UPSTREAM",
        hide_env = true,
        value_name = "URL"
    )]
    pub(super) upstream: String,

    /// Seconds for the head of a response, then the request is answered 504.
    #[arg(
        long,
        env = "PETSTORE_MOCK_UPSTREAM_TIMEOUT",
        hide_env = true,
        value_name = "SECONDS"
    )]
    #[arg(value_parser = seconds(), default_value = "30")]
    pub(super) upstream_timeout: Duration,

    /// File to write the service's pets and failures to at the end, for --seed and --faults.
    #[arg(
        long,
        env = "PETSTORE_MOCK_RECORD",
        hide_env = true,
        value_name = "FILE"
    )]
    pub(super) record: Option<PathBuf>,

    /// Exit with 3 if the service broke its contract.
    #[arg(long, env = "PETSTORE_MOCK_FAIL_ON_SERVICE", hide_env = true, value_parser = FalseyValueParser::new())]
    pub(super) fail_on_service: bool,

    #[command(flatten)]
    pub(super) serve: ServeArgs,
}

/// A running mock.
#[derive(Args, Clone)]
pub(super) struct TargetArgs {
    /// URL of the mock, with or without http://; only its scheme, host and port matter.
    #[arg(
        value_name = "URL",
        env = "PETSTORE_MOCK_URL",
        hide_env = true,
        default_value = "http://127.0.0.1:4010"
    )]
    pub(super) url: String,

    /// File with the certificate authority to trust (PEM), for https.
    ///
    /// The flag of the same name of `serve` writes this file. SSL_CERT_FILE works too.
    #[arg(
        long,
        env = "PETSTORE_MOCK_TLS_CA_FILE",
        hide_env = true,
        value_name = "FILE"
    )]
    pub(super) tls_ca_file: Option<PathBuf>,
}

#[derive(Args, Clone)]
pub(super) struct HealthArgs {
    #[command(flatten)]
    pub(super) target: TargetArgs,

    /// Seconds to wait for the mock to be ready (default: asks once).
    #[arg(
        long,
        env = "PETSTORE_MOCK_WAIT",
        hide_env = true,
        value_name = "SECONDS"
    )]
    #[arg(value_parser = seconds(), default_value = "0", hide_default_value = true)]
    pub(super) wait: Duration,
}

#[derive(Args, Clone)]
#[command(after_help = "Example:\n  petstore-mock report http://petstore:4010 --fail-on warnings")]
pub(super) struct ReportArgs {
    #[command(flatten)]
    pub(super) target: TargetArgs,

    /// File with the token of the mock's administration, if it runs on another machine.
    ///
    /// The variable PETSTORE_MOCK_ADMIN_TOKEN also sets it.
    #[arg(
        long,
        env = "PETSTORE_MOCK_ADMIN_TOKEN_FILE",
        hide_env = true,
        value_name = "FILE"
    )]
    pub(super) admin_token_file: Option<PathBuf>,

    #[command(flatten)]
    pub(super) gate: GateArgs,
}

#[derive(Args, Clone)]
pub(super) struct OpenApiArgs {
    /// Output format.
    #[arg(
        long,
        env = "PETSTORE_MOCK_FORMAT",
        hide_env = true,
        value_name = "FORMAT",
        default_value = "yaml"
    )]
    pub(super) format: DocumentFormat,

    /// Print the document of the mock's administration instead.
    #[arg(long, env = "PETSTORE_MOCK_ADMIN", hide_env = true, value_parser = FalseyValueParser::new())]
    pub(super) admin: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum DocumentFormat {
    Yaml,
    Json,
}
