//! A key in another scheme than `Bearer`.

use super::{Rule, Sent};
use crate::{
    exchange::KeyFlaw,
    report::finding::{About, Evidence, Finding, Severity},
};

static ABOUT: About = About {
    rule: "key-scheme",
    title: "credentials that are no bearer token",
    severity: Severity::Warning,
    paragraph: "The API key is sent as Authorization: Bearer KEY (specification, section 5). With \
                another scheme, or with none, the request is answered 401 whatever the key is.",
};

/// Has nothing to remember.
#[derive(Debug, Default)]
pub(super) struct KeyScheme;

impl Rule for KeyScheme {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn ended(&mut self, Sent { record, .. }: Sent<'_>, finding: &mut Finding) {
        if record.flaw == Some(KeyFlaw::OtherScheme) {
            finding.add(|| Evidence {
                requests: vec![record.number],
                at: record.arrived.at,
                by: None,
                text: "the Authorization header does not begin with Bearer".to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::Client;
    use crate::exchange::KeyFlaw;

    #[test]
    fn each_one_is_found() {
        let mut client = Client::of("key-scheme");
        client.ok();
        client.flaw = Some(KeyFlaw::OtherScheme);
        client.answer(401, &[]);
        assert_eq!(client.count(), 1);
    }
}
