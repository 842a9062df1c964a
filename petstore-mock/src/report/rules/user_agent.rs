//! No `User-Agent`.

use super::{Rule, Sent};
use crate::report::finding::{About, Evidence, Finding, Severity};

static ABOUT: About = About {
    rule: "user-agent",
    title: "no User-Agent",
    severity: Severity::Notice,
    paragraph: "A client should say what it is (RFC 9110, section 10.1.5): without a User-Agent, \
                whoever runs the service can't tell whom to write to before blocking a client that \
                does harm.",
};

/// Has nothing to remember.
#[derive(Debug, Default)]
pub(super) struct UserAgent;

impl Rule for UserAgent {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn ended(&mut self, Sent { record, .. }: Sent<'_>, finding: &mut Finding) {
        if record.fields.get("user-agent").is_none_or(|value| value.trim_ascii().is_empty()) {
            finding.add(|| Evidence {
                requests: vec![record.number],
                at: record.arrived.at,
                by: None,
                text: "sent without a User-Agent".to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::Client;

    #[test]
    fn who_does_not_say_what_it_is_is_noted() {
        let mut client = Client::of("user-agent");
        client.ok();
        assert_eq!(client.count(), 0);
        client.without("user-agent").ok();
        assert_eq!(client.count(), 1);
    }
}
