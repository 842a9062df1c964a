//! How many header fields a request may have, and how long they may be. That more can't be read at
//! all is left to `accept`, whose limits are higher, so that the answer is one of the service's.

use http::HeaderMap;

use crate::error::{ApiError, ErrorCode};

const MOST_FIELDS: usize = 100;

/// Of all fields together: 256 KiB.
const LONGEST: usize = 256 * 1024;

/// Whether the header fields of a request are within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    Fits,
    TooLarge,
}

impl Head {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let length: usize =
            headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if headers.len() <= MOST_FIELDS && length <= LONGEST { Self::Fits } else { Self::TooLarge }
    }

    pub(super) fn check(self) -> Result<(), ApiError> {
        match self {
            Self::Fits => Ok(()),
            Self::TooLarge => Err(ApiError::new(
                ErrorCode::HeadersTooLarge,
                format!(
                    "the request has more than {MOST_FIELDS} header fields, or more than {LONGEST} \
                     bytes of them: send fewer"
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn takes_as_much_as_it_says_and_no_more() {
        let mut headers = HeaderMap::new();
        for number in 0..MOST_FIELDS {
            // Repeated fields count each.
            let name = HeaderName::try_from(format!("x-{}", number / 2)).unwrap();
            headers.append(name, HeaderValue::from_static("1"));
        }
        assert_eq!(Head::of(&headers), Head::Fits);
        headers.append("x-0", HeaderValue::from_static("1"));
        assert_eq!(Head::of(&headers), Head::TooLarge);

        let long = |length| HeaderValue::try_from("x".repeat(length)).unwrap();
        let mut headers = HeaderMap::new();
        headers.append("abcd", long(LONGEST - 4));
        assert_eq!(Head::of(&headers), Head::Fits);
        headers.insert("abcd", long(LONGEST - 3));
        assert_eq!(Head::of(&headers), Head::TooLarge);
    }
}
