//! Judges each exchange at its end, and keeps the findings until they are cleared explicitly.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use super::{
    breach::Ruling,
    client::Client,
    facts::Facts,
    finding::{NO_KEY, Report, ReportedClient, UNKNOWN_KEY},
    findings::Findings,
    rule::Severities,
    rules::{Ban, Strikes},
};
use crate::exchange::{Moment, Record, Sender};

/// The maximum number of clients, keys with early requests, and scopes.
const MAX_CLIENTS: usize = 1_024;
const MAX_KEYS: usize = 1_024;
const MAX_SCOPES: usize = 4_096;
/// The maximum number of requests that the rules remember, of all clients together; about 3 MB.
const MAX_REMEMBERED: usize = 8_192;
/// The maximum length of a scope's or client's name, in bytes.
const MAX_NAME: usize = 200;

const DEFAULT_SCOPE: &str = "default";
const OTHER_SCOPES: &str = "other scopes";

/// The clients with their state, and all findings.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    clients: BTreeMap<u64, Client>,
    /// The number of requests that the clients remember.
    remembered: usize,
    /// The early requests, by the number of the key.
    strikes: BTreeMap<u32, Strikes>,
    /// The open connections.
    connections: BTreeSet<u64>,
    /// The open scopes of this process, the innermost last.
    open_scopes: Vec<Arc<str>>,
    /// The scopes with their numbers of requests, in order of their first requests.
    scopes: Vec<(Arc<str>, u64)>,
    requests: u64,
    findings: Findings,
    /// Empty between exchanges. Kept to reuse its allocations.
    ruling: Ruling,
}

impl Audit {
    pub(crate) fn new(severities: Severities) -> Self {
        Self {
            findings: Findings::new(severities),
            ..Self::default()
        }
    }

    /// Opens a scope for requests that name none. Returns the name, with which it is closed.
    pub(crate) fn open_scope(&mut self, name: &str) -> Arc<str> {
        let scope: Arc<str> = shortened(name).into();
        self.open_scopes.push(Arc::clone(&scope));
        scope
    }

    pub(crate) fn close_scope(&mut self, scope: &Arc<str>) {
        self.open_scopes.retain(|open| !Arc::ptr_eq(open, scope));
    }

    /// Records that a connection was opened.
    pub(crate) fn connected(&mut self, connection: u64) {
        self.connections.insert(connection);
    }

    /// Records that a connection was closed.
    pub(crate) fn disconnected(&mut self, connection: u64) {
        self.connections.remove(&connection);
    }

    /// Records the arrival of a request. Returns its client.
    pub(crate) fn arrived(&mut self, record: &Record) -> Sender {
        let scope = scope_of(record, self.open_scopes.last());
        let id = id_of_client(record, &scope);
        let is_open = |connection| self.connections.contains(&connection);
        let (may_be_several, other_connection) = if let Some(client) = self.clients.get_mut(&id) {
            client.arrived(record, is_open)
        } else {
            let scope = scope.into_owned();
            let place = place_of_scope(&mut self.scopes, &scope);
            let mut client = Client::new(reported(record), place);
            let seen = client.arrived(record, is_open);
            while self.clients.len() >= MAX_CLIENTS && self.drop_idle_client() {}
            self.clients.insert(id, client);
            seen
        };
        Sender {
            client: id,
            may_be_several,
            other_connection,
        }
    }

    pub(crate) fn is_open(&self, connection: u64) -> bool {
        self.connections.contains(&connection)
    }

    /// Records that the client of a request had another connection when it arrived.
    pub(crate) fn had_two_connections(&mut self, record: &Record) {
        if let Some(client) = self.clients.get_mut(&record.sender.client) {
            client.had_two_connections(record.arrived);
        }
    }

    /// Judges a completed exchange. `boundary` is the number of boundaries so far. Requests before
    /// the last boundary do not count against a client any more.
    pub(crate) fn ended(&mut self, record: &Record, mut facts: Facts, boundary: u64) {
        self.requests += 1;
        let id = record.sender.client;
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let (scope, requests) = &mut self.scopes[client.scope()];
        *requests += 1;
        let remembered = client.remembered();
        let found = &mut self.ruling;
        client.pass_boundary(boundary, found);
        self.findings.add(id, client, scope, found);
        if facts.is_error() || client.compares_requests() {
            facts.identify(record);
        }
        let facts = Arc::new(facts);
        let ban = caused_ban(&mut self.strikes, record, &facts);
        client.ended(record, &facts, ban.as_ref(), found);
        self.findings.show_after(id, &facts);
        self.findings.add(id, client, scope, found);
        client.remember(facts);
        self.remembered = self.remembered - remembered + client.remembered();
        while self.remembered > MAX_REMEMBERED && self.drop_idle_client() {}
    }

    /// Returns the report. A series of retries that is still open is judged as if it had ended.
    /// `mask` masks the keys in a text.
    pub(crate) fn report(&self, mask: impl Fn(&str) -> String) -> Report {
        let mut findings = self.findings.clone();
        for (id, client) in &self.clients {
            let (scope, _) = &self.scopes[client.scope()];
            findings.add(*id, client, scope, &mut client.open_breaches());
        }
        let masked = |(name, requests): &(Arc<str>, u64)| (mask(name).into(), *requests);
        Report {
            requests: self.requests,
            scopes: self.scopes.iter().map(masked).collect(),
            findings: findings.list(&mask),
            severities: findings.severities().clone(),
            unlisted: findings.unlisted(),
        }
    }

