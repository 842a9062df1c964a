//! Which requests a fault is meant for: by operation, by key, by a header. Which of them it hits in
//! the end is left to `when`.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize, Serializer};

use super::effect::field;
use crate::operation::Operation;

/// What a request shows to those who choose its faults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) operation: Option<Operation>,
    /// The bearer token, whether such a key exists or not.
    pub(crate) key: Option<&'a str>,
    pub(crate) headers: &'a HeaderMap,
}

/// What a request must be like; nothing means any.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Matcher {
    pub(super) operation: Option<Operation>,
    pub(super) key: Option<MatchedKey>,
    pub(super) header: Option<MatchedHeader>,
}

impl Matcher {
    pub(super) fn matches(&self, request: Facts<'_>) -> bool {
        self.operation.is_none_or(|operation| request.operation == Some(operation))
            && self.key.as_ref().is_none_or(|key| request.key == Some(&key.0))
            && self.header.as_ref().is_none_or(|header| header.is_in(request.headers))
    }
}

/// A key, which is never shown again.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(transparent)]
pub(super) struct MatchedKey(pub(super) String);

impl fmt::Debug for MatchedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl Serialize for MatchedKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("[hidden]")
    }
}

/// A header field that must be there, with this value if one is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MatchedHeader {
    #[serde(with = "field::name")]
    pub(super) name: HeaderName,
    #[serde(default, with = "field::maybe_value", skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<HeaderValue>,
}

impl MatchedHeader {
    fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(&self.name).iter();
        values.any(|value| self.value.as_ref().is_none_or(|wanted| wanted == value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_must_hold() {
        let name = HeaderName::from_static("x-mock-fault");
        let mut headers = HeaderMap::new();
        headers.append(name.clone(), HeaderValue::from_static("other"));
        headers.append(name.clone(), HeaderValue::from_static("reset"));
        let request =
            Facts { operation: Some(Operation::ListPets), key: Some("k"), headers: &headers };
        let header = |value| Some(MatchedHeader { name: name.clone(), value });
        let all = Matcher {
            operation: Some(Operation::ListPets),
            key: Some(MatchedKey("k".to_owned())),
            header: header(Some(HeaderValue::from_static("reset"))),
        };
        assert!(Matcher::default().matches(request));
        assert!(all.matches(request));
        assert!(Matcher { header: header(None), ..all.clone() }.matches(request));
        let others = [
            Matcher { operation: Some(Operation::GetPet), ..all.clone() },
            Matcher { key: Some(MatchedKey("K".to_owned())), ..all.clone() },
            Matcher { header: header(Some(HeaderValue::from_static("res"))), ..all.clone() },
        ];
        for other in others {
            assert!(!other.matches(request), "{other:?}");
        }
        let strange = Facts { operation: None, key: None, headers: &HeaderMap::new() };
        assert!(Matcher::default().matches(strange));
        assert!(!Matcher { header: None, key: None, ..all }.matches(strange));
    }
}
