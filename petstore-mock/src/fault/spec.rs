//! A fault, as in JSON: the requests that it hits, and its effects.

use std::{fmt, slice};

use http::{HeaderValue, Method};
use serde::{Deserialize, Serialize, Serializer};

use super::{effect::Effect, random::Random};
use crate::{
    operation::{Operation, PathTemplate, Target, problem_of_method},
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
///         "when": {"first": 3},
///         "processed": true,
///         "effect": {"reset": {}}
///     }"#,
/// )?;
/// assert_eq!(fault.name(), "the answer is lost");
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// Instead of an `operation`, it can have a `method` and a `path`, such as `"PUT"` and
/// `"/pets/{petId}"`. `when` is `"always"`, `{"first": 3}`, `{"nth": 3}`, `{"after": 3}`, `{"chance":
/// 0.1}` (with a `seed`), or `"named"`: only requests with `X-Mock-Fault` and its name, if
/// [`Builder::fault_header`](crate::Builder::fault_header) enables that. A fault that could never
/// hit a request is refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<Operation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<MatchedKey>,
    #[serde(default)]
    pub(super) when: Trigger,
    #[serde(default, deserialize_with = "count")]
    pub(super) seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) processed: Option<bool>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) effect: Option<Effect>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) sequence: Option<Vec<Effect>>,
}

impl Fault {
    /// The example in the message for JSON that does not describe a fault.
    pub(crate) const EXAMPLE: &str =
        r#"{"effect": {"all": [{"status": 503}, {"retryAfter": {"seconds": 2}}]}}"#;

    /// Creates a fault without an effect.
    pub(super) fn on(target: &Target) -> Self {
        let (method, path) = target.method_and_path().unzip();
        Self {
            operation: target.operation(),
            method: method.map(ToString::to_string),
            path: path.map(ToString::to_string),
            ..Self::default()
        }
    }

    /// Returns why the fault can never hit a request, or must not.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let is_named = self.name.as_ref().is_some_and(|name| !name.is_empty());
        match self.when {
            Trigger::First(0) | Trigger::Nth(0) => {
                return Some("`first` and `nth` are at least 1: requests are counted from 1");
            }
            Trigger::Probability(chance) if !(chance > 0.0 && chance <= 1.0) => {
                return Some("`chance` is a probability above 0, and at most 1");
            }
            Trigger::Named if !is_named => {
                return Some(
                    "a fault with \"when\": \"named\" needs a `name`, which requests send",
                );
            }
            _ => {}
        }
        let effects = match (&self.effect, &self.sequence) {
            (Some(effect), None) => slice::from_ref(effect),
            (None, Some(effects)) if effects.is_empty() => {
                return Some("the `sequence` of a fault needs at least one effect");
            }
            (None, Some(effects)) => effects,
            (None, None) => return Some("a fault has an `effect`, or a `sequence` of effects"),
            (Some(_), Some(_)) => return Some("a fault has an `effect` or a `sequence`, not both"),
        };
        let wrong = effects.iter().find_map(Effect::problem);
        wrong.or(self.target().err())
    }

    /// Returns the requests that it is for.
    pub(super) fn target(&self) -> Result<Target, &'static str> {
        match (self.operation, &self.method, &self.path) {
            (None, None, None) => Ok(Target::default()),
            (Some(operation), None, None) => Ok(operation.into()),
            (None, Some(method), Some(path)) => {
                let Ok(method) = Method::from_bytes(method.as_bytes()) else {
                    return Err("the `method` of a fault is not a method");
                };
                let problem = PathTemplate::new(path).problem();
                match problem.or(problem_of_method(&method)) {
                    None => Ok((method, &**path).into()),
                    Some(problem) => Err(problem),
                }
            }
            _ => Err("a fault has an `operation`, or both a `method` and a `path`"),
        }
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

    /// Returns the key whose requests it hits, if it is for one key.
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_ref().map(|key| &*key.0)
    }

    /// Whether the fault only hits requests that choose it by its name.
    pub(crate) fn is_named(&self) -> bool {
        self.when == Trigger::Named
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
            "emptyReply" => Effect::EmptyReply {},
            "hang" => Effect::Hang {
                after_body_bytes: None,
            },
            "malformedJson" => Effect::Body {
                text: "{".to_owned(),
            },
            other => match other.parse() {
                Ok(status @ 200..=599) => Effect::Status(status),
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
        match &self.sequence {
            Some(effects) => effects.get(hit.checked_sub(1)?),
            None => self.effect.as_ref(),
        }
    }

    /// Whether the service processes a request with this effect. By default it does, except for
    /// effects that set a status.
    pub(super) fn is_processed(&self, effect: &Effect) -> bool {
        self.processed.unwrap_or_else(|| !effect.has_status())
    }
}

