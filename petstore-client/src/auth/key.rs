//! An API key.

use std::fmt;

use http::HeaderValue;
use zeroize::Zeroizing;

/// An API key for the service (specification, section 5).
///
/// `Debug` shows `ApiKey(…)` and never the key; there is no `Display`. The memory of this value is
/// overwritten when the last copy is dropped. The `Authorization` header built from it is marked
/// sensitive, so that HTTP libraries do not log it. The header's memory is not overwritten, because
/// the HTTP stack copies it.
///
/// ```
/// use petstore_client::ApiKey;
///
/// let key = ApiKey::new("s3cret");
/// assert_eq!(format!("{key:?}"), "ApiKey(…)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Zeroizing<String>);

impl ApiKey {
    /// Wraps a key. The client checks a fixed key when it is built, and a provider's key before
    /// each request.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self(Zeroizing::new(key.into()))
    }

    /// Returns the `Authorization` value (RFC 6750, section 2.1), or why the key cannot be sent.
    pub(crate) fn authorization(&self) -> Result<HeaderValue, String> {
        if self.0.is_empty() {
            return Err("it is empty".to_owned());
        }
        if let Some(problem) = self.problem() {
            return Err(problem);
        }
        let text = Zeroizing::new(format!("Bearer {}", self.0.as_str()));
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| "it cannot be written into a header".to_owned())?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl ApiKey {
    /// Returns why this key cannot be sent in a header. The text contains no part of the key.
    fn problem(&self) -> Option<String> {
        let (position, character) = self
            .0
            .chars()
            .enumerate()
            .find(|(_, character)| !character.is_ascii_graphic())?;
        let what = match character {
            ' ' => "a space",
            '\n' | '\r' => "a line break",
            _ => "a character that is not printable ASCII",
        };
        let has_scheme = self.0.to_ascii_lowercase().starts_with("bearer ");
        let advice = if has_scheme {
            "leave out `Bearer`"
        } else {
            "remove it"
        };
        Some(format!(
            "it has {what} at character {}; {advice}",
            position + 1
        ))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

impl From<&str> for ApiKey {
    fn from(key: &str) -> Self {
        Self::new(key)
    }
}

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self::new(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_a_header_cannot_have_without_repeating_the_key() {
        for (key, problem) in [
            ("abc\n", "a line break at character 4; remove it"),
            ("abc def", "a space at character 4; remove it"),
            ("Bearer abc", "a space at character 7; leave out `Bearer`"),
            (
                "äbc",
                "a character that is not printable ASCII at character 1; remove it",
            ),
        ] {
            let said = ApiKey::new(key).authorization().unwrap_err();
            assert_eq!(said, format!("it has {problem}"));
        }
    }

    #[test]
    fn marks_the_header_sensitive() {
        let header = ApiKey::new("abc").authorization().unwrap();
        assert!(header.is_sensitive());
        assert_eq!(header.as_bytes(), b"Bearer abc");
    }
}
