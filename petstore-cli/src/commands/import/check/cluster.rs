//! A cluster: unknown rows with overlapping id windows, and the pets in these windows, which may
//! belong to them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashSet};

use petstore_client::NewPet;
use serde_json::{Map, Value};

use super::super::journal::IdWindow;

/// The maximum number of pets that are named for a row.
const MAX_NAMED: usize = 10;

/// The fields of a pet, except its id, as the service writes them.
pub(super) type Content = Map<String, Value>;

/// An unknown row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unknown {
    pub(super) row: usize,
    pub(super) window: IdWindow,
    /// If a stranger's pet has an id in this range, a match of the row is uncertain.
    pub(super) around: IdWindow,
    /// The index of its content.
    pub(super) content: usize,
}

/// A listed pet with the name and category of an unknown row.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) id: i64,
    pub(super) content: Content,
}

/// Rows with one name and category whose windows overlap, and the pets in these windows.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) window: IdWindow,
    pub(super) around: IdWindow,
    pub(super) rows: Vec<Unknown>,
    pub(super) pets: Vec<Listed>,
    /// The matching pet of each row that has one.
    pub(super) pairs: BTreeMap<usize, i64>,
    /// The pets that no row has.
    rest: BTreeSet<i64>,
    /// Whether a pet may belong to rows with different contents.
    pub(super) is_ambiguous: bool,
    /// Pets that no row has, outside of the windows. They may belong to the rows all the same.
    pub(super) elsewhere: Vec<i64>,
}

impl Cluster {
    pub(super) fn new(row: Unknown) -> Self {
        Self {
            window: row.window,
            around: row.around,
            rows: vec![row],
            pets: Vec::new(),
            pairs: BTreeMap::new(),
            rest: BTreeSet::new(),
            is_ambiguous: false,
            elsewhere: Vec::new(),
        }
    }

    /// Pairs as many rows as possible with a pet that has their content.
    pub(super) fn pair(&mut self, contents: &[NewPet], shapes: &HashSet<Vec<String>>) {
        let sent: Vec<Content> = contents.iter().map(content).collect();
        let used: BTreeSet<usize> = self.rows.iter().map(|row| row.content).collect();
        self.rest = self.pets.iter().map(|pet| pet.id).collect();
        if used.len() > 1 {
            // Exact matches come first: a row without a status fits a pet with any status, and must
            // not take the pet of a row with that status.
            for content in &used {
                self.pair_content(*content, |pet| pet.content == sent[*content]);
            }
        }
        for content in &used {
            self.pair_content(*content, |pet| {
                is_equal(&sent[*content], &pet.content, shapes)
            });
        }
        let is_shared = self.pets.iter().any(|pet| {
            let fits = |content: &&usize| is_equal(&sent[**content], &pet.content, shapes);
            used.iter().filter(fits).count() > 1
        });
        let is_perfect = self.pairs.len() == self.rows.len() && self.rest.is_empty();
        self.is_ambiguous = is_shared && !is_perfect;
    }

    /// Returns the pets that no row has.
    pub(super) fn take_rest(&mut self) -> Vec<Listed> {
        let is_rest = |pet: &&mut Listed| self.rest.contains(&pet.id);
        let mut rest = Vec::new();
        for pet in self.pets.iter_mut().filter(is_rest) {
            rest.push(Listed {
                id: pet.id,
                content: std::mem::take(&mut pet.content),
            });
        }
        rest
    }

    /// Records a pet that no row has, if it has what was sent for one of the rows. Fields that the
    /// service may have added do not count: the pet need not be the row's, but it may be.
    pub(super) fn add_elsewhere(&mut self, pet: &Listed, contents: &[NewPet]) {
        let used: BTreeSet<usize> = self.rows.iter().map(|row| row.content).collect();
        let mut sent = used.iter().map(|used| content(&contents[*used]));
        if sent.any(|sent| has_all(&sent, &pet.content)) {
            self.elsewhere.push(pet.id);
        }
    }

    /// Pairs the rows that have this content with pets that fit. Each pet goes to the row whose
    /// window ends first.
    fn pair_content(&mut self, content: usize, fits: impl Fn(&Listed) -> bool) {
        let is_open = |row: &&Unknown| row.content == content && !self.pairs.contains_key(&row.row);
        let mut rows = self.rows.iter().filter(is_open).peekable();
        let mut open = BinaryHeap::new();
        let mut pairs = Vec::new();
        for pet in &self.pets {
            if !self.rest.contains(&pet.id) || !fits(pet) {
                continue;
            }
            while let Some(row) = rows.next_if(|row| row.window.first() <= pet.id) {
                open.push(Reverse((row.window.last(), row.row)));
            }
            while let Some(Reverse((last, row))) = open.pop() {
                if last >= pet.id {
                    pairs.push((row, pet.id));
                    break;
                }
            }
        }
        for (row, id) in pairs {
            self.rest.remove(&id);
            self.pairs.insert(row, id);
        }
    }

    /// Returns the pets that may belong to a row.
    pub(super) fn candidates(&self, row: &Unknown) -> Vec<i64> {
        let first = self.pets.partition_point(|pet| pet.id < row.window.first());
        let inside = self.pets[first..].iter().map(|pet| pet.id);
        let inside = inside.take_while(|id| *id <= row.window.last());
        let all: BTreeSet<_> = inside.chain(self.elsewhere.iter().copied()).collect();
        all.into_iter().take(MAX_NAMED).collect()
    }

    /// Returns whether a row without a matching pet may have been created all the same. Its pet may
    /// be outside of the window, or somebody may have changed it since.
    pub(super) fn may_be_other(&self, row: &Unknown) -> bool {
        self.is_ambiguous || !self.elsewhere.is_empty() || has_any(&self.rest, row.window)
    }
}

pub(super) fn has_any(ids: &BTreeSet<i64>, window: IdWindow) -> bool {
    // The window between two neighbouring ids is empty, and `range` panics on an empty range.
    window.first() <= window.last() && ids.range(window.first()..=window.last()).next().is_some()
}

/// Returns whether a pet has all fields that were sent.
fn has_all(sent: &Content, listed: &Content) -> bool {
    let is_same = |(name, value): (&String, &Value)| listed.get(name) == Some(value);
    sent.iter().all(is_same)
}

/// Returns whether a pet has the content that was sent. The service may set a status if none was
/// sent. It may add fields if it adds them to the import's other pets too.
pub(super) fn is_equal(sent: &Content, listed: &Content, shapes: &HashSet<Vec<String>>) -> bool {
    if !has_all(sent, listed) {
        return false;
    }
    let mut added = listed.keys().filter(|name| !sent.contains_key(*name));
    added.all(|name| name == "status") || shapes.contains(&names(listed))
}

/// Returns all fields of a pet except its id. They come from the serialized pet, so that none can
/// be forgotten.
pub(super) fn content(pet: &impl serde::Serialize) -> Content {
    match serde_json::to_value(pet) {
        Ok(Value::Object(mut fields)) => {
            fields.remove("id");
            fields
        }
        _ => Content::new(),
    }
}

pub(super) fn names(content: &Content) -> Vec<String> {
    let mut names: Vec<_> = content.keys().cloned().collect();
    names.sort_unstable();
    names
}