impl fmt::Display for Fault {
    /// Writes the name and the target.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        match self.target() {
            Ok(target) if !target.is_all() => write!(f, " on {target}"),
            _ => Ok(()),
        }
    }
}

/// The parts of a request that faults can match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestView<'a> {
    operation: Option<Operation>,
    method: &'a Method,
    path: &'a str,
    key: Option<&'a str>,
    chosen: Option<&'a HeaderValue>,
}

impl<'a> RequestView<'a> {
    /// Creates the view of a request. `key` is its bearer token, even if no such key exists, and
    /// `chosen` the name of the fault that it chooses.
    pub(crate) fn new(
        operation: Option<Operation>,
        method: &'a Method,
        path: &'a str,
        key: Option<&'a str>,
        chosen: Option<&'a HeaderValue>,
    ) -> Self {
        Self {
            operation,
            method,
            path,
            key,
            chosen,
        }
    }

    pub(super) fn chosen(&self) -> Option<&'a HeaderValue> {
        self.chosen
    }

    /// Whether a fault with this target matches the request.
    pub(super) fn matches(&self, fault: &Fault, target: &Target) -> bool {
        target.matches(self.operation, self.method, self.path)
            && fault.key().is_none_or(|key| self.key == Some(key))
            && (fault.when != Trigger::Named || fault.is_chosen_by(self.chosen))
    }
}

/// A key, which is never shown.
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

