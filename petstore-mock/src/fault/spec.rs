//! The specification of a fault, from JSON or the builder.

use std::fmt;

use http::HeaderValue;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{
    effect::Effect,
    trigger::{HeaderField, MatchedKey, RequestView, Trigger},
};
use crate::{
    operation::Operation,
    text::{count, present},
};

/// A fault: the requests that it hits, and its effect.
///
/// In Rust, use [`Faults::on`](crate::Faults::on). In JSON, only `effect` is required, or
/// `sequence`, a list of effects for one hit each:
///
/// ```
/// use petstore_mock::Fault;
///
/// let fault: Fault = serde_json::from_str(
///     r#"{
///         "name": "the answer is lost",
///         "operation": "createPet",
///         "key": "free-key",
///         "header": {"name": "x-mock-fault", "value": "lost"},
///         "when": {"first": 3},
///         "seed": 7,
///         "processed": true,
///         "effect": {"reset": {}}
///     }"#,
/// )?;
/// assert_eq!(fault.name(), "the answer is lost");
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// `when` is `"always"`, `{"first": 3}`, `{"nth": 3}`, `{"after": 3}`, `{"chance": 0.1}`, or `"named"`: only
/// requests with `X-Mock-Fault` and its name, if [`Builder::fault_header`](crate::Builder::fault_header)
/// enables that.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) operation: Option<Operation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<MatchedKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) header: Option<HeaderField>,
    #[serde(default)]
    pub(super) when: Trigger,
    #[serde(default, deserialize_with = "count")]
    pub(super) seed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) processed: Option<bool>,
    /// The effect of each hit.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) effect: Option<Effect>,
    /// Instead of `effect`: one effect per hit, and none after the last.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) sequence: Option<Vec<Effect>>,
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // This is the derived function. Its name takes precedence over that of the trait.
        let fault = Self::deserialize(from)?;
        match (&fault.effect, &fault.sequence) {
            (None, None) => Err(D::Error::custom(
                "a fault has an `effect`, or a `sequence` of effects",
            )),
            (Some(_), Some(_)) => Err(D::Error::custom(
                "a fault has an `effect` or a `sequence`, not both",
            )),
            _ if fault.sets_length() => Err(D::Error::custom(SETS_LENGTH)),
            _ => Ok(fault),
        }
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

/// An effect sets a header that delimits the body.
pub(super) const SETS_LENGTH: &str =
    "a fault cannot set Content-Length or Transfer-Encoding: use the effect `cut` or `body`";

impl Fault {
    /// Whether an effect sets a header that delimits the body.
    pub(super) fn sets_length(&self) -> bool {
        self.effect
            .iter()
            .chain(self.sequence.iter().flatten())
            .any(Effect::sets_length)
    }

    /// Returns the name of the fault. The default is the name of its effect.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.name, &self.effect) {
            (Some(name), _) => name.clone(),
            (None, Some(effect)) => effect.to_string(),
            (None, None) => "sequence".to_owned(),
        }
    }

    /// Whether the fault matches a request.
    pub(super) fn matches(&self, request: RequestView<'_>) -> bool {
        let Self {
            operation,
            key,
            header,
            ..
        } = self;
        operation.is_none_or(|operation| request.is_for(operation))
            && key.as_ref().is_none_or(|key| request.has_key(key))
            && header
                .as_ref()
                .is_none_or(|field| request.has_header(field))
            && (self.when != Trigger::Named || self.is_chosen_by(request.chosen_fault()))
    }

    /// Whether the fault only hits requests that choose it, and `name` is its name.
    pub(super) fn is_chosen_by(&self, name: Option<&HeaderValue>) -> bool {
        self.when == Trigger::Named
            && name.is_some_and(|name| name.as_bytes() == self.name().as_bytes())
    }

    /// Returns the fault that a request chooses by a status or the name of an effect.
    pub(super) fn built_in(name: &HeaderValue) -> Option<Self> {
        let name = name.to_str().ok()?;
        let effect = match name {
            "reset" => Effect::Reset {
                after_body_bytes: None,
            },
            "emptyReply" => Effect::EmptyReply,
            "hang" => Effect::Hang,
            "malformedJson" => Effect::MalformedJson,
            other => match other.parse() {
                Ok(status @ 200..=599) => Effect::status(status),
                _ => return None,
            },
        };
        Some(Self {
            name: Some(name.to_owned()),
            effect: Some(effect),
            ..Self::default()
        })
    }

    /// Returns the effect of the hit with this number, from 1; `None` if it lets the request pass.
    pub(super) fn effect(&self, hit: usize) -> Option<&Effect> {
        let effect = match &self.sequence {
            Some(effects) => effects.get(hit.checked_sub(1)?),
            None => self.effect.as_ref(),
        };
        effect.filter(|effect| !effect.is_pass())
    }

    /// Whether the service processes a request with this effect. By default it does, except for
    /// effects that set a status.
    pub(super) fn is_processed(&self, effect: &Effect) -> bool {
        self.processed.unwrap_or_else(|| !effect.has_status())
    }
}

