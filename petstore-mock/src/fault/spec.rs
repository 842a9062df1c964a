//! A fault as it is set: its name, the requests it is meant for, and what it does to them. JSON says
//! the same as the typed builder.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::{
    effect::Effect,
    trigger::{MatchedHeader, MatchedKey, Matcher, When},
};
use crate::operation::Operation;

/// A fault: which requests it hits, and what it does to them.
///
/// In Rust a fault is set with [`Faults::on`](crate::Faults::on). This is what JSON says instead,
/// where only `effect` (or `sequence`, a list of effects of which each hit takes the next) must be
/// there:
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
/// `when` is `"always"`, `{"first": 3}`, `{"nth": 3}`, `{"after": 3}` or `{"chance": 0.1}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Text")]
pub struct Fault {
    pub(super) name: Option<String>,
    pub(super) matcher: Matcher,
    pub(super) when: When,
    pub(super) seed: u64,
    pub(super) processed: Option<bool>,
    pub(super) action: Action,
}

/// What it does at each hit.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Same(Effect),
    /// The next of these each time, and nothing once they are used up.
    Sequence(Vec<Effect>),
}

impl Fault {
    /// Returns its name: the one it was given, or that of its effect.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| match &self.action {
            Action::Same(effect) => effect.to_string(),
            Action::Sequence(_) => "sequence".to_owned(),
        })
    }

    /// Returns the effect of its hit with this number, counted from 1; nothing if it lets the
    /// request pass.
    pub(super) fn effect(&self, hit: u64) -> Option<&Effect> {
        let effect = match &self.action {
            Action::Same(effect) => Some(effect),
            Action::Sequence(effects) => {
                usize::try_from(hit).ok().and_then(|hit| effects.get(hit.checked_sub(1)?))
            }
        };
        effect.filter(|effect| !effect.is_pass())
    }

    /// Whether a request that has this effect is carried out all the same: it is unless set, but for
    /// effects that answer a status of their own.
    pub(super) fn is_processed(&self, effect: &Effect) -> bool {
        self.processed.unwrap_or_else(|| !effect.has_status())
    }
}

impl fmt::Display for Fault {
    /// Writes the name and the requests it is meant for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        if let Some(operation) = self.matcher.operation {
            write!(f, " on {operation}")?;
        }
        Ok(())
    }
}

/// The fields of the JSON.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Text {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<Operation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<MatchedKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    header: Option<MatchedHeader>,
    #[serde(default)]
    when: When,
    #[serde(default)]
    seed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    processed: Option<bool>,
    // `null` is no effect, and so a mistake.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    effect: Option<Effect>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    sequence: Option<Vec<Effect>>,
}

fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl TryFrom<Text> for Fault {
    type Error = &'static str;

    fn try_from(text: Text) -> Result<Self, Self::Error> {
        let action = match (text.effect, text.sequence) {
            (Some(effect), None) => Action::Same(effect),
            (None, Some(effects)) => Action::Sequence(effects),
            (Some(_), Some(_)) => return Err("a fault has an `effect` or a `sequence`, not both"),
            (None, None) => return Err("a fault has an `effect`, or a `sequence` of effects"),
        };
        let matcher = Matcher { operation: text.operation, key: text.key, header: text.header };
        let Text { name, when, seed, processed, .. } = text;
        Ok(Self { name, matcher, when, seed, processed, action })
    }
}

impl From<Fault> for Text {
    fn from(fault: Fault) -> Self {
        let Fault { name, matcher, when, seed, processed, action } = fault;
        let Matcher { operation, key, header } = matcher;
        let (effect, sequence) = match action {
            Action::Same(effect) => (Some(effect), None),
            Action::Sequence(effects) => (None, Some(effects)),
        };
        Self { name, operation, key, header, when, seed, processed, effect, sequence }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_str, from_value, json, to_value};

    use super::*;