/// Which of the matching requests are hit. They are numbered from 1 in order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Trigger {
    #[default]
    Always,
    /// The first requests, up to this number.
    First(#[serde(deserialize_with = "count")] u64),
    /// Only the request with this number.
    Nth(#[serde(deserialize_with = "count")] u64),
    /// All requests with a higher number.
    After(#[serde(deserialize_with = "count")] u64),
    /// Only requests that choose the fault by its name.
    Named,
    /// Each request with this probability, from 0 to 1.
    #[serde(rename = "chance")]
    Probability(f64),
}

impl Trigger {
    /// Whether the fault hits the request with this number. Draws once per request, so that the
    /// draws depend only on their order.
    pub(super) fn hits(self, number: u64, random: &mut Random) -> bool {
        match self {
            // Requests that choose another fault do not match at all.
            Self::Always | Self::Named => true,
            Self::First(count) => number <= count,
            Self::Nth(nth) => number == nth,
            Self::After(count) => number > count,
            Self::Probability(chance) => random.unit() < chance,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, from_str, from_value, json, to_value};

    use super::*;
    use crate::{OpenApi, text::parse_name};

    #[test]
    fn every_effect_reads_what_it_writes() {
        let effects = [
            r#"[{"status": 503}, {"delay": {"seconds": 1.5}}, {"delay": {"uniform": {"from": 1.0, "to": 2.0}}}"#,
            r#"{"body": {"text": "<html>"}}, {"rateHeaders": "missing"}, {"rateHeaders": "garbage"}"#,
            r#"{"rateHeaders": {"wrong": {"remaining": 60}}}, {"retryAfter": {"seconds": 2}}"#,
            r#"{"retryAfter": {"httpDate": 2}}"#,
            r#"{"setHeader": {"name": "x-a", "value": "1"}}, {"setHeader": {"name": "x-a"}}"#,
            r#"{"reset": {}}, {"reset": {"afterBodyBytes": 3}}, {"emptyReply": {}}"#,
            r#"{"cut": {"afterBodyBytes": 3}}, {"hang": {}}, {"hang": {"afterBodyBytes": 3}}"#,
            r#"{"trickle": {"bytes": 1, "everySeconds": 0.5}}"#,
            r#"{"all": [{"hang": {}}, {"all": [{"reset": {}}]}]}]"#,
        ];
        let effects: Vec<Value> = from_str(&effects.join(", ")).unwrap();
        let kind = |effect: &Value| effect.as_object().unwrap().keys().next().unwrap().clone();
        let tested: BTreeSet<_> = effects.iter().map(kind).collect();
        let document = OpenApi::Administration.yaml();
        let (_, described) = document.split_once("\n    SingleEffect:\n").unwrap();
        let (described, _) = described.split_once("\n    Nothing:").unwrap();
        let inspector = include_str!("../http/admin/inspector/faults.js");
        for name in parse_name::<Effect>("?").unwrap_err().names() {
            assert!(tested.contains(*name), "{name} is not tested");
            let is_described = described.contains(&format!("\n        {name}:"));
            assert!(
                is_described || *name == "all",
                "{name} is not in admin.yaml"
            );
            let is_offered = inspector.contains(&format!("({{ {name}:"));
            assert!(is_offered || *name == "all", "{name} is not in faults.js");
        }
        for effect in effects {
            let fault = json!({"when": "always", "seed": 0, "effect": &effect});
            let read: Fault = from_value(fault.clone()).unwrap();
            assert_eq!(to_value(&read).unwrap(), fault);
            let kind = kind(&effect);
            assert!(read.name() == kind || kind == "all", "{kind}");
        }
    }

    /// Reads and checks a fault, and returns what is wrong with it.
    fn problem(text: &str) -> String {
        match from_str::<Fault>(text) {
            Ok(fault) => fault.problem().unwrap_or_default().to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// Faults, and what is wrong with them.
    const WRONG: &str = r#"
{} => a fault has an `effect`
{"effect": {"hang": {}}, "sequence": []} => not both
{"effect": null} => expected value
{"sequence": null} => invalid type: null
{"sequence": []} => needs at least one effect
{"sequence": [{"hang": {}}, {"all": []}]} => `all` needs at least one
{"effect": {"hung": {}}} => unknown variant `hung`, expected one of `all`
{"effect": {"reset": {"after": 1}}} => unknown field `after`
{"effect": {"emptyReply": {"after": 1}}} => unknown field `after`
{"effect": {"setHeader": {"value": "1"}}} => missing field `name`
{"effect": {"status": 99}} => from 200 to 599
{"effect": {"status": 600}} => from 200 to 599
{"effect": {"status": "busy"}} => expected u16
{"effect": {"delay": {"seconds": -1}}} => a number of seconds from 0 to
{"effect": {"trickle": {"bytes": 0, "everySeconds": 1}}} => `bytes` of a trickle is at least 1
{"effect": {"retryAfter": {"soon": 1}}} => expected `seconds` or `httpDate`
{"effect": {"setHeader": {"name": "Content-Length", "value": "5"}}} => use the effect `cut`
{"sequence": [{"all": [{"setHeader": {"name": "transfer-encoding"}}]}]} => cannot set Content-Length or Transfer
{"effect": {"setHeader": {"name": "a b"}}} => has no spaces
{"effect": {"setHeader": {"name": "a", "value": "\n"}}} => control characters
{"operation": "listpets", "effect": {"hang": {}}} => unknown variant `listpets`
{"method": "GET", "effect": {"hang": {}}} => an `operation`, or both a `method` and a `path`
{"method": "A B", "path": "/a", "effect": {"hang": {}}} => `method` of a fault is not a method
{"method": "get", "path": "/pets", "effect": {"hang": {}}} => in capitals, such as GET
{"method": "GET", "path": "pets", "effect": {"hang": {}}} => with a slash first
{"method": "GET", "path": "http://localhost/v1/pets", "effect": {"hang": {}}} => with a slash first
{"method": "GET", "path": "/pets?limit=5", "effect": {"hang": {}}} => without a query
{"method": "GET", "path": "/_mock/health", "effect": {"hang": {}}} => not below /_mock
{"effect": {"rateHeaders": {"wrong": {}}}} => `wrong` needs at least one of
{"on": "listPets", "effect": {"hang": {}}} => unknown field `on`
{"seed": -1, "effect": {"hang": {}}} => must be 0 or more
{"when": {"every": 2}, "effect": {"hang": {}}} => unknown variant `every`
{"when": {"first": 9223372036854775808}, "effect": {"hang": {}}} => expected i64
{"when": {"first": 0}, "effect": {"hang": {}}} => at least 1
{"when": {"nth": 0}, "effect": {"hang": {}}} => at least 1
{"when": {"chance": 0}, "effect": {"hang": {}}} => above 0
{"when": {"chance": 2}, "effect": {"hang": {}}} => at most 1
{"when": "named", "effect": {"hang": {}}} => needs a `name`
{"name": "", "when": "named", "effect": {"hang": {}}} => needs a `name`
"#;

    #[test]
    fn says_what_is_wrong_with_a_fault() {
        for line in WRONG.trim().lines() {
            let (text, wrong) = line.split_once(" => ").unwrap();
            let error = problem(text);
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
        let text = r#"{"sequence": [{"hang": {}}, {"emptyReply": {}}]}"#;
        let fault: Fault = from_str(text).unwrap();
        let effects: Vec<_> = (1..=3)
            .map(|hit| fault.effect(hit).map(ToString::to_string))
            .collect();
        let expected = [Some("hang".to_owned()), Some("emptyReply".to_owned()), None];
        assert_eq!(effects, expected);
    }

    #[test]
    fn only_a_status_prevents_the_processing_of_a_request() {
        let fault: Fault = from_str(r#"{"effect": {"hang": {}}}"#).unwrap();
        assert!(fault.is_processed(&Effect::EmptyReply {}));
        let both = Effect::All(vec![Effect::EmptyReply {}, Effect::Status(503)]);
        assert!(!fault.is_processed(&both));
        let told = Fault {
            processed: Some(false),
            ..fault
        };
        assert!(!told.is_processed(&Effect::EmptyReply {}));
    }

    #[test]
    fn every_condition_must_hold() {
        let list = Some(Operation::ListPets);
        let request = RequestView::new(list, &Method::GET, "/v1/pets", Some("k"), None);
        let strange = RequestView::new(None, &Method::PUT, "/v1/nowhere", None, None);
        for (conditions, fits, fits_strange) in [
            (json!({}), true, true),
            (json!({"operation": "listPets", "key": "k"}), true, false),
            (json!({"operation": "getPet"}), false, false),
            (json!({"key": "K"}), false, false),
            (json!({"method": "GET", "path": "/pets"}), true, false),
            (json!({"method": "PUT", "path": "/{x}"}), false, true),
        ] {
            let mut fault = conditions.clone();
            fault["effect"] = json!({"hang": {}});
            let fault: Fault = from_value(fault).unwrap();
            let target = fault.target().unwrap();
            assert_eq!(request.matches(&fault, &target), fits, "{conditions}");
            assert_eq!(
                strange.matches(&fault, &target),
                fits_strange,
                "{conditions}"
            );
        }
    }

    fn hits(when: Trigger) -> Vec<u64> {
        let mut random = Random::new(3);
        (1..=6)
            .filter(|number| when.hits(*number, &mut random))
            .collect()
    }

    #[test]
    fn counts_from_one() {
        assert_eq!(hits(Trigger::Always), [1, 2, 3, 4, 5, 6]);
        assert_eq!(hits(Trigger::First(2)), [1, 2]);
        assert_eq!(hits(Trigger::Nth(3)), [3]);
        assert_eq!(hits(Trigger::After(4)), [5, 6]);
    }

    #[test]
    fn chance_can_be_had_again() {
        assert_eq!(hits(Trigger::Probability(1.0)).len(), 6);
        assert_eq!(
            hits(Trigger::Probability(0.5)),
            hits(Trigger::Probability(0.5))
        );
        assert!((1..6).contains(&hits(Trigger::Probability(0.5)).len()));
    }
}
