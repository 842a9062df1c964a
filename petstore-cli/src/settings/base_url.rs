//! Checks a base URL before a key is sent to it.

use std::net::IpAddr;

use petstore_client::url::Url;

use super::secrets::without_password;
use crate::error::{CliError, Result};

/// Parses a URL, and checks that a key may be sent to it. For messages, `setting` is what the user
/// can change, and `from` is the source in brackets.
pub(crate) fn checked(text: &str, setting: &str, from: &str, allows_http: bool) -> Result<Url> {
    let Some(url) = web_url(text) else {
        return Err(not_a_url(text, setting, from));
    };
    if url.password().is_some() {
        return Err(with_password(text, from));
    }
    let is_http = url.scheme() == "http";
    let may_be_http = allows_http || is_local(&url);
    if is_http && !may_be_http {
        return Err(unencrypted(&url));
    }
    Ok(url)
}

fn with_password(text: &str, from: &str) -> CliError {
    let text = without_password(text);
    let problem = format!("base URL `{text}` contains a password{from}");
    let hint = "leave it out; requests carry the API key";
    CliError::config(problem).hint(hint)
}

fn unencrypted(url: &Url) -> CliError {
    let origin = url.origin().ascii_serialization();
    let problem = format!("{origin} would send the key unencrypted");
    let hint = "use https, or accept the risk with `--allow-insecure-http`";
    CliError::config(problem).hint(hint)
}

/// Returns the error for a text that is not a URL. Suggests a similar URL if there is one.
fn not_a_url(text: &str, setting: &str, from: &str) -> CliError {
    let text = without_password(text);
    let (scheme, address) = text.split_once("://").unwrap_or(("", &text));
    let lacks = match scheme {
        "http" | "https" => "is not a URL",
        _ => "has no https://",
    };
    let address = address.trim_matches(['"', '\'']);
    let secure = format!("https://{address}");
    let better = match web_url(&secure) {
        Some(url) if is_local(&url) => format!("http://{address}"),
        Some(_) => secure,
        None => "a URL such as https://HOST/v1".to_owned(),
    };
    let hint = format!("set {setting} to {better}");
    let problem = format!("base URL `{text}` {lacks}{from}");
    CliError::config(problem).hint(hint)
}

fn web_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    match url.scheme() {
        "http" | "https" => Some(url),
        _ => None,
    }
}

/// Returns whether a URL names this machine.
pub(crate) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    if host == "localhost" {
        return true;
    }
    let address = host.trim_matches(['[', ']']);
    match address.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => false,
    }
}
