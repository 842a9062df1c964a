//! Captures what one test logs, at every level and from every crate.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::{Layer as _, Registry, fmt, layer::SubscriberExt as _};

thread_local! {
    /// The log of this thread, while a test captures it. A test's runtime has one thread.
    static CAPTURED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Captures what this thread logs through `tracing`.
pub(super) struct Logs;

impl Logs {
    pub(super) fn capture() -> Self {
        static INSTALLED: Once = Once::new();
        // There is one subscriber for all threads. With one for each thread, another test could
        // reach a call site first, without a subscriber. The call site would then count as never
        // enabled.
        INSTALLED.call_once(|| {
            let log = fmt::layer()
                .with_span_events(FmtSpan::FULL)
                .with_ansi(false)
                .with_writer(|| Writer)
                // Formatting the lines of the other threads would take a fifth of these tests' time.
                .with_filter(dynamic_filter_fn(|_, _| {
                    CAPTURED.with_borrow(Option::is_some)
                }));
            tracing::subscriber::set_global_default(Registry::default().with(log)).unwrap();
            tracing::callsite::rebuild_interest_cache();
        });
        CAPTURED.set(Some(Vec::new()));
        Self
    }

    #[expect(clippy::unused_self, reason = "requires a capture")]
    pub(super) fn text(&self) -> String {
        let bytes = CAPTURED.with_borrow(|captured| captured.clone().unwrap_or_default());
        String::from_utf8(bytes).unwrap()
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        CAPTURED.set(None);
    }
}

struct Writer;

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        CAPTURED.with_borrow_mut(|captured| {
            if let Some(text) = captured {
                text.extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
