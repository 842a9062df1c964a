//! An API key.

use std::fmt;

use http::HeaderValue;
use zeroize::Zeroizing;

use crate::error::Error;

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

    /// Returns the `Authorization` value (RFC 6750, section 2.1).
    pub(crate) fn authorization(&self) -> Result<HeaderValue, Error> {
        if self.0.is_empty() {
            return Err(Error::config("API key", "it is empty"));
        }
        if let Some(position) = self.0.chars().position(|c| !c.is_ascii_graphic()) {
            let problem = format!(
                "its character {} is a space, a line break or not printable ASCII; remove it",
                position + 1
            );
            return Err(Error::config("API key", problem));
        }
        let text = Zeroizing::new(format!("Bearer {}", self.0.as_str()));
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| Error::config("API key", "it cannot be written into a header"))?;
        value.set_sensitive(true);
        Ok(value)
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
    fn refuses_a_key_with_a_line_break_without_repeating_it() {
        let problem = ApiKey::new("abc\n")
            .authorization()
            .unwrap_err()
            .to_string();
        assert!(problem.contains("character 4"), "{problem}");
        assert!(!problem.contains("abc"), "{problem}");
    }

    #[test]
    fn marks_the_header_sensitive() {
        let header = ApiKey::new("abc").authorization().unwrap();
        assert!(header.is_sensitive());
        assert_eq!(header.as_bytes(), b"Bearer abc");
    }
}