    /// Returns how long until all open series of retries have ended that would break a rule.
    pub(crate) fn undecided(&self, now: &Moment, boundary: u64) -> Option<Duration> {
        let clients = self.clients.values();
        clients
            .filter_map(|client| client.undecided(now, boundary))
            .max()
    }

    /// Clears all findings and the state of the clients.
    pub(crate) fn forget(&mut self) {
        self.findings.clear();
        self.requests = 0;
        for (_, requests) in &mut self.scopes {
            *requests = 0;
        }
        self.clients.values_mut().for_each(Client::forget);
        self.remembered = 0;
        self.strikes.clear();
    }

    /// Drops the client that was idle for the longest time. First judges its open series. Returns
    /// whether there was an idle client.
    fn drop_idle_client(&mut self) -> bool {
        let idle = self.clients.iter().filter(|(_, client)| client.is_idle());
        let oldest = idle.min_by_key(|(_, client)| client.last_arrival());
        let Some(id) = oldest.map(|(id, _)| *id) else {
            return false;
        };
        if let Some(client) = self.clients.remove(&id) {
            let (scope, _) = &self.scopes[client.scope()];
            self.findings
                .add(id, &client, scope, &mut client.open_breaches());
            self.remembered -= client.remembered();
        }
        true
    }
}

/// Returns the scope of a request: the one that it names, the one that is open, or that of its key,
/// if a test made it.
fn scope_of<'a>(record: &'a Record, open: Option<&'a Arc<str>>) -> Cow<'a, str> {
    if let Some(name) = record.fields.get("x-mock-scope") {
        return shortened(&String::from_utf8_lossy(name)).to_owned().into();
    }
    if let Some(scope) = open {
        return Cow::Borrowed(scope);
    }
    match &record.arrival.key {
        Some(key) if key.is_made_by_test() => Cow::Owned(key.name()),
        _ => Cow::Borrowed(DEFAULT_SCOPE),
    }
}

/// Returns a number for the client of a request: its scope, its key or unknown credentials, and its
/// `User-Agent`.
fn id_of_client(record: &Record, scope: &str) -> u64 {
    let key = record.arrival.key.as_ref();
    let mut hasher = DefaultHasher::new();
    scope.hash(&mut hasher);
    hasher.write_u64(key.map_or(record.arrival.credentials, |key| key.number().into()));
    hasher.write(record.fields.get("user-agent").unwrap_or_default());
    hasher.finish()
}

/// Records a request that is early or refused, for its key. Returns the ban that it causes, if any.
fn caused_ban(
    strikes: &mut BTreeMap<u32, Strikes>,
    record: &Record,
    request: &Arc<Facts>,
) -> Option<Ban> {
    let key = record.arrival.key.as_ref()?.number();
    if !request.is_refused() && request.strikes() == 0 {
        return None;
    }
    if strikes.len() >= MAX_KEYS && !strikes.contains_key(&key) {
        strikes.pop_first();
    }
    strikes.entry(key).or_default().record(request)
}

/// Returns the index of a scope. Adds it if there is room.
fn place_of_scope(scopes: &mut Vec<(Arc<str>, u64)>, name: &str) -> usize {
    let name = if scopes.len() < MAX_SCOPES {
        name
    } else {
        OTHER_SCOPES
    };
    scopes
        .iter()
        .position(|(scope, _)| **scope == *name)
        .unwrap_or_else(|| {
            scopes.push((name.into(), 0));
            scopes.len() - 1
        })
}

fn reported(record: &Record) -> ReportedClient {
    let key = record.arrival.key.as_ref();
    let keyless = match record.fields.get("authorization") {
        Some(_) => UNKNOWN_KEY,
        None => NO_KEY,
    };
    let agent = record.fields.get("user-agent").map(String::from_utf8_lossy);
    ReportedClient {
        key: key.map_or_else(|| keyless.to_owned(), |key| key.name()),
        plan: key.map(|key| key.plan()),
        user_agent: agent
            .map(|it| shortened(it.trim()).to_owned())
            .filter(|it| !it.is_empty()),
    }
}

/// Truncates a name that is too long.
fn shortened(name: &str) -> &str {
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

#[cfg(test)]
impl Audit {
    /// Returns the number of clients, and of requests that their rules remember.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.clients.len(), self.remembered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_between_characters_and_a_scope_closes_itself() {
        let long = format!("a{}", "é".repeat(150));
        assert_eq!(shortened(&long), format!("a{}", "é".repeat(99)));
        let mut audit = Audit::new(Severities::default());
        let [outer, inner] = ["x", "x"].map(|name| audit.open_scope(name));
        audit.close_scope(&outer);
        assert_eq!(audit.open_scopes.len(), 1);
        assert!(Arc::ptr_eq(&audit.open_scopes[0], &inner));
    }
}
