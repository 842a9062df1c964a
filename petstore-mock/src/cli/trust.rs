//! How the command of `exec` comes to trust a mock that speaks TLS: by files that are there as long as
//! this is.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use tempfile::NamedTempFile;
use tokio::process::Command;

/// Where a file is named whose authorities are trusted as well: by `petstore`, and by Node.
const BESIDE: [&str; 2] = ["PETSTORE_CA_FILE", "NODE_EXTRA_CA_CERTS"];
/// Where one is named whose authorities alone are: by OpenSSL, Go, Python and rustls; by curl, which
/// looks there first; by Python's requests.
const ALONE: [&str; 3] = ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"];

/// Where systems keep the authorities that are trusted anyway.
const USUAL: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The authority of the mock, and that together with those that are trusted anyway.
#[derive(Debug)]
pub(super) struct Trust {
    mock: NamedTempFile,
    all: NamedTempFile,
}

impl Trust {
    /// Writes the files; `trusted` names the authorities that would be trusted without them.
    pub(super) fn new(authority: &str, trusted: Option<&Path>) -> io::Result<Self> {
        let usual = || USUAL.map(Path::new).into_iter().find(|path| path.exists());
        let anyway = trusted.or_else(usual).map(fs::read).transpose()?.unwrap_or_default();
        let mock = file(&[authority.as_bytes()])?;
        Ok(Self { mock, all: file(&[authority.as_bytes(), b"\n", &anyway])? })
    }

    /// Tells a command of them.
    pub(super) fn tell(&self, command: &mut Command) {
        command.envs(BESIDE.map(|name| (name, self.mock.path())));
        command.envs(ALONE.map(|name| (name, self.all.path())));
    }
}

fn file(parts: &[&[u8]]) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("petstore-mock-").suffix(".pem").tempfile()?;
    parts.iter().try_for_each(|part| file.write_all(part))?;
    Ok(file)
}
