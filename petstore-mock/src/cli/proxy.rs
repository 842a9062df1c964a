//! `proxy`: serves like `serve`, but forwards requests to a real service.

use std::{fs, path::PathBuf, time::Duration};

use clap::{Args, builder::FalseyValueParser};

use super::{
    flags::{ServeArgs, seconds},
    gate::{Origin, Written},
    outcome::{CliError, FINDINGS, Io},
    serve::{DEFAULT_PORT, serve, start},
    signals::Signals,
};

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
    upstream: String,

    /// Seconds for the head of a response, then the request is answered 504.
    #[arg(
        long,
        env = "PETSTORE_MOCK_UPSTREAM_TIMEOUT",
        hide_env = true,
        value_name = "SECONDS"
    )]
    #[arg(value_parser = seconds(), default_value = "30")]
    upstream_timeout: Duration,

    /// File to write the service's pets and failures to at the end, for --seed and --faults.
    #[arg(
        long,
        env = "PETSTORE_MOCK_RECORD",
        hide_env = true,
        value_name = "FILE"
    )]
    record: Option<PathBuf>,

    /// Exit with 3 if the service broke its contract.
    #[arg(long, env = "PETSTORE_MOCK_FAIL_ON_SERVICE", hide_env = true, value_parser = FalseyValueParser::new())]
    fail_on_service: bool,

    #[command(flatten)]
    serve: ServeArgs,
}

pub(super) async fn run(args: &ProxyArgs, io: &mut Io<'_>) -> Result<u8, CliError> {
    let mut signals = Signals::listen()?;
    args.serve.gate.check()?;
    let builder = args
        .serve
        .builder()?
        .port(args.serve.server.port.unwrap_or(DEFAULT_PORT))
        .upstream(&args.upstream, args.upstream_timeout);
    let server = start(&args.serve, builder, io).await?;
    let (journal, state) = (server.journal(), server.state());
    serve(&args.serve, server, &mut signals, io).await;
    let service = state.service().report();
    let mut report = Written::from(&journal.report());
    report.add_service(&service);
    if let Some(path) = &args.record {
        fs::write(path, state.service().recording())
            .map_err(|error| CliError::file("write the recording", path, &error))?;
    }
    let text = service.to_string();
    let lines = if args.fail_on_service {
        text.lines().count()
    } else {
        1
    };
    for line in text.lines().take(lines) {
        let _ = writeln!(io.err, "petstore-mock: {line}");
    }
    let status = args.serve.gate.finish(&report, Origin::Serve, io)?;
    if args.fail_on_service && !service.is_kept() {
        return Ok(FINDINGS);
    }
    Ok(status)
}
