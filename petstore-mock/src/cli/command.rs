//! The commands, and what each is asked. The docs of the fields are the help texts.

use clap::{Args, Subcommand, ValueEnum};

use super::ServeArgs;
use crate::plan::Plan;

/// What can follow the name of the mock: a command, or the flags of `serve`.
///
/// It can be embedded in another command line: see [`MockArgs::run`].
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MockArgs {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) serve: ServeArgs,
}

#[derive(Clone, Debug, Subcommand)]
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

/// What is run, and with what.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  petstore-mock exec --fail-on warnings -- cargo test")]
pub(super) struct ExecArgs {
    /// Plan of the key the command is given: free, pro, business, enterprise, or
    /// enterprise:MINUTE/DAY.
    #[arg(long, value_name = "PLAN", default_value = "free")]
    pub(super) plan: Plan,

    #[command(flatten)]
    pub(super) serve: ServeArgs,

    /// The command and its arguments.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub(super) command: Vec<std::ffi::OsString>,
}

#[derive(Args, Clone, Debug)]
pub(super) struct HealthArgs {
    /// Where the mock is, with or without http://; only its scheme, address and port count.
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:4010")]
    pub(super) url: String,

    /// File with the certificate of the authority that is trusted (PEM), for https.
    ///
    /// It is what the mock's own flag of this name has written; SSL_CERT_FILE does the same.
    #[arg(long, value_name = "FILE")]
    pub(super) tls_ca_file: Option<std::path::PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(super) struct OpenApiArgs {
    /// Format to print it in.
    #[arg(long, value_name = "FORMAT", default_value = "yaml")]
    pub(super) format: DocumentFormat,

    /// Print the document of the mock's own administration instead.
    #[arg(long)]
    pub(super) admin: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum DocumentFormat {
    Yaml,
    Json,
}
