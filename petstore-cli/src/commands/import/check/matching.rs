//! Decides which unknown rows were created, from a list of the pets.
//!
//! Names are not unique, others may create equal pets, and a list may be incomplete. So a row
//! counts as created, or as not created, only if that is certain. Otherwise it counts as uncertain.
//! The rules are:
//!
//! - The pet of a row has an id within the row's [`IdWindow`], and the same content.
//! - Rows with equal content and overlapping windows are interchangeable, so their number decides.
//! - A row is created if no more pets match than rows, and no stranger's pet is in the window or among those
//!   of the run that sent the row.
//! - A row is not created if the list is complete, no pet matches, and no pet without a row may be its own.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use petstore_client::{NewPet, Pet};

use super::super::journal::{Checked, IdWindow, RowState, State};
use super::super::rows::Row;
use super::cluster::{Cluster, Listed, Unknown, content, has_any, names};

/// Unknown rows with one name and category, and the pets that have both.
#[derive(Debug, Default)]
struct Group {
    /// The distinct contents of the rows.
    contents: Vec<NewPet>,
    rows: Vec<Unknown>,
    pets: Vec<Listed>,
}

/// What a list of the pets says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) checked: Checked,
    /// Rows that stay unknown because the list proves nothing.
    pub(crate) undecided: usize,
    /// Why the list proves nothing, if that is so.
    pub(crate) doubt: Option<String>,
}

/// Matches unknown rows with listed pets.
#[derive(Debug)]
pub(crate) struct Matching<'s> {
    state: &'s State,
    rows: &'s [Row],
    groups: HashMap<(String, i64), Group>,
    /// The pets of the import, with their rows, until they are listed.
    missing: HashMap<i64, usize>,
    known: HashSet<i64>,
    /// A pet of the import whose name or category differs from its row's.
    changed: Option<i64>,
    /// The sets of field names that the import's pets have in the list. The service may add fields
    /// to each pet.
    shapes: HashSet<Vec<String>>,
    /// Digests of the names and categories of all rows.
    digests: HashSet<u64>,
    /// The ids of other pets.
    strangers: BTreeSet<i64>,
    /// The highest id of a stranger's pet with the name and category of any row.
    highest_copy: Option<i64>,
}

impl<'s> Matching<'s> {
    pub(crate) fn new(rows: &'s [Row], state: &'s State) -> Self {
        let mut groups: HashMap<(String, i64), Group> = HashMap::new();
        let windows = state.windows();
        for row in state.unknown() {
            let pet = rows[row].pet();
            let key = (pet.name.clone(), pet.category_id);
            groups
                .entry(key)
                .or_default()
                .add_row(row, windows.of(row), windows.around(row), pet);
        }
        let mut missing = HashMap::new();
        for (row, state) in state.rows().iter().enumerate() {
            if let RowState::Created(id) = state {
                missing.insert(*id, row);
            }
        }
        let digest = |row: &Row| digest(&row.pet().name, row.pet().category_id);
        Self {
            state,
            rows,
            groups,
            known: missing.keys().copied().collect(),
            missing,
            changed: None,
            shapes: HashSet::new(),
            digests: rows.iter().map(digest).collect(),
            strangers: BTreeSet::new(),
            highest_copy: None,
        }
    }

    /// Records a listed pet.
    pub(crate) fn add(&mut self, pet: &Pet) {
        if self.known.contains(&pet.id) {
            self.add_known(pet);
            return;
        }
        let key = (pet.name.clone(), pet.category_id);
        if let Some(group) = self.groups.get_mut(&key) {
            let content = content(pet);
            group.pets.push(Listed {
                id: pet.id,
                content,
            });
            return;
        }
        self.strangers.insert(pet.id);
        if self.digests.contains(&digest(&pet.name, pet.category_id)) {
            self.highest_copy = self.highest_copy.max(Some(pet.id));
        }
    }

    fn add_known(&mut self, pet: &Pet) {
        let Some(row) = self.missing.remove(&pet.id) else {
            return;
        };
        let sent = self.rows[row].pet();
        if pet.name != sent.name || pet.category_id != sent.category_id {
            self.changed = self.changed.or(Some(pet.id));
        }
        self.shapes.insert(names(&content(pet)));
    }

