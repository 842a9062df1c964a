//! A small service for tests of imports beside other programs. A test chooses its ids and pages,
//! and which requests and responses it loses.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::client::{Act, Seen, Wire, answer};

/// What the service does with a request that creates a pet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Creates the pet, and answers.
    Created,
    /// Creates the pet, and closes the connection without an answer.
    Unanswered,
    /// Closes the connection, and creates no pet.
    Lost,
    /// Answers 503, and creates no pet.
    Failed,
    /// Answers with this status and `Retry-After`, if it has a value, and creates no pet.
    Status(u16, &'static str),
    /// Closes the connection, and creates the pet after this number of further requests.
    Late(usize),
}

/// How the service lists its pets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paging {
    /// In the order of their creation, with a link to each next page.
    Linked,
    /// Without links.
    Unlinked,
    /// The pet that was created last comes first.
    Reversed,
    /// The list ends after this number of pets, as if there were no more.
    Cut(usize),
    /// The list ends after this number of pages, as if there were no more.
    Pages(usize),
    /// Like `Linked`, but the second page lacks its last pet.
    Incomplete,
    /// Each page has a link to another one, with the same pets.
    Repeated,
    /// Each page has a link to another one, without pets.
    Empty,
    /// Each page begins with the last pets of the one before.
    Overlapping,
}

/// The state of the service.
pub(super) struct State {
    /// The pets, in the order of their creation.
    pub(super) pets: Vec<Value>,
    /// The ids of the next pets; afterwards they rise by one.
    pub(super) ids: VecDeque<i64>,
    /// What happens to the next requests; afterwards all pets are created.
    pub(super) fates: VecDeque<Fate>,
    /// The name of a pet that the service always answers with 500, and does not create.
    pub(super) broken: Option<&'static str>,
    pub(super) paging: Paging,
    /// How many of the next requests the service does not answer, whatever they are.
    pub(super) away: usize,
    /// Requests that are processed later, and after how many other requests.
    late: Vec<(usize, Value)>,
}

impl State {
    fn create(&mut self, new: &Value) -> Value {
        let highest = self.pets.iter().filter_map(|pet| pet["id"].as_i64()).max();
        let id = self.ids.pop_front();
        let id = id.unwrap_or_else(|| highest.unwrap_or(0) + 1);
        let mut pet = json!({ "id": id });
        for (name, value) in new.as_object().unwrap() {
            pet[name] = value.clone();
        }
        self.pets.push(pet.clone());
        pet
    }

    fn process_late(&mut self) {
        let late = std::mem::take(&mut self.late);
        for (after, new) in late {
            match after.checked_sub(1) {
                Some(after) => self.late.push((after, new)),
                None => drop(self.create(&new)),
            }
        }
    }

    fn list(&self, target: &str, base: &str) -> Act {
        let number = |name: &str| -> Option<usize> {
            let (_, rest) = target.split_once(&format!("{name}="))?;
            rest.split('&').next()?.parse().ok()
        };
        let (limit, from) = (number("limit").unwrap_or(20), number("from").unwrap_or(0));
        let mut pets = self.pets.clone();
        let mut next = from + limit;
        match self.paging {
            Paging::Linked | Paging::Unlinked | Paging::Incomplete | Paging::Repeated => {}
            Paging::Reversed => pets.reverse(),
            Paging::Cut(end) => pets.truncate(end),
            Paging::Pages(count) => pets.truncate(count * limit),
            Paging::Empty => pets.clear(),
            Paging::Overlapping => next -= limit / 2,
        }
        let is_endless = matches!(self.paging, Paging::Repeated | Paging::Empty);
        let start = if is_endless { 0 } else { from.min(pets.len()) };
        let end = pets.len().min(start + limit);
        let is_incomplete = self.paging == Paging::Incomplete && from == limit;
        let shown = &pets[start..end - usize::from(is_incomplete)];
        let page = serde_json::to_vec(shown).unwrap();
        let has_more = is_endless || end < pets.len();
        let link = format!("<{base}/pets?limit={limit}&from={next}>; rel=\"next\"");
        let headers: &[(&str, &str)] = &[("Link", &link)];
        let has_link = has_more && self.paging != Paging::Unlinked;
        answer(200, if has_link { headers } else { &[] }, page)
    }

    fn answer(&mut self, seen: &Seen) -> Act {
        self.process_late();
        if self.away > 0 && self.fates.is_empty() {
            self.away -= 1;
            return Act::Cut(Vec::new());
        }
        let base = format!("http://{}/v1", seen.header("host").unwrap());
        if seen.line.starts_with("GET ") {
            return self.list(seen.line.split(' ').nth(1).unwrap(), &base);
        }
        let new: Value = serde_json::from_slice(&seen.body).unwrap();
        if self.broken.is_some_and(|name| new["name"] == name) {
            return answer(500, &[], "{}");
        }
        match self.fates.pop_front().unwrap_or(Fate::Created) {
            Fate::Created => {
                let pet = self.create(&new);
                answer(201, &[], serde_json::to_vec(&pet).unwrap())
            }
            Fate::Unanswered => {
                self.create(&new);
                Act::Cut(Vec::new())
            }
            Fate::Lost => Act::Cut(Vec::new()),
            Fate::Failed => answer(503, &[], "{}"),
            Fate::Status(status, "") => answer(status, &[], "{}"),
            Fate::Status(status, wait) => answer(status, &[("Retry-After", wait)], "{}"),
            Fate::Late(after) => {
                self.late.push((after, new));
                Act::Cut(Vec::new())
            }
        }
    }
}

/// The service.
pub(super) struct Shop {
    wire: Wire,
    state: Arc<Mutex<State>>,
}

impl Shop {
    /// Starts a service without pets, whose ids rise.
    pub(super) fn start() -> Self {
        let state = State {
            pets: Vec::new(),
            ids: VecDeque::new(),
            fates: VecDeque::new(),
            broken: None,
            paging: Paging::Linked,
            away: 0,
            late: Vec::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let wire = Wire::reading(move |seen| shared.lock().unwrap().answer(seen));
        Self { wire, state }
    }

    pub(super) fn url(&self) -> String {
        self.wire.base()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Creates pets with these names, for another program.
    pub(super) fn add(&self, names: &[impl AsRef<str>]) {
        let mut state = self.state();
        for name in names {
            state.create(&json!({ "name": name.as_ref(), "categoryId": 7 }));
        }
    }
}
