//! What crosses a socket or two crates, as one binary.

#[cfg(test)]
mod client;
