//! `proxy`: serves like `serve`, but forwards requests to a real service.

use std::{fs, io::Write, path::PathBuf, time::Duration};

use clap::{Args, builder::FalseyValueParser};

use super::{
    flags::{ServeArgs, seconds},
    gate::{Origin, Written},
    outcome::{CliError, FINDINGS, Io},
    serve::{DEFAULT_PORT, serve, start},
    signals::Signals,
};

/// The error of `--fail-on-service` without a response of the service.
const NOTHING_CHECKED: &str = "no response of the service was checked for --fail-on-service: look whether \
                               the client uses the proxy's base URL, and whether the proxy reaches the \
                               service";

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

    /// Exit with 3 if the service broke its contract, or no response was checked.
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
    let state = server.state();
    serve(&args.serve, server, &mut signals, io).await;
    let service = state.service().report();
    let report = Written::from(&state.report());
    if let Some(path) = &args.record {
        fs::write(path, state.service().recording())
            .map_err(|error| CliError::file("write the recording", path, &error))?;
    }
    print(&service.to_string(), args.fail_on_service, io.err);
    let status = args.serve.gate.finish(&report, Origin::Serve, io)?;
    if args.fail_on_service && service.responses == 0 {
        return Err(CliError::new(NOTHING_CHECKED).with_status(FINDINGS));
    }
    if args.fail_on_service && !service.is_kept() {
        return Ok(FINDINGS);
    }
    Ok(status)
}

/// Prints what the service did: the first line, or all of it. A closed stream is not an error.
fn print(text: &str, is_whole: bool, err: &mut dyn Write) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let _ = writeln!(err, "petstore-mock: {first}");
    if is_whole {
        let _ = err.write_all(rest.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_line_names_the_program() {
        let text = "service: contract broken\n\n[status] 1×\n  GET /v1/pets: 418\n";
        let printed = |is_whole| {
            let mut err = Vec::new();
            print(text, is_whole, &mut err);
            String::from_utf8(err).unwrap()
        };
        assert_eq!(printed(true), format!("petstore-mock: {text}"));
        assert_eq!(printed(false), "petstore-mock: service: contract broken\n");
    }
}
