//! The deprecated operation.

use std::time::Duration;

use super::{Rule, Sent};
use crate::{
    operation::{Operation, REMOVAL},
    report::finding::{About, Evidence, Finding, Severity},
};

static ABOUT: About = About {
    rule: "deprecated",
    title: "the deprecated operation",
    severity: Severity::Notice,
    paragraph: "GET /pets/{petId} is deprecated and will be removed on 5 December 2030 \
                (specification, section 9). GET /pets with its status filter takes its place.",
};

/// Has nothing to remember.
#[derive(Debug, Default)]
pub(super) struct Deprecated;

impl Rule for Deprecated {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn ended(&mut self, Sent { record, .. }: Sent<'_>, finding: &mut Finding) {
        if record.operation != Some(Operation::GetPet) {
            return;
        }
        let at = record.arrived.at;
        let left = REMOVAL.saturating_sub(at);
        finding.add(|| Evidence {
            requests: vec![record.number],
            at,
            by: Some(left),
            text: left_as_text(left),
        });
    }
}

fn left_as_text(left: Duration) -> String {
    match left.as_secs().div_ceil(86_400) {
        0 => "the operation is gone".to_owned(),
        1 => "1 day is left".to_owned(),
        days => format!("{days} days are left"),
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::{super::kit::Client, Evidence};

    #[test]
    fn each_use_is_noted_with_the_days_that_are_left() {
        let mut client = Client::of("deprecated");
        client.ok();
        client.asks(Method::POST, "/v1/pets", "rex").ok();
        assert_eq!(client.count(), 0);
        client.asks(Method::GET, "/v1/pets/1", "").ok();
        client.wait(1_798.0 * 86_400.0);
        client.ok();
        client.wait(86_400.0);
        client.answer(410, &[]);
        let texts: Vec<_> = client.finding().evidence().iter().map(Evidence::text).collect();
        assert_eq!(texts, ["1799 days are left", "1 day is left", "the operation is gone"]);
    }

    #[test]
    fn all_are_counted_and_the_first_20_are_shown() {
        let mut client = Client::of("deprecated");
        client.asks(Method::GET, "/v1/pets/1", "");
        for _ in 0..1_000 {
            client.ok();
        }
        assert_eq!((client.count(), client.finding().evidence().len()), (1_000, 20));
    }
}
