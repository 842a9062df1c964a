//! Checks a base URL before a key is sent to it.

use std::net::IpAddr;

use petstore_client::url::Url;

use super::secrets::without_password;
use crate::error::{CliError, Result};

/// Parses a URL, and checks that a key may be sent to it. For messages, `setting` is what the user
/// can change, and `from` is the source in brackets.
pub(crate) fn checked(text: &str, setting: &str, from: &str, allows_http: bool) -> Result<Url> {
    let shown = without_password(text);
    let url = match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url,
        _ => {
            let problem = format!("base URL `{shown}` is not an https:// URL{from}");
            let hint = format!("set {setting} to a URL such as https://HOST/v1");
            return Err(CliError::config(problem).hint(hint));
        }
    };
    if url.password().is_some() {
        let problem = format!("base URL `{shown}` contains a password{from}");
        let hint = "leave it out; requests carry the API key";
        return Err(CliError::config(problem).hint(hint));
    }
    if url.scheme() == "http" && !allows_http && !is_local(&url) {
        let origin = url.origin().ascii_serialization();
        let problem = format!("{origin} would send the key unencrypted");
        let hint = "use https, or accept the risk with `--allow-insecure-http`";
        return Err(CliError::config(problem).hint(hint));
    }
    Ok(url)
}

/// Returns whether a URL names this machine.
fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
