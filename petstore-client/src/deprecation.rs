//! The announced removal of an operation.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName};

use crate::wire::headers::{self, digits, http_date};

static DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
static SUNSET: HeaderName = HeaderName::from_static("sunset");

/// The announced removal of an operation: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and the
/// link to its replacement (`rel="successor-version"`, RFC 5829).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Deprecation {
    since: Option<SystemTime>,
    sunset: Option<SystemTime>,
    replacement: Option<String>,
}

/// A removal that the specification announces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Removal {
    /// In seconds since 1970.
    pub(crate) sunset: u64,
    pub(crate) replacement: &'static str,
}

impl Deprecation {
    /// Reads a response's announcement, and fills gaps from the specification.
    pub(crate) fn of(headers: &HeaderMap, specified: Option<Removal>) -> Option<Self> {
        let is_denied = |value: &str| value.eq_ignore_ascii_case("false") || value == "?0";
        let is_announced = headers::lines(headers, &DEPRECATION).any(|value| !is_denied(value));
        let sunset = headers
            .get(&SUNSET)
            .and_then(|v| http_date(v.to_str().ok()?.trim()));
        if !is_announced && sunset.is_none() && specified.is_none() {
            return None;
        }
        let link = headers::link_targets(headers, "successor-version").next();
        let replacement = link.or(specified.map(|removal| removal.replacement));
        Some(Self {
            since: since(headers),
            sunset: sunset.or_else(|| headers::epoch(specified?.sunset)),
            replacement: replacement.map(str::to_owned),
        })
    }

    /// Returns when the deprecation starts, if the service gives a date. It may be in the future.
    #[must_use]
    pub fn since(&self) -> Option<SystemTime> {
        self.since
    }

    /// Returns the date of removal.
    #[must_use]
    pub fn sunset(&self) -> Option<SystemTime> {
        self.sunset
    }

    /// Returns the target of the link to the replacement, as sent.
    #[must_use]
    pub fn replacement(&self) -> Option<&str> {
        self.replacement.as_deref()
    }

    /// Returns the number of full days from `now` to the removal; 0 after it.
    ///
    /// ```no_run
    /// # fn show(deprecation: &petstore_client::Deprecation) {
    /// if let Some(days) = deprecation.days_left(std::time::SystemTime::now()) {
    ///     println!("{days} days left");
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn days_left(&self, now: SystemTime) -> Option<u64> {
        let left = self.sunset?.duration_since(now).unwrap_or(Duration::ZERO);
        Some(left.as_secs() / 86_400)
    }
}

/// Parses `Deprecation` as in RFC 9745 (`@1764892800`), or as in its drafts (an HTTP date).
fn since(headers: &HeaderMap) -> Option<SystemTime> {
    let text = headers.get(&DEPRECATION)?.to_str().ok()?.trim();
    match text.strip_prefix('@') {
        Some(epoch) => headers::epoch(digits(epoch.as_bytes())?),
        None => http_date(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[(&'static str, &str)]) -> Option<Deprecation> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        Deprecation::of(&headers, None)
    }

    fn at(seconds: u64) -> Option<SystemTime> {
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn reads_the_date_as_rfc_9745_and_the_drafts_write_it() {
        for form in ["@1764892800", "Fri, 05 Dec 2025 00:00:00 GMT"] {
            let read = read(&[("deprecation", form)]).unwrap();
            assert_eq!(read.since(), at(1_764_892_800), "{form}");
        }
    }

    #[test]
    fn true_means_deprecated_and_false_means_not_deprecated() {
        assert_eq!(read(&[("deprecation", "true")]).unwrap().since(), None);
        assert_eq!(read(&[("deprecation", "@-5")]).unwrap().since(), None);
        assert_eq!(read(&[("deprecation", "false")]), None);
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn a_sunset_alone_announces_the_end_too() {
        let read = read(&[
            ("sunset", "Thu, 05 Dec 2030 00:00:00 GMT"),
            ("link", r#"</v1/pets>; rel="successor-version""#),
        ]);
        let read = read.unwrap();
        assert_eq!(read.sunset(), at(1_922_659_200));
        assert_eq!(read.replacement(), Some("/v1/pets"));
    }

    #[test]
    fn counts_full_days_down_to_0() {
        let removal = Removal {
            sunset: 1_922_659_200,
            replacement: "/pets",
        };
        let end = Deprecation::of(&HeaderMap::new(), Some(removal)).unwrap();
        let now = |seconds: u64| at(seconds).unwrap();
        assert_eq!(end.days_left(now(1_922_659_200 - 86_400)), Some(1));
        assert_eq!(end.days_left(now(1_922_659_200 - 86_399)), Some(0));
        assert_eq!(end.days_left(now(1_999_999_999)), Some(0));
    }
}
