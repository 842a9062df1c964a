//! A key in a URL.

use super::{Rule, Sent};
use crate::{
    exchange::KeyFlaw,
    report::finding::{About, Evidence, Finding, Severity},
};

static ABOUT: About = About {
    rule: "key-in-url",
    title: "a key in the URL",
    severity: Severity::Violation,
    paragraph: "The API key belongs in the Authorization header (specification, section 5). URLs end \
                up in the logs of servers and proxies and in the histories of browsers, where no key \
                may be. Counted is every request whose path or query holds a key of this server, or \
                has a parameter with a name such as api_key.",
};

/// Has nothing to remember.
#[derive(Debug, Default)]
pub(super) struct KeyInUrl;

impl Rule for KeyInUrl {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn ended(&mut self, Sent { record, .. }: Sent<'_>, finding: &mut Finding) {
        if record.flaw == Some(KeyFlaw::InUrl) {
            finding.add(|| Evidence {
                requests: vec![record.number],
                at: record.arrived.at,
                by: None,
                text: format!("{} had a key in its URL", record.name()),
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
        let mut client = Client::of("key-in-url");
        client.ok();
        client.flaw = Some(KeyFlaw::OtherScheme);
        client.ok();
        client.flaw = Some(KeyFlaw::InUrl);
        client.ok();
        assert_eq!(client.finding().evidence()[0].requests(), [3]);
        assert_eq!(client.count(), 1);
    }
}
