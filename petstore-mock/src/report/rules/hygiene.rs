//! `key-in-url`, `key-scheme`, `deprecated`, `keep-alive` and `user-agent`: what can be seen in single
//! requests.

use std::time::Duration;

use super::{Judgement, Offence};
use crate::{
    exchange::{KeyFlaw, Moment},
    operation::{Operation, REMOVAL},
    report::{
        finding::{EvidenceRequest, Role},
        observed::ObservedExchange,
        rule::Rule,
    },
};

/// How many requests in a row, each on a new connection, are noted.
const NEW_CONNECTIONS: usize = 10;
/// A client that sends less often than this may let a connection go.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// How many parameters that hold keys are told apart.
const MAX_PARAMETERS: usize = 16;

/// What was noted of one client.
#[derive(Debug, Default)]
pub(super) struct Hygiene {
    /// The parameters in which keys were found, with the request that was first.
    parameters: Vec<(Box<str>, u64)>,
    new_connections: Vec<EvidenceRequest>,
    last_end: Option<Moment>,
    /// With which request each of these was noted first.
    keep_alive: Option<u64>,
    deprecated: Option<u64>,
    user_agent: Option<u64>,
    key_scheme: Option<u64>,
}

impl Hygiene {
    pub(super) fn judge(&mut self, exchange: &ObservedExchange, found: &mut Vec<Judgement>) {
        match &exchange.flaw {
            Some(KeyFlaw::InUrl(parameter)) => self.judge_url(exchange, parameter, found),
            Some(KeyFlaw::OtherScheme) if exchange.answer() == Some(401) => {
                let text = || "a valid key was sent otherwise than as a bearer token".to_owned();
                note(Rule::KeyScheme, &mut self.key_scheme, exchange, text, found);
            }
            _ => {}
        }
        if exchange.operation == Some(Operation::GetPet) {
            let text = || days_left(REMOVAL.saturating_sub(exchange.arrived.at));
            note(Rule::Deprecated, &mut self.deprecated, exchange, text, found);
        }
        if !exchange.has_user_agent {
            let text = || "sent without a User-Agent".to_owned();
            note(Rule::UserAgent, &mut self.user_agent, exchange, text, found);
        }
        self.judge_connection(exchange, found);
    }

    fn judge_url(
        &mut self,
        exchange: &ObservedExchange,
        parameter: &str,
        found: &mut Vec<Judgement>,
    ) {
        let known = self.parameters.iter().find(|(name, _)| **name == *parameter);
        let (began, goes_on) = match known {
            Some((_, first)) => (*first, true),
            None if self.parameters.len() == MAX_PARAMETERS => (self.parameters[0].1, true),
            None => {
                self.parameters.push((parameter.into(), exchange.number));
                (exchange.number, false)
            }
        };
        let text = match parameter {
            "" => "a segment of the path holds a key".to_owned(),
            name => format!("the query parameter `{name}` holds a key"),
        };
        let offence = Offence::new(Rule::KeyInUrl, began, text);
        found.push(Judgement::Offence(Offence { goes_on, ..offence }));
    }

    fn judge_connection(&mut self, exchange: &ObservedExchange, found: &mut Vec<Judgement>) {
        let pause = self.last_end.map(|end| exchange.arrived.gap_since(&end));
        self.last_end = Some(exchange.ended);
        let has_no_choice = exchange.is_lost() || exchange.was_cut_off;
        let is_alone = exchange.width == 1 && !exchange.is_parallel;
        if exchange.nth > 1
            || !is_alone
            || has_no_choice
            || pause.is_some_and(|pause| pause > MAX_PAUSE)
        {
            self.new_connections.clear();
            return;
        }
        self.new_connections.push(exchange.as_evidence(Role::Offence));
        if self.new_connections.len() < NEW_CONNECTIONS {
            return;
        }
        let causes = std::mem::take(&mut self.new_connections);
        let goes_on = self.keep_alive.is_some();
        let began = *self.keep_alive.get_or_insert(exchange.number);
        let text = format!("{NEW_CONNECTIONS} requests in a row on {NEW_CONNECTIONS} connections");
        let offence = Offence::new(Rule::KeepAlive, began, text);
        found.push(Judgement::Offence(Offence { goes_on, causes, ..offence }));
    }
}

/// Reports a request, as part of what was found with the first one of its kind.
fn note(
    rule: Rule,
    first: &mut Option<u64>,
    exchange: &ObservedExchange,
    text: impl FnOnce() -> String,
    found: &mut Vec<Judgement>,
) {
    let goes_on = first.is_some();
    let began = *first.get_or_insert(exchange.number);
    let text = if goes_on { String::new() } else { text() };
    let offence = Offence::new(rule, began, text);
    found.push(Judgement::Offence(Offence { goes_on, ..offence }));
}

fn days_left(left: Duration) -> String {
    match left.as_secs().div_ceil(86_400) {
        0 => "the operation was removed".to_owned(),
        1 => "1 day is left".to_owned(),
        days => format!("{days} days are left"),
    }
}
