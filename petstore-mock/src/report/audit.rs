//! The rules at work: each exchange is judged as it ends, and what is found is kept until it is
//! forgotten on demand, whatever is reset meanwhile.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use super::{
    client::Client,
    finding::ReportedClient,
    observed::ObservedExchange,
    rule::Severities,
    rules::Judgement,
    store::FindingStore,
    value::{Report, ScopeTally},
};
use crate::exchange::{InFlight, KeyLabel, Moment};

/// How many clients are remembered, and how many scopes are told apart.
const MAX_CLIENTS: usize = 1_024;
const MAX_SCOPES: usize = 4_096;
/// The length of a scope's or a client's name, in bytes.
const MAX_NAME: usize = 200;

const DEFAULT_SCOPE: &str = "default";
const OTHER_SCOPES: &str = "other scopes";

/// Who sent a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender<'a> {
    /// The header `X-Mock-Scope`.
    pub(crate) scope: Option<&'a [u8]>,
    pub(crate) key: Option<&'a Arc<KeyLabel>>,
    /// Differs where the credentials do, of requests without a valid key.
    pub(crate) credentials: u64,
    pub(crate) has_credentials: bool,
    pub(crate) user_agent: Option<&'a [u8]>,
}

/// The clients, what is remembered of each, and all findings.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    clients: HashMap<u64, Client>,
    /// The scopes that are open in this process, the innermost last.
    open_scopes: Vec<(u64, Arc<str>)>,
    opened_scopes: u64,
    scopes: Vec<ScopeTally>,
    scope_places: HashMap<Arc<str>, usize>,
    found: FindingStore,
    requests: u64,
}

impl Audit {
    pub(crate) fn new(severities: Severities) -> Self {
        Self { found: FindingStore::new(severities), ..Self::default() }
    }

    /// Opens a scope for the requests that name none; returns its number.
    pub(crate) fn open_scope(&mut self, name: &str) -> u64 {
        self.opened_scopes += 1;
        self.open_scopes.push((self.opened_scopes, shortened(name).into()));
        self.opened_scopes
    }

    pub(crate) fn close_scope(&mut self, number: u64) {
        self.open_scopes.retain(|(other, _)| *other != number);
    }

    /// Records the arrival of a request; returns who sent it, and what else is in flight.
    pub(crate) fn arrived(
        &mut self,
        sender: &Sender<'_>,
        arrived: &Moment,
        (opened, nth): (&Moment, u64),
    ) -> InFlight {
        let named = sender.scope.map(String::from_utf8_lossy);
        let made = || sender.key.filter(|key| key.is_made_by_test()).map(|key| key.name());
        let scope = match (&named, self.open_scopes.last()) {
            (Some(name), _) => shortened(name).into(),
            (None, Some((_, name))) => Arc::clone(name),
            (None, None) => made().as_deref().unwrap_or(DEFAULT_SCOPE).into(),
        };
        let mut hasher = DefaultHasher::new();
        scope.hash(&mut hasher);
        sender.key.map(|key| key.number()).hash(&mut hasher);
        (sender.credentials, sender.user_agent).hash(&mut hasher);
        let id = hasher.finish();
        if !self.clients.contains_key(&id) {
            self.make_room();
            let place = self.place_of_scope(&scope);
            let name = Arc::clone(&self.scopes[place].name);
            self.clients.insert(id, Client::new(reported(sender), name, place));
        }
        let client = self.clients.entry(id).or_default();
        let (width, is_parallel) = client.arrived(arrived, opened, nth);
        InFlight { client: id, width, is_parallel }
    }

    /// Judges an exchange that ended. A `boundary` is the number of resets, changes of faults and the
    /// like so far: what a client did before the last one is not held against it.
    pub(crate) fn ended(&mut self, id: u64, exchange: &ObservedExchange, boundary: u64) {
        self.requests += 1;
        let Some(client) = self.clients.get_mut(&id) else { return };
        if let Some(scope) = self.scopes.get_mut(client.scope_place) {
            scope.requests += 1;
        }
        let was_open = client.open_evidence.len();
        for judgement in client.judge(exchange, boundary) {
            match judgement {
                Judgement::Offence(offence) => self.found.add(id, client, exchange, offence),
                Judgement::Withdrawn { rule, began } => self.found.withdraw(id, rule, began),
            }
        }
        for (rule, began, left) in client.open_evidence.iter_mut().take(was_open) {
            self.found.show_after(id, *rule, *began, exchange);
            *left -= 1;
        }
        client.open_evidence.retain(|(_, _, left)| *left > 0);
        client.ended(exchange);
    }

    /// Returns the report; `mask` takes the keys out of a text.
    pub(crate) fn report(&self, mask: impl Fn(&str) -> String) -> Report {
        let scopes = self
            .scopes
            .iter()
            .map(|scope| ScopeTally { name: mask(&scope.name).into(), requests: scope.requests });
        self.found.report(self.requests, scopes.collect(), mask)
    }

    /// Forgets all findings, and what was remembered of the clients.
    pub(crate) fn forget(&mut self) {
        self.found.forget();
        self.requests = 0;
        for scope in &mut self.scopes {
            scope.requests = 0;
        }
        self.clients.values_mut().for_each(Client::forget);
    }

    fn place_of_scope(&mut self, name: &Arc<str>) -> usize {
        let is_full = self.scopes.len() >= MAX_SCOPES;
        let name = if is_full { &Arc::from(OTHER_SCOPES) } else { name };
        if let Some(place) = self.scope_places.get(name) {
            return *place;
        }
        self.scopes.push(ScopeTally { name: Arc::clone(name), requests: 0 });
        self.scope_places.insert(Arc::clone(name), self.scopes.len() - 1);
        self.scopes.len() - 1
    }

    /// Forgets the client that was seen least recently, if there are too many.
    fn make_room(&mut self) {
        if self.clients.len() < MAX_CLIENTS {
            return;
        }
        let idle = self.clients.iter().filter(|(_, client)| client.is_idle());
        let oldest = idle.min_by_key(|(_, client)| client.last_seen()).map(|(id, _)| *id);
        if let Some(id) = oldest {
            self.clients.remove(&id);
        }
    }
}

fn reported(sender: &Sender<'_>) -> ReportedClient {
    let key = match sender.key {
        Some(key) => key.name(),
        None if sender.has_credentials => "an unknown key".to_owned(),
        None => "no key".to_owned(),
    };
    let agent = sender.user_agent.map(String::from_utf8_lossy);
    let user_agent = agent.map(|it| shortened(it.trim()).to_owned()).filter(|it| !it.is_empty());
    ReportedClient { key, plan: sender.key.map(|key| key.plan()), user_agent }
}

fn shortened(name: &str) -> &str {
    let end = name.char_indices().map(|(at, one)| at + one.len_utf8());
    &name[..end.take_while(|end| *end <= MAX_NAME).last().unwrap_or(0)]
}
