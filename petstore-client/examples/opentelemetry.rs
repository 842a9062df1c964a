//! Sends traces and metrics of calls to OpenTelemetry. Each call and each attempt is a span, and
//! each attempt's request carries the trace. A histogram shows how long calls took, with all their
//! waits.
//!
//! `cargo run -p petstore-client --example opentelemetry`
//!
//! In a program of your own: `cargo add opentelemetry opentelemetry_sdk tracing tracing-opentelemetry
//! tracing-subscriber`, and an exporter such as `opentelemetry-otlp` in place of those in memory.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use opentelemetry::propagation::Injector;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{KeyValue, global};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use petstore_client::Client;
use petstore_client::events::{AttemptRequest, Event, EventKind};
use petstore_mock::{MockServer, Plan};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Writes the headers of the trace into a request.
struct Headers<'a, 'r>(&'a mut AttemptRequest<'r>);

impl Injector for Headers<'_, '_> {
    fn set(&mut self, name: &str, value: String) {
        // Propagators write valid headers.
        let _ = self.0.insert_header(name, value);
    }
}

/// This runs in the attempt's span, so that this span becomes the parent of the server's span.
fn propagate(request: &mut AttemptRequest<'_>) {
    let context = tracing::Span::current().context();
    global::get_text_map_propagator(|propagator| {
        propagator.inject_context(&context, &mut Headers(request));
    });
}

/// Returns a hook that counts the duration of calls, waits included.
fn durations() -> impl Fn(&Event<'_>) + Send + Sync + 'static {
    let histogram = global::meter("kennel")
        .f64_histogram("petstore.client.call.duration")
        .with_unit("s")
        .build();
    move |event| {
        let EventKind::Ended {
            result, elapsed, ..
        } = event.kind
        else {
            return;
        };
        let outcome = match result {
            Some(Ok(status)) => status.as_str().to_owned(),
            Some(Err(error)) => error.kind().to_string(),
            None => "cancelled".to_owned(),
        };
        let operation = event.operation.unwrap_or_default().to_owned();
        let labels = [
            KeyValue::new("operation", operation),
            KeyValue::new("outcome", outcome),
        ];
        histogram.record(elapsed.as_secs_f64(), &labels);
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spans = InMemorySpanExporter::default();
    let tracers = SdkTracerProvider::builder()
        .with_simple_exporter(spans.clone())
        .build();
    let metrics = InMemoryMetricExporter::default();
    let meters = SdkMeterProvider::builder()
        .with_reader(PeriodicReader::builder(metrics.clone()).build())
        .build();
    global::set_meter_provider(meters.clone());
    global::set_text_map_propagator(TraceContextPropagator::new());
    let layer = tracing_opentelemetry::layer().with_tracer(tracers.tracer("kennel"));
    tracing_subscriber::registry()
        .with(layer.with_filter(LevelFilter::INFO))
        .init();

    let server = MockServer::builder()
        .key("key", Plan::Business)
        .start()
        .await?;
    let _busy = server.faults().on(..).first(1).status(503);
    let client = Client::builder(server.url())
        .api_key("key")
        .on_request(propagate)
        .on_event(durations())
        .build()?;
    let page = client.pets().list().limit(5).await?;
    println!("{} pets", page.len());

    tracers.force_flush()?;
    meters.force_flush()?;
    let finished = spans.get_finished_spans()?;
    for span in &finished {
        println!("{} in trace {}", span.name, span.span_context.trace_id());
    }
    let names: Vec<_> = finished.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["GET /pets", "GET /pets", "listPets"]);
    for (request, span) in server.requests(..).iter().zip(&finished) {
        let parent = request.headers["traceparent"].to_str()?;
        println!("the service got {parent}");
        assert!(parent.contains(&span.span_context.trace_id().to_string()));
        assert!(parent.contains(&span.span_context.span_id().to_string()));
    }
    let exported = metrics.get_finished_metrics()?;
    assert!(format!("{exported:?}").contains("petstore.client.call.duration"));
    println!("{} export of metrics", exported.len());
    Ok(())
}