    #[test]
    fn every_effect_reads_what_it_writes() {
        for effect in [
            json!({"status": {"status": 503}}),
            json!({"status": {"status": 500, "code": "busy", "body": false}}),
            json!({"delay": {"seconds": 1.5}}),
            json!({"delay": {"uniform": {"from": 1, "to": 2}}}),
            json!({"delay": {"logNormal": {"median": 1, "sigma": 0.4}}}),
            json!({"body": {"text": "<html>"}}),
            json!({"malformedJson": {}}),
            json!({"contentType": {"value": "text/html"}}),
            json!({"contentType": {"value": null}}),
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
            json!({"removeHeader": {"name": "x-a"}}),
            json!({"petStatus": {"value": "lost"}}),
            json!({"reset": {}}),
            json!({"reset": {"afterBodyBytes": 3}}),
            json!({"emptyReply": {}}),
            json!({"cut": {"afterBodyBytes": 3}}),
            json!({"stall": {"afterBodyBytes": 0}}),
            json!({"stall": {"afterBodyBytes": 3, "seconds": 60}}),
            json!({"hang": {}}),
            json!({"trickle": {"bytes": 1, "everySeconds": 0.5}}),
            json!({"bandwidth": {"bytesPerSecond": 100}}),
            json!({"all": [{"hang": {}}, {"all": []}]}),
            json!({"pass": {}}),
        ] {
            let fault = json!({"when": "always", "seed": 0, "effect": effect});
            let read: Fault = from_value(fault.clone()).unwrap();
            assert_eq!(to_value(&read).unwrap(), fault);
        }
    }

    #[test]
    fn a_status_may_be_a_bare_number() {
        let short: Fault = from_str(r#"{"effect": {"status": 503}}"#).unwrap();
        assert_eq!(to_value(short).unwrap()["effect"], json!({"status": {"status": 503}}));
    }

    #[test]
    fn says_what_is_wrong_with_a_fault() {
        for (text, wrong) in [
            (r#"{}"#, "a fault has an `effect`"),
            (r#"{"effect": {"hang": {}}, "sequence": []}"#, "not both"),
            (r#"{"effect": {"hung": {}}}"#, "unknown variant `hung`, expected one of `all`"),
            (r#"{"effect": {"reset": {"after": 1}}}"#, "unknown field `after`"),
            (r#"{"effect": {"status": {"status": 99}}}"#, "from 200 to 599"),
            (r#"{"effect": {"status": 600}}"#, "from 200 to 599"),
            (r#"{"effect": {"status": "busy"}}"#, "expected a status such as 503"),
            (r#"{"effect": {"status": {"status": 503, "text": ""}}}"#, "unknown field `text`"),
            (r#"{"effect": {"delay": {"seconds": -1}}}"#, "a number of seconds from 0 to"),
            (r#"{"effect": {"trickle": {"bytes": 0, "everySeconds": 1}}}"#, "nonzero u32"),
            (r#"{"effect": {"removeHeader": {"name": "a b"}}}"#, "not a valid header name"),
            (r#"{"effect": {"setHeader": {"name": "a", "value": "\n"}}}"#, "control characters"),
            (r#"{"operation": "listpets", "effect": {"hang": {}}}"#, "unknown variant `listpets`"),
            (r#"{"when": {"every": 2}, "effect": {"hang": {}}}"#, "unknown variant `every`"),
            (r#"{"on": "listPets", "effect": {"hang": {}}}"#, "unknown field `on`"),
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
        assert_eq!(effects, [Some(&Effect::hang()), None, Some(&Effect::reset()), None]);
        assert_eq!(to_value(&fault).unwrap()["sequence"][1], json!({"all": []}));
        assert_ne!(to_value(&fault).unwrap()["effect"], Value::from("x"));
    }

    #[test]
    fn only_what_answers_a_status_keeps_a_request_from_being_carried_out() {
        let fault: Fault = from_str(r#"{"sequence": []}"#).unwrap();
        assert!(fault.is_processed(&Effect::reset()));
        assert!(!fault.is_processed(&Effect::all([Effect::hang(), Effect::status(503)])));
        let told = Fault { processed: Some(false), ..fault };
        assert!(!told.is_processed(&Effect::reset()));
    }
}
