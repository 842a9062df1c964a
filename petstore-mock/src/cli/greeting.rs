//! What `serve` prints when it is ready.

use std::path::Path;

use crate::{handle::Key, server::MockServer, state::DEFAULT_KEYS};

/// The maximum number of keys in the greeting.
const MAX_KEYS: usize = 6;

/// Returns the only line that is written to a pipe. It has the address that the server listens on.
pub(super) fn ready_line(server: &MockServer) -> String {
    let scheme = server.origin().split(':').next().unwrap_or_default();
    format!("listening on {scheme}://{}/v1\n", server.addr())
}

/// Returns at most six lines for a person: where the mock serves, its keys, and what to try.
pub(super) fn greeting(server: &MockServer, authority: Option<&Path>) -> String {
    let (url, origin) = (server.url(), server.origin());
    let keys = server.keys().all();
    let trust = match authority {
        Some(path) => format!("--cacert '{}' ", path.display()),
        None if origin.starts_with("https:") => "--insecure ".to_owned(),
        None => String::new(),
    };
    let is_default = |key: &&Key| DEFAULT_KEYS.iter().any(|(known, _)| **known == ***key);
    let key = match keys.iter().find(is_default) {
        Some(key) => key.as_str(),
        None => "$PETSTORE_API_KEY",
    };
    format!(
        "{ready}{keys}  inspector: {origin}/_mock\n  \
         try: curl {trust}-H \"Authorization: Bearer {key}\" \"{url}/pets?limit=2\"\n  \
         -v logs each request; Ctrl-C stops the mock and prints what its report found\n",
        ready = ready_line(server),
        keys = listed(&keys),
    )
}

/// Returns a line with the keys.
fn listed(keys: &[Key]) -> String {
    let shown: Vec<_> = keys.iter().take(MAX_KEYS).filter_map(described).collect();
    let shown = shown.join(", ");
    match keys.len().saturating_sub(MAX_KEYS) {
        0 => format!("  keys: {shown}\n"),
        more => format!("  keys: {shown} and {more} more\n"),
    }
}

/// Returns the name and the plan of a key. Only a public key is shown as its own name.
fn described(key: &Key) -> Option<String> {
    let label = key.usage()?.label;
    Some(format!("{} ({})", label.name(), label.plan()))
}
