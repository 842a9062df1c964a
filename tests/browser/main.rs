//! The inspector in a real headless Chromium: `cargo test --features browser --test browser`, which
//! needs `chromium` and `chromedriver`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod driver;
mod inspector;
mod looks;
