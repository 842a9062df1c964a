//! What the command line takes from its process and gives to it: streams, and a secret that is no
//! argument. Everything else it is told by its arguments.

use std::{fmt, io::Write, path::PathBuf};

/// Streams and secrets, handed in.
pub struct Io<'a> {
    /// Where results go.
    pub out: &'a mut dyn Write,
    /// Where all else goes.
    pub err: &'a mut dyn Write,
    /// What `PETSTORE_MOCK_ADMIN_TOKEN` holds, if it is set.
    pub admin_token: Option<String>,
    /// What `SSL_CERT_FILE` holds, if it is set: whom the command of `exec` trusts without the mock.
    pub trusted: Option<PathBuf>,
}

impl fmt::Debug for Io<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io")
            .field("admin_token", &self.admin_token.is_some())
            .finish_non_exhaustive()
    }
}
