//! The public part of a key: enough to identify it, and too little to use it.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::plan::Plan;

/// Shorter keys are not shown at all.
const LONG_ENOUGH: usize = 16;

/// The label of a key: its number, its plan and, if it is long, its last characters.
///
/// A named key shows its name ([`Builder::named_key`](crate::Builder::named_key)). The four default
/// keys are public, and shown in full. Other keys show their last four characters if they have at
/// least 16, and none otherwise.
///
/// ```
/// # use petstore_mock::{MockServer, Plan, StartError};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = MockServer::builder().key("sk-0123456789abcdef", Plan::Free).start().await?;
/// let client = reqwest::Client::new();
/// client.get(format!("{}/pets", server.url())).bearer_auth("sk-0123456789abcdef").send().await?;
/// let label = server.requests(..)[0].key.as_ref().map(ToString::to_string);
/// assert_eq!(label.as_deref(), Some("#1 …cdef (free)"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyLabel {
    number: u32,
    plan: Plan,
    shown: Box<str>,
    senders: u32,
}

impl KeyLabel {
    /// Labels the `number`th key, which is ASCII.
    pub(crate) fn new(number: u32, plan: Plan, key: &str, name: Option<&str>) -> Self {
        let shown = match name {
            Some(name) => name.to_owned(),
            None if key.len() >= LONG_ENOUGH => format!("…{}", &key[key.len() - 4..]),
            None => String::new(),
        };
        Self {
            number,
            plan,
            shown: shown.into(),
            senders: 1,
        }
    }

    /// Returns the name of the key, or its number if it has none.
    pub(crate) fn name(&self) -> String {
        match &*self.shown {
            "" => format!("#{}", self.number),
            end if end.starts_with('…') => format!("#{} {end}", self.number),
            name => name.to_owned(),
        }
    }

    /// Returns the label with another plan.
    pub(crate) fn with_plan(&self, plan: Plan) -> Self {
        Self {
            plan,
            ..self.clone()
        }
    }

    /// Returns the label with another number of senders, at least 1.
    pub(crate) fn with_senders(&self, senders: u32) -> Self {
        Self {
            senders: senders.max(1),
            ..self.clone()
        }
    }

    /// Returns the most requests of the key that may be under way at once, as declared.
    pub(crate) const fn senders(&self) -> u32 {
        self.senders
    }

    /// Returns the number of the key, from 1.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the plan of the key.
    #[must_use]
    pub const fn plan(&self) -> Plan {
        self.plan
    }
}

impl fmt::Display for KeyLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.shown.is_empty() { "" } else { " " };
        write!(f, "#{}{space}{} ({})", self.number, self.shown, self.plan)
    }
}

impl Serialize for KeyLabel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(key: &str) -> String {
        let name = (key == "pro-key").then_some(key);
        KeyLabel::new(7, Plan::Pro, key, name).to_string()
    }

    #[test]
    fn shows_the_end_of_a_long_key_and_nothing_of_a_short_one() {
        assert_eq!(label("0123456789abcdef"), "#7 …cdef (pro)");
        assert_eq!(label("0123456789abcde"), "#7 (pro)");
        assert_eq!(label("x"), "#7 (pro)");
        assert_eq!(label("pro-key"), "#7 pro-key (pro)");
    }
}
