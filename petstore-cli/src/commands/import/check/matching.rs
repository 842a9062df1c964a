//! Decides which unknown rows were created, from a list of the pets.
//!
//! Names are not unique, others may create equal pets, and a list may be incomplete. So a row counts as
//! created or as not created only if that is certain, and as uncertain otherwise:
//!
//! - The pet of a row has an id within the row's [`IdWindow`], and the same content.
//! - Rows with equal content and overlapping windows are interchangeable, so their number decides.
//! - A row is created if no more pets match than rows, and no stranger's pet is in the window or among those
//!   of the run that sent the row.
//! - A row is not created if no pet matches in a list that is complete.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use petstore_client::{NewPet, Pet};
use serde_json::{Map, Value};

use super::super::journal::{Checked, IdWindow, RowState, State};
use super::super::rows::Row;

/// The most pets that are named for a row.
const MAX_NAMED: usize = 10;

/// The fields of a pet, except its id, as the service writes them.
type Content = Map<String, Value>;

/// An unknown row.
#[derive(Debug, Clone, Copy)]
struct Unknown {
    row: usize,
    window: IdWindow,
    /// The ids among which a stranger's pet makes its match uncertain.
    around: IdWindow,
    /// The index of its content.
    content: usize,
}

/// A listed pet with the name and category of an unknown row.
#[derive(Debug)]
struct Listed {
    id: i64,
    content: Content,
}

/// Unknown rows with one name and category, and the pets that have both.
#[derive(Debug, Default)]
struct Group {
    /// The different contents of the rows.
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
    /// Why it is none.
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
    /// The names of the fields of the import's pets: the service may add fields to each pet.
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
        // Somebody else creates the rows of this file too, since the import began.
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
            // A few ids rise by chance, so this one may belong to any of the rows.
            if !shows_rising {
                for cluster in &mut clusters {
                    cluster.add_elsewhere(&pet, &group.contents, &self.shapes);
                }
            }
        }
        clusters
    }

    /// Records a pet with the content of a row that is not a row's.
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

/// Rows with one name and category whose windows overlap, and the pets in these windows.
#[derive(Debug)]
struct Cluster {
    window: IdWindow,
    around: IdWindow,
    rows: Vec<Unknown>,
    pets: Vec<Listed>,
    /// The pet of each row that has one.
    pairs: BTreeMap<usize, i64>,
    /// The pets that no row has.
    rest: BTreeSet<i64>,
    /// Whether a pet may belong to rows with different contents.
    is_ambiguous: bool,
    /// Pets that no row has, and that may belong to the rows although their ids are outside of a window.
    elsewhere: Vec<i64>,
}

