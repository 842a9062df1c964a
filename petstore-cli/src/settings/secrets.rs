//! Addresses: checked before a key is sent to them, and shown without their passwords.

use std::borrow::Cow;
use std::net::IpAddr;

use percent_encoding::percent_decode_str;
use petstore_client::url::Url;

use crate::error::{CliError, Result};

/// What is shown instead of a secret.
pub(crate) const MASK: &str = "[hidden]";

/// The minimum length of a password that is removed wherever it occurs. A shorter one may be part
/// of ordinary words.
const MIN_LENGTH: usize = 4;

/// Returns an address without user and password: `redis://[hidden]@HOST`.
pub(crate) fn without_password(text: &str) -> Cow<'_, str> {
    let Some((before, host)) = text.rsplit_once('@') else {
        return Cow::Borrowed(text);
    };
    match before.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{MASK}@{host}").into(),
        None if before.contains(':') => format!("{MASK}@{host}").into(),
        None => Cow::Borrowed(text),
    }
}

/// Returns the forms in which a message might contain the password of an address.
pub(crate) fn passwords(text: &str) -> Vec<String> {
    let Some((before, _)) = text.rsplit_once('@') else {
        return Vec::new();
    };
    let user = match before.split_once("://") {
        Some((_, user)) => user,
        None => before,
    };
    let Some((_, password)) = user.split_once(':') else {
        return Vec::new();
    };
    let mut forms = vec![format!("{user}@")];
    let decoded = percent_decode_str(password).decode_utf8_lossy();
    for form in [password, &decoded] {
        if form.len() >= MIN_LENGTH && !forms.iter().any(|known| known == form) {
            forms.push(form.to_owned());
        }
    }
    forms
}

/// Parses a URL, and checks that a key may be sent to it. For messages, `setting` is what the user
/// can change, and `from` is the source in brackets.
pub(crate) fn checked_url(text: &str, setting: &str, from: &str, allows_http: bool) -> Result<Url> {
    let shown = without_password(text);
    let url = match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url,
        _ => {
            let problem = format!("base URL `{shown}` is not an https:// URL{from}");
            let hint = format!("set {setting} to a URL such as https://HOST/v1");
            return Err(CliError::config(problem).hint(hint));
        }
    };
    if url.password().is_some() || !url.username().is_empty() {
        let problem = format!("base URL `{shown}` contains a user name or a password{from}");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_left_out_of_an_address() {
        for (text, shown) in [
            (
                "redis://me:pa@ss@cache:6379/1",
                "redis://[hidden]@cache:6379/1",
            ),
            ("rediss://:secret@cache", "rediss://[hidden]@cache"),
            ("me:secret@cache", "[hidden]@cache"),
            ("redis://cache:6379", "redis://cache:6379"),
            ("someone@petstore.example", "someone@petstore.example"),
            ("file", "file"),
        ] {
            assert_eq!(without_password(text), shown);
        }
    }

    #[test]
    fn a_password_has_an_encoded_and_a_decoded_form() {
        let forms = passwords("redis://me:s%2fcret%@cache");
        assert_eq!(forms, ["me:s%2fcret%@", "s%2fcret%", "s/cret%"]);
        assert_eq!(passwords("redis://me:abc@cache"), ["me:abc@"]);
        assert_eq!(passwords("redis://cache:6379"), [""; 0]);
    }
}
