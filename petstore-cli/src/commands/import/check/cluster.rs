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
        let sent = self.sent(contents);
        for pet in &self.pets {
            self.rest.insert(pet.id);
        }
        if sent.len() > 1 {
            // Exact matches come first: a row without a status fits a pet with any status, and must
            // not take the pet of a row with that status.
            for (index, sent) in &sent {
                self.pair_content(*index, |pet| pet.content == *sent);
            }
        }
        for (index, sent) in &sent {
            self.pair_content(*index, |pet| is_equal(sent, &pet.content, shapes));
        }
        let is_perfect = self.pairs.len() == self.rows.len() && self.rest.is_empty();
        self.is_ambiguous = !is_perfect && self.shares_pets(&sent, shapes);
    }

    /// Returns what was sent for the rows, by the index of the content.
    fn sent(&self, contents: &[NewPet]) -> BTreeMap<usize, Content> {
        let mut sent = BTreeMap::new();
        for row in &self.rows {
            let index = row.content;
            sent.entry(index)
                .or_insert_with(|| content(&contents[index]));
        }
        sent
    }

    /// Returns whether a pet fits rows with different contents.
    fn shares_pets(&self, sent: &BTreeMap<usize, Content>, shapes: &HashSet<Vec<String>>) -> bool {
        for pet in &self.pets {
            let mut fitting = 0;
            for sent in sent.values() {
                if is_equal(sent, &pet.content, shapes) {
                    fitting += 1;
                }
            }
            if fitting > 1 {
                return true;
            }
        }
        false
    }

    /// Returns the pets that no row has.
    pub(super) fn take_rest(&mut self) -> Vec<Listed> {
        let mut rest = Vec::new();
        for pet in &mut self.pets {
            if !self.rest.contains(&pet.id) {
                continue;
            }
            let content = std::mem::take(&mut pet.content);
            rest.push(Listed {
                id: pet.id,
                content,
            });
        }
        rest
    }

    /// Records a pet that no row has, if it has what was sent for one of the rows. Fields that the
    /// service may have added do not count: the pet need not be the row's, but it may be.
    pub(super) fn add_elsewhere(&mut self, pet: &Listed, contents: &[NewPet]) {
        for sent in self.sent(contents).values() {
            if has_all(sent, &pet.content) {
                self.elsewhere.push(pet.id);
                return;
            }
        }
    }

    /// Pairs the rows that have this content with pets that fit. Each pet goes to the row whose
    /// window ends first.
    fn pair_content(&mut self, content: usize, fits: impl Fn(&Listed) -> bool) {
        let rows = self.unpaired(content);
        let mut rows = rows.into_iter().peekable();
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

    /// Returns the rows with this content and no pet.
    fn unpaired(&self, content: usize) -> Vec<Unknown> {
        let mut rows = Vec::new();
        for row in &self.rows {
            if row.content == content && !self.pairs.contains_key(&row.row) {
                rows.push(*row);
            }
        }
        rows
    }

    /// Returns the pets that may belong to a row.
    pub(super) fn candidates(&self, row: &Unknown) -> Vec<i64> {
        let (start, end) = (row.window.first(), row.window.last());
        let first = self.pets.partition_point(|pet| pet.id < start);
        let mut all = BTreeSet::new();
        for pet in &self.pets[first..] {
            if pet.id > end {
                break;
            }
            all.insert(pet.id);
        }
        all.extend(&self.elsewhere);
        all.into_iter().take(MAX_NAMED).collect()
    }

    /// Returns whether a row without a matching pet may have been created all the same. Its pet may
    /// be outside of the window, or somebody may have changed it since.
    pub(super) fn may_be_other(&self, row: &Unknown) -> bool {
        self.is_ambiguous || !self.elsewhere.is_empty() || has_any(&self.rest, row.window)
    }
}

pub(super) fn has_any(ids: &BTreeSet<i64>, window: IdWindow) -> bool {
    let (first, last) = (window.first(), window.last());
    // The window between two neighbouring ids is empty, and `range` panics on an empty range.
    if first > last {
        return false;
    }
    let mut inside = ids.range(first..=last);
    inside.next().is_some()
}

/// Returns whether a pet has all fields that were sent.
fn has_all(sent: &Content, listed: &Content) -> bool {
    for (name, value) in sent {
        if listed.get(name) != Some(value) {
            return false;
        }
    }
    true
}

/// Returns whether a pet has the content that was sent. The service may set a status if none was
/// sent. It may add fields if it adds them to the import's other pets too.
pub(super) fn is_equal(sent: &Content, listed: &Content, shapes: &HashSet<Vec<String>>) -> bool {
    if !has_all(sent, listed) {
        return false;
    }
    for name in listed.keys() {
        let is_added = !sent.contains_key(name);
        if is_added && name != "status" {
            return shapes.contains(&names(listed));
        }
    }
    true
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