impl fmt::Display for Fault {
    /// Writes the name and the operation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        self.operation
            .map_or(Ok(()), |operation| write!(f, " on {operation}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use http::HeaderMap;
    use serde_json::{Value, from_str, from_value, json, to_value};
    use strum::VariantNames as _;

    use super::*;
    use crate::OpenApi;

    #[test]
    fn every_effect_reads_what_it_writes() {
        let effects = [
            json!({"status": {"status": 503}}),
            json!({"status": {"status": 500, "code": "busy", "body": false}}),
            json!({"delay": {"seconds": 1.5}}),
            json!({"delay": {"uniform": {"from": 1.0, "to": 2.0}}}),
            json!({"delay": {"logNormal": {"median": 1.0, "sigma": 0.4}}}),
            json!({"body": {"text": "<html>"}}),
            json!({"malformedJson": {}}),
            json!({"rateHeaders": "missing"}),
            json!({"rateHeaders": "garbage"}),
            json!({"rateHeaders": {"wrong": {"remaining": 60}}}),
            json!({"date": {"offsetSeconds": -3600}}),
            json!({"retryAfter": {"seconds": 2}}),
            json!({"retryAfter": {"httpDate": 2}}),
            json!({"retryAfter": {"rfc850": 2}}),
            json!({"retryAfter": {"asctime": 2}}),
            json!({"retryAfter": {"epoch": 2}}),
            json!({"retryAfter": {"text": ""}}),
            json!({"retryAfter": "missing"}),
            json!({"setHeader": {"name": "x-a", "value": "1"}}),
            json!({"addHeader": {"name": "x-a", "value": "1"}}),
            json!({"setHeader": {"name": "x-a"}}),
            json!({"petStatus": {"value": "lost"}}),
            json!({"reset": {}}),
            json!({"reset": {"afterBodyBytes": 3}}),
            json!({"emptyReply": {}}),
            json!({"cut": {"afterBodyBytes": 3}}),
            json!({"stall": {"afterBodyBytes": 0}}),
            json!({"stall": {"afterBodyBytes": 3, "seconds": 60.0}}),
            json!({"hang": {}}),
            json!({"trickle": {"bytes": 1, "everySeconds": 0.5}}),
            json!({"bandwidth": {"bytesPerSecond": 100}}),
            json!({"all": [{"hang": {}}, {"all": []}]}),
            json!({"pass": {}}),
        ];
        let kind = |effect: &Value| effect.as_object().unwrap().keys().next().unwrap().clone();
        let tested: BTreeSet<_> = effects.iter().map(kind).collect();
        let document: Value = from_str(OpenApi::Administration.json()).unwrap();
        let described = document["components"]["schemas"]["SingleEffect"]["properties"].as_object();
        for name in Effect::VARIANTS {
            assert!(tested.contains(*name), "{name} is not tested");
            let is_described = described.is_some_and(|all| all.contains_key(*name));
            assert!(
                is_described || *name == "all",
                "{name} is not in admin.yaml"
            );
        }
        for effect in effects {
            let fault = json!({"when": "always", "seed": 0, "effect": effect});
            let read: Fault = from_value(fault.clone()).unwrap();
            assert_eq!(to_value(&read).unwrap(), fault);
        }
    }

    #[test]
    fn a_status_may_be_a_bare_number() {
        let short: Fault = from_str(r#"{"effect": {"status": 503}}"#).unwrap();
        assert_eq!(
            to_value(short).unwrap()["effect"],
            json!({"status": {"status": 503}})
        );
    }

    #[test]
    fn says_what_is_wrong_with_a_fault() {
        for (text, wrong) in [
            (r#"{}"#, "a fault has an `effect`"),
            (r#"{"effect": {"hang": {}}, "sequence": []}"#, "not both"),
            (r#"{"effect": null}"#, "expected value"),
            (
                r#"{"effect": {"hang": {}}, "sequence": null}"#,
                "invalid type: null",
            ),
            (
                r#"{"effect": {"hung": {}}}"#,
                "unknown variant `hung`, expected one of `all`",
            ),
            (
                r#"{"effect": {"reset": {"after": 1}}}"#,
                "unknown field `after`",
            ),
            (
                r#"{"effect": {"status": {"status": 99}}}"#,
                "from 200 to 599",
            ),
            (r#"{"effect": {"status": 600}}"#, "from 200 to 599"),
            (
                r#"{"effect": {"status": "busy"}}"#,
                "expected a status such as 503",
            ),
            (
                r#"{"effect": {"status": {"status": 503, "text": ""}}}"#,
                "\"code\": \"busy\", \"body\"",
            ),
            (
                r#"{"effect": {"delay": {"seconds": -1}}}"#,
                "a number of seconds from 0 to",
            ),
            (
                r#"{"effect": {"trickle": {"bytes": 0, "everySeconds": 1}}}"#,
                "nonzero u32",
            ),
            (
                r#"{"effect": {"setHeader": {"name": "Content-Length", "value": "5"}}}"#,
                "use the",
            ),
            (
                r#"{"sequence": [{"all": [{"addHeader": {"name": "transfer-encoding"}}]}]}"#,
                "cannot set Content-Length or Transfer-Encoding",
            ),
            (
                r#"{"effect": {"setHeader": {"name": "a b"}}}"#,
                "`a b` is not a valid header name",
            ),
            (
                r#"{"effect": {"setHeader": {"name": "a", "value": "\n"}}}"#,
                "control characters",
            ),
            (
                r#"{"operation": "listpets", "effect": {"hang": {}}}"#,
                "unknown variant `listpets`",
            ),
            (
                r#"{"when": {"every": 2}, "effect": {"hang": {}}}"#,
                "unknown variant `every`",
            ),
            (
                r#"{"on": "listPets", "effect": {"hang": {}}}"#,
                "unknown field `on`",
            ),
            (
                r#"{"seed": 9223372036854775808, "effect": {"hang": {}}}"#,
                "expected i64",
            ),
            (
                r#"{"seed": -1, "effect": {"hang": {}}}"#,
                "must be 0 or more",
            ),
            (
                r#"{"when": {"first": 9223372036854775808}, "effect": {"hang": {}}}"#,
                "expected i64",
            ),
            (
                r#"{"when": {"nth": 9223372036854775808}, "effect": {"hang": {}}}"#,
                "expected i64",
            ),
            (
                r#"{"when": {"after": 9223372036854775808}, "effect": {"hang": {}}}"#,
                "expected i64",
            ),
        ] {
            let error = from_str::<Fault>(text).unwrap_err().to_string();
            assert!(error.contains(wrong), "{text}: {error}");
        }
    }

    #[test]
    fn shows_no_key() {
        let text = r#"{"key": "s3cr3t", "effect": {"hang": {}}}"#;
        let fault: Fault = from_str(text).unwrap();
        let shown = format!("{fault:?} {fault} {}", to_value(&fault).unwrap());
        assert!(!shown.contains("s3cr3t"), "{shown}");
        assert!(shown.contains("[hidden]"), "{shown}");
    }

    #[test]
    fn a_sequence_takes_one_effect_after_the_other_and_ends() {
        let text = r#"{"sequence": [{"hang": {}}, {"all": []}, {"reset": {}}]}"#;
        let fault: Fault = from_str(text).unwrap();
        let effects: Vec<_> = (1..=4).map(|hit| fault.effect(hit)).collect();
        assert_eq!(
            effects,
            [
                Some(&Effect::Hang),
                None,
                Some(&Effect::Reset {
                    after_body_bytes: None
                }),
                None
            ]
        );
        assert_eq!(to_value(&fault).unwrap()["sequence"][1], json!({"all": []}));
        assert_ne!(to_value(&fault).unwrap()["effect"], Value::from("x"));
    }

    #[test]
    fn only_a_status_prevents_the_processing_of_a_request() {
        let fault: Fault = from_str(r#"{"sequence": []}"#).unwrap();
        assert!(fault.is_processed(&Effect::Reset {
            after_body_bytes: None
        }));
        assert!(!fault.is_processed(&Effect::All(vec![Effect::Hang, Effect::status(503)])));
        let told = Fault {
            processed: Some(false),
            ..fault
        };
        assert!(!told.is_processed(&Effect::Reset {
            after_body_bytes: None
        }));
    }

    #[test]
    fn every_condition_must_hold() {
        let mut headers = HeaderMap::new();
        headers.append("x-mock-fault", HeaderValue::from_static("other"));
        headers.append("x-mock-fault", HeaderValue::from_static("reset"));
        let list = Some(Operation::ListPets);
        let no_headers = HeaderMap::new();
        let request = RequestView::new(list, Some("k"), &headers);
        let strange = RequestView::new(None, None, &no_headers);
        for (conditions, fits, fits_any) in [
            (json!({}), true, true),
            (
                json!({"operation": "listPets", "key": "k", "header": {"name": "x-mock-fault"}}),
                true,
                false,
            ),
            (
                json!({"header": {"name": "x-mock-fault", "value": "reset"}}),
                true,
                false,
            ),
            (
                json!({"header": {"name": "x-mock-fault", "value": "res"}}),
                false,
                false,
            ),
            (json!({"operation": "getPet"}), false, false),
            (json!({"key": "K"}), false, false),
            (json!({"operation": "listPets"}), true, false),
        ] {
            let mut fault = conditions.clone();
            fault["effect"] = json!({"hang": {}});
            let fault: Fault = from_value(fault).unwrap();
            assert_eq!(fault.matches(request), fits, "{conditions}");
            assert_eq!(fault.matches(strange), fits_any, "{conditions}");
        }
    }
}