impl Cluster {
    fn new(row: Unknown) -> Self {
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

    /// Gives as many rows as possible a pet with their content.
    fn pair(&mut self, contents: &[NewPet], shapes: &HashSet<Vec<String>>) {
        let sent: Vec<Content> = contents.iter().map(content).collect();
        let used: BTreeSet<usize> = self.rows.iter().map(|row| row.content).collect();
        self.rest = self.pets.iter().map(|pet| pet.id).collect();
        if used.len() > 1 {
            // A row without a status may have any, but others have theirs for certain.
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
    fn take_rest(&mut self) -> Vec<Listed> {
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

    /// Records a pet that no row has, if one has its content.
    fn add_elsewhere(&mut self, pet: &Listed, contents: &[NewPet], shapes: &HashSet<Vec<String>>) {
        let used: BTreeSet<usize> = self.rows.iter().map(|row| row.content).collect();
        let mut sent = used.iter().map(|used| content(&contents[*used]));
        if sent.any(|sent| is_equal(&sent, &pet.content, shapes)) {
            self.elsewhere.push(pet.id);
        }
    }

    /// Pairs the rows of a content with pets that fit: each pet with the row whose window ends first.
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
    fn candidates(&self, row: &Unknown) -> Vec<i64> {
        let first = self.pets.partition_point(|pet| pet.id < row.window.first());
        let inside = self.pets[first..].iter().map(|pet| pet.id);
        let inside = inside.take_while(|id| *id <= row.window.last());
        let all: BTreeSet<_> = inside.chain(self.elsewhere.iter().copied()).collect();
        all.into_iter().take(MAX_NAMED).collect()
    }

    /// Returns whether a row without a pet may have been created all the same: as a pet elsewhere, or as
    /// one that somebody has changed since.
    fn may_be_other(&self, row: &Unknown) -> bool {
        self.is_ambiguous || !self.elsewhere.is_empty() || has_any(&self.rest, row.window)
    }
}

fn has_any(ids: &BTreeSet<i64>, window: IdWindow) -> bool {
    // The range of a window between two neighbours is empty, which `range` refuses.
    window.first() <= window.last() && ids.range(window.first()..=window.last()).next().is_some()
}

/// Returns whether a pet has the content that was sent. The service may set a status if none was sent, and
/// may add fields, if it adds them to the other pets of the import too.
fn is_equal(sent: &Content, listed: &Content, shapes: &HashSet<Vec<String>>) -> bool {
    let is_same = |(name, value): (&String, &Value)| listed.get(name) == Some(value);
    if !sent.iter().all(is_same) {
        return false;
    }
    let mut added = listed.keys().filter(|name| !sent.contains_key(*name));
    added.all(|name| name == "status") || shapes.contains(&names(listed))
}

/// Returns the fields of a pet, whatever they are, except its id: no field can be forgotten.
fn content(pet: &impl serde::Serialize) -> Content {
    match serde_json::to_value(pet) {
        Ok(Value::Object(mut fields)) => {
            fields.remove("id");
            fields
        }
        _ => Content::new(),
    }
}

fn names(content: &Content) -> Vec<String> {
    let mut names: Vec<_> = content.keys().cloned().collect();
    names.sort_unstable();
    names
}

fn digest(name: &str, category_id: i64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, category_id).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use petstore_client::PetStatus;
    use serde_json::json;

    use super::super::super::journal::{Record, Run};
    use super::super::super::rows::Place;
    use super::*;

    fn rows(names: &[&str]) -> Vec<Row> {
        let row = |name: &&str| Row::new(Place::Line(1), NewPet::new(*name, 7));
        names.iter().map(row).collect()
    }

    /// A journal whose rows were sent shortly after each other, with these ids in the responses.
    fn journal(ids: &[Option<i64>]) -> State {
        let mut state = State::default();
        state.apply(Record::Run(Run {
            pid: 7,
            started: SystemTime::UNIX_EPOCH,
            boot: None,
            base_url: String::new(),
            limit: Duration::from_secs(30),
            rows: ids.len(),
            files: Vec::new(),
            damaged: Vec::new(),
        }));
        for (row, id) in ids.iter().enumerate() {
            let (at, rows) = (0, vec![row]);
            state.apply(Record::Sent {
                at,
                rows: rows.clone(),
            });
            state.apply(match id {
                Some(id) => Record::Rows(RowState::Created(*id), rows),
                None => Record::Lost { at, rows },
            });
        }
        state
    }

    fn pet(id: i64, name: &str) -> Pet {
        NewPet::new(name, 7).into_pet(id)
    }

    /// Matches rows with listed pets. A service of ours lists the pets that the journal knows too.
    fn verdict(names: &[&str], ids: &[Option<i64>], pets: &[Pet]) -> Verdict {
        let (rows, state) = (rows(names), journal(ids));
        let mut matching = Matching::new(&rows, &state);
        for (name, id) in names.iter().zip(ids) {
            if let Some(id) = id {
                matching.add(&pet(*id, name));
            }
        }
        pets.iter().for_each(|pet| matching.add(pet));
        matching.finish(None)
    }

    fn found(pets: &[(usize, i64)]) -> Verdict {
        Verdict {
            checked: Checked {
                found: pets.to_vec(),
                ..Checked::default()
            },
            ..Verdict::default()
        }
    }

    fn not_found(rows: &[usize]) -> Verdict {
        Verdict {
            checked: Checked {
                not_found: rows.to_vec(),
                ..Checked::default()
            },
            ..Verdict::default()
        }
    }

    fn uncertain(rows: &[(usize, &[i64])]) -> Verdict {
        let uncertain = rows.iter().map(|(row, pets)| (*row, pets.to_vec()));
        Verdict {
            checked: Checked {
                uncertain: uncertain.collect(),
                ..Checked::default()
            },
            ..Verdict::default()
        }
    }

    #[test]
    fn a_pet_in_the_window_with_the_content_of_the_row_is_its_own() {
        let ids = [Some(5), None];
        assert_eq!(verdict(&["a", "b"], &ids, &[pet(6, "b")]), found(&[(1, 6)]));
        // The service had other pets before.
        let pets = [pet(2, "x"), pet(6, "b")];
        assert_eq!(verdict(&["a", "b"], &ids, &pets), found(&[(1, 6)]));
        assert_eq!(verdict(&["a", "b"], &ids, &[]), not_found(&[1]));
    }

    #[test]
    fn rows_with_equal_content_are_counted() {
        let (names, ids) = (["a", "b", "b", "b"], [Some(5), None, None, None]);
        let expected = Verdict {
            checked: Checked {
                found: vec![(1, 6), (2, 7)],
                not_found: vec![3],
                uncertain: vec![],
            },
            ..Verdict::default()
        };
        let pets = [pet(7, "b"), pet(6, "b"), pet(6, "b")];
        assert_eq!(verdict(&names, &ids, &pets), expected);
    }

    #[test]
    fn a_pet_of_a_stranger_in_the_window_makes_a_match_uncertain_and_no_other_row() {
        let (names, ids) = (["a", "b", "c"], [Some(5), None, None]);
        let expected = Verdict {
            checked: Checked {
                found: vec![],
                not_found: vec![2],
                uncertain: vec![(1, vec![6])],
            },
            ..Verdict::default()
        };
        assert_eq!(verdict(&names, &ids, &[pet(6, "b"), pet(9, "x")]), expected);
        // More pets than rows.
        let two = uncertain(&[(1, &[6, 7])]);
        let pets = [pet(6, "b"), pet(7, "b")];
        assert_eq!(verdict(&["a", "b"], &[Some(5), None], &pets), two);
        // The response to the first row was lost, so its window is open below.
        let first = verdict(&["b", "c"], &[None, Some(8)], &[pet(1, "x"), pet(7, "b")]);
        assert_eq!(first, uncertain(&[(0, &[7])]));
    }

    #[test]
    fn the_pets_of_a_second_import_of_the_same_rows_make_all_matches_uncertain() {
        let mut names: Vec<_> = vec!["a"; 8];
        names.extend(["b", "c"]);
        let mut ids: Vec<_> = (1..9).map(Some).collect();
        ids.extend([None, Some(10)]);
        let own = pet(9, "b");
        assert_eq!(
            verdict(&names, &ids, std::slice::from_ref(&own)),
            found(&[(8, 9)])
        );
        // Before the first row was sent, so this one was not made meanwhile.
        let pets = [own.clone(), pet(0, "c")];
        assert_eq!(verdict(&names, &ids, &pets), found(&[(8, 9)]));
        assert_eq!(
            verdict(&names, &ids, &[own, pet(12, "c")]),
            uncertain(&[(8, &[9])])
        );
    }

    #[test]
    fn ids_that_fall_leave_no_window() {
        let (names, ids) = (["a", "b", "c"], [Some(9), None, Some(7)]);
        assert_eq!(verdict(&names, &ids, &[pet(8, "b")]), found(&[(1, 8)]));
        assert_eq!(verdict(&names, &ids, &[pet(1, "b")]), found(&[(1, 1)]));
        let pets = [pet(8, "b"), pet(1, "x")];
        assert_eq!(verdict(&names, &ids, &pets), uncertain(&[(1, &[8])]));
    }

    #[test]
    fn while_few_ids_are_known_an_equal_pet_elsewhere_makes_a_row_uncertain() {
        let (names, ids) = (["a", "b"], [Some(5), None]);
        assert_eq!(
            verdict(&names, &ids, &[pet(3, "b")]),
            uncertain(&[(1, &[3])])
        );
        let names = ["a", "a", "a", "a", "a", "a", "a", "a", "b"];
        let mut ids: Vec<_> = (10..18).map(Some).collect();
        ids.push(None);
        assert_eq!(verdict(&names, &ids, &[pet(3, "b")]), not_found(&[8]));
    }

    #[test]
    fn a_pet_that_somebody_changed_keeps_its_row_from_being_sent_again() {
        let (names, ids) = (["a", "b"], [Some(5), None]);
        let sold = |mut pet: Pet| {
            pet.extra.insert("owner".to_owned(), json!("Ada"));
            pet
        };
        let pets = [sold(pet(6, "b"))];
        assert_eq!(verdict(&names, &ids, &pets), uncertain(&[(1, &[6])]));
    }

    #[test]
    fn fields_that_the_service_adds_to_each_pet_are_no_difference() {
        let rows = rows(&["a", "b"]);
        let state = journal(&[Some(5), None]);
        let tagged = |id, name: &str, field: &str| {
            let mut pet = NewPet::new(name, 7)
                .with_status(PetStatus::Available)
                .into_pet(id);
            pet.extra.insert(field.to_owned(), json!(id));
            pet
        };
        let verdict = |field| {
            let mut matching = Matching::new(&rows, &state);
            matching.add(&tagged(5, "a", "created"));
            matching.add(&tagged(6, "b", field));
            matching.finish(None)
        };
        assert_eq!(verdict("created"), found(&[(1, 6)]));
        assert_eq!(verdict("chip"), uncertain(&[(1, &[6])]));
    }

    #[test]
    fn a_row_without_a_status_gets_what_a_row_with_the_status_of_the_service_leaves() {
        let row = |pet| Row::new(Place::Line(1), pet);
        let sold = NewPet::new("a", 7).with_status(PetStatus::Sold);
        let rows = [NewPet::new("a", 7), sold, NewPet::new("a", 7)].map(row);
        let state = journal(&[None; 3]);
        let verdict = |pets: i64| {
            let mut matching = Matching::new(&rows, &state);
            let sold = NewPet::new("a", 7).with_status(PetStatus::Sold);
            (1..=pets).for_each(|id| matching.add(&sold.clone().into_pet(id)));
            matching.finish(None).checked
        };
        assert_eq!(verdict(3).found.len(), 3);
        // Which of the three does not exist is not known.
        assert_eq!(verdict(2).uncertain.len(), 3);
        assert_eq!(verdict(0).not_found.len(), 3);
    }

    #[test]
    fn each_field_of_a_pet_is_compared() {
        let sent = NewPet::new("a", 7)
            .with_status(PetStatus::Sold)
            .with_field("chip", 9);
        let listed = content(&sent);
        let none = HashSet::new();
        assert!(is_equal(&listed, &listed, &none));
        for name in listed.keys() {
            let mut other = listed.clone();
            other[name] = json!("another");
            assert!(!is_equal(&listed, &other, &none), "{name}");
            other.remove(name);
            assert!(!is_equal(&listed, &other, &none), "{name}");
        }
        let mut more = listed.clone();
        more.insert("owner".to_owned(), json!("Ada"));
        assert!(!is_equal(&listed, &more, &none));
    }

    #[test]
    fn a_list_that_lacks_a_pet_of_the_import_is_no_evidence() {
        let rows = rows(&["a", "b", "c"]);
        let state = journal(&[Some(5), None, None]);
        let listed = |pets: &[Pet]| {
            let mut matching = Matching::new(&rows, &state);
            pets.iter().for_each(|pet| matching.add(pet));
            matching.finish(None)
        };
        let verdict = listed(&[pet(6, "b")]);
        let expected = "pet 5 of this import is not in the list";
        assert_eq!(verdict.doubt.as_deref(), Some(expected));
        assert_eq!(verdict.checked.uncertain, [(1, vec![6])]);
        assert_eq!(
            (verdict.undecided, verdict.checked.not_found),
            (1, Vec::new())
        );
        // The service began anew with its ids.
        let verdict = listed(&[pet(5, "x"), pet(6, "b")]);
        let expected = "pet 5 of this import has another content now";
        assert_eq!(verdict.doubt.as_deref(), Some(expected));
    }
}
