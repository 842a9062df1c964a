//! `proxy`: serves like `serve`, but forwards requests to a real service.

use std::fs;

use super::{
    args::ProxyArgs,
    gate::{Origin, Written},
    outcome::{CliError, FINDINGS, Io},
    serve::{DEFAULT_PORT, serve, start},
    signals::Signals,
};

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
    let service = state.service.report();
    let mut report = Written::from(&journal.report());
    report.add_service(&service);
    if let Some(path) = &args.record {
        fs::write(path, state.service.recording())
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