    /// Returns the verdict. `gap` says why the list is incomplete, if it is.
    pub(crate) fn finish(mut self, gap: Option<String>) -> Verdict {
        let doubt = gap.or_else(|| self.doubt());
        let groups = std::mem::take(&mut self.groups);
        let mut clusters = Vec::new();
        for group in groups.into_values() {
            clusters.extend(self.clusters(group));
        }
        // If such a pet is newer than the import's first one, another program has created rows of
        // this file since the import began.
        let lowest = self.state.history().lowest();
        let is_copied = lowest.is_some() && self.highest_copy > lowest;
        let is_certain = doubt.is_none() && !is_copied;
        let mut verdict = Verdict::default();
        for cluster in &clusters {
            self.decide(cluster, is_certain, doubt.is_none(), &mut verdict);
        }
        verdict.checked.found.sort_unstable();
        verdict.checked.not_found.sort_unstable();
        verdict.checked.uncertain.sort_unstable();
        verdict.doubt =
            doubt.filter(|_| verdict.undecided > 0 || !verdict.checked.uncertain.is_empty());
        verdict
    }

    /// Returns why the list proves nothing, if the import's own pets show that.
    fn doubt(&self) -> Option<String> {
        if let Some(id) = self.changed {
            return Some(format!("pet {id} of this import has another content now"));
        }
        let id = self.missing.keys().min()?;
        Some(format!("pet {id} of this import is not in the list"))
    }

    /// Divides a group into clusters of rows with overlapping windows, and matches them.
    fn clusters(&mut self, mut group: Group) -> Vec<Cluster> {
        group.rows.sort_unstable_by_key(|row| row.window);
        group.pets.sort_unstable_by_key(|pet| pet.id);
        group.pets.dedup_by_key(|pet| pet.id);
        let mut pets = group.pets.into_iter().peekable();
        let mut outside = Vec::new();
        let mut clusters: Vec<Cluster> = Vec::new();
        for row in group.rows {
            match clusters.last_mut() {
                Some(last) if row.window.first() <= last.window.last() => {
                    last.window = last.window.join(row.window);
                    last.around = last.around.join(row.around);
                    last.rows.push(row);
                }
                _ => clusters.push(Cluster::new(row)),
            }
        }
        for cluster in &mut clusters {
            while let Some(pet) = pets.next_if(|pet| pet.id < cluster.window.first()) {
                outside.push(pet);
            }
            while let Some(pet) = pets.next_if(|pet| pet.id <= cluster.window.last()) {
                cluster.pets.push(pet);
            }
        }
        outside.extend(pets);
        for cluster in &mut clusters {
            cluster.pair(&group.contents, &self.shapes);
        }
        let mut rest = outside;
        for cluster in &mut clusters {
            rest.extend(cluster.take_rest());
        }
        let shows_rising = self.state.history().shows_rising();
        for pet in rest {
            self.add_stranger(pet.id);
            // Unless the ids certainly rise, the windows mean little, and this pet may belong to
            // any of the rows.
            if !shows_rising {
                for cluster in &mut clusters {
                    cluster.add_elsewhere(&pet, &group.contents);
                }
            }
        }
        clusters
    }

    /// Records a pet that looks like a row's but belongs to none.
    fn add_stranger(&mut self, id: i64) {
        self.strangers.insert(id);
        self.highest_copy = self.highest_copy.max(Some(id));
    }

    fn decide(
        &self,
        cluster: &Cluster,
        is_certain: bool,
        is_complete: bool,
        verdict: &mut Verdict,
    ) {
        let is_clean = !has_any(&self.strangers, cluster.around) && cluster.elsewhere.is_empty();
        for unknown in &cluster.rows {
            let row = unknown.row;
            let pet = cluster.pairs.get(&row);
            if let Some(pet) = pet
                && is_certain
                && is_clean
                && !cluster.is_ambiguous
            {
                verdict.checked.found.push((row, *pet));
                continue;
            }
            let candidates = cluster.candidates(unknown);
            let may_exist = pet.is_some() || cluster.may_be_other(unknown);
            if may_exist && !candidates.is_empty() {
                verdict.checked.uncertain.push((row, candidates));
            } else if is_complete {
                verdict.checked.not_found.push(row);
            } else {
                verdict.undecided += 1;
            }
        }
    }
}

impl Group {
    fn add_row(&mut self, row: usize, window: IdWindow, around: IdWindow, pet: &NewPet) {
        let content = self.contents.iter().position(|content| content == pet);
        let content = content.unwrap_or_else(|| {
            self.contents.push(pet.clone());
            self.contents.len() - 1
        });
        self.rows.push(Unknown {
            row,
            window,
            around,
            content,
        });
    }
}

fn digest(name: &str, category_id: i64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, category_id).hash(&mut hasher);
    hasher.finish()
}
