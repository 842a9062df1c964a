//! Passwords in addresses, such as `redis://me:PASSWORD@HOST` or a proxy's. They are never shown.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

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
