//! `--unknown check`: an unknown row is sent again only if no pet like it exists that this import
//! has not accounted for.

use std::collections::{HashMap, HashSet};

use petstore_client::{Client, Error, ErrorKind, NewPet, Pet};
use tokio::time::{Instant, sleep_until};

use super::journal::Journal;
use super::records::{Record, State};
use super::rows::Row;
use crate::context::Context;
use crate::error::Result;
use crate::status::{Activity, Progress};
use crate::time::{count, duration, plural};

/// The size of a page.
const PAGE: u32 = 100;
/// The number of pets that the warning names.
const MAX_NAMED: usize = 20;

/// Looks for the pets of the unknown rows, and records what it found. The other rows may be sent
/// again. Returns why rows stay unknown, if the list of pets is not certainly complete. `taken` has
/// the pets of other inputs.
pub(super) async fn check(
    context: &Context,
    client: &Client,
    rows: &[Row],
    journal: &mut Journal,
    taken: &HashSet<i64>,
) -> Result<Option<String>> {
    let ui = context.ui();
    let quiet_at = journal.quiet_at();
    let rest = quiet_at.saturating_duration_since(Instant::now());
    if !rest.is_zero() {
        let rest = duration(rest);
        ui.note_now(&format!(
            "waiting {rest} before the check, until nothing can still arrive"
        ));
        let activity = Activity::new("rows may still arrive; the check begins");
        ui.set_activity(Some(activity.ends(quiet_at, None)));
        sleep_until(quiet_at).await;
        ui.set_activity(None);
    }
    let unknown = journal.state().totals().unknown;
    let unknown = plural(unknown, "unknown row", "unknown rows");
    ui.note_now(&format!("checking {unknown}: listing all pets"));
    let mut list = PetList::new(rows, journal.state(), taken);
    if !read(context, client, &mut list, PAGE).await? {
        // A service without links, or one that stops after some pages, ends each list with a full
        // page. A whole list does so at one of two sizes at most.
        list = PetList::new(rows, journal.state(), taken);
        if !read(context, client, &mut list, PAGE - 1).await? {
            let pets = count(list.seen.len());
            list.doubt(|| format!("its last page is full, after {pets} pets, and has no link"));
        }
    }
    ui.set_progress(None);
    let Verdict {
        found,
        missing,
        doubt,
    } = list.finish();
    warn_of_found(context, &found);
    let mut records = Vec::new();
    for (row, id) in found {
        records.push(Record::Found(row, id));
    }
    let is_settled = missing.is_empty();
    if doubt.is_none() && !is_settled {
        records.push(Record::Unsent(missing));
    }
    journal.record(records)?;
    Ok(doubt.filter(|_| !is_settled))
}

/// Says which pets count as those of unknown rows.
fn warn_of_found(context: &Context, found: &[(usize, i64)]) {
    if found.is_empty() {
        return;
    }
    let ids = found.iter().take(MAX_NAMED).map(|(_, id)| id.to_string());
    let mut ids: Vec<_> = ids.collect();
    if found.len() > MAX_NAMED {
        ids.push(format!("{} more", count(found.len() - MAX_NAMED)));
    }
    let rows = plural(found.len(), "unknown row was", "unknown rows were");
    let (pets, them) = match found.len() {
        1 => ("pet", "it"),
        _ => ("pets", "them"),
    };
    let ids = ids.join(", ");
    let text = format!("{rows} found as {pets} {ids}; another program may have created {them}");
    context.ui().warning(&text, None);
}

/// Reads all pages. Returns whether the last one is certainly the end.
async fn read(
    context: &Context,
    client: &Client,
    list: &mut PetList<'_>,
    size: u32,
) -> Result<bool> {
    let mut pages = client.pets().list().limit(size).pages();
    let mut has_more = Some(false);
    loop {
        let page = match pages.try_next().await {
            Ok(Some(page)) => page,
            Ok(None) => return Ok(has_more.is_some()),
            // The same command can try again later.
            Err(error) if is_temporary(&error) => return Err(error.into()),
            Err(error) => {
                let pets = plural(list.seen.len(), "pet", "pets");
                let why = context.explain_client(&error).message;
                list.doubt(|| format!("it broke off after {pets}: {why}"));
                return Ok(true);
            }
        };
        has_more = page.has_more();
        list.add_page(&page, has_more == Some(true));
        context.ui().set_progress(Some(Progress::Pets {
            verb: "listing",
            count: list.seen.len(),
        }));
    }
}

fn is_temporary(error: &Error) -> bool {
    error.is_rate_limited() || error.kind() == ErrorKind::Unauthorized
}

/// What the check found out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Unknown rows, with the pets that count as theirs.
    pub(super) found: Vec<(usize, i64)>,
    /// The other unknown rows.
    pub(super) missing: Vec<usize>,
    /// Why the list is not certainly complete.
    pub(super) doubt: Option<String>,
}

/// The listed pets that may be those of unknown rows.
pub(super) struct PetList<'a> {
    /// The unknown rows. Those without a status come last.
    unknown: Vec<(usize, &'a NewPet)>,
    /// The unaccounted pets with the name and category of an unknown row.
    candidates: HashMap<(String, i64), Vec<Pet>>,
    /// The pets that this import has accounted for.
    accounted: HashSet<i64>,
    /// Those of the other inputs of this command.
    taken: &'a HashSet<i64>,
    seen: HashSet<i64>,
    pages: usize,
    /// The size of the pages before the last.
    page_size: Option<usize>,
    doubt: Option<String>,
}

impl<'a> PetList<'a> {
    pub(super) fn new(rows: &'a [Row], state: &State, taken: &'a HashSet<i64>) -> Self {
        let mut unknown = Vec::new();
        let mut candidates = HashMap::new();
        for (row, _) in state.unknown() {
            if let Some(pet) = rows.get(row).and_then(Row::pet) {
                unknown.push((row, pet));
                candidates.insert((pet.name.clone(), pet.category_id), Vec::new());
            }
        }
        unknown.sort_by_key(|(_, pet)| pet.status.is_none());
        Self {
            unknown,
            candidates,
            accounted: state.pets().map(|(_, id)| id).collect(),
            taken,
            seen: HashSet::new(),
            pages: 0,
            page_size: None,
            doubt: None,
        }
    }

    /// Notes why the list is not certainly complete. The first reason counts.
    pub(super) fn doubt(&mut self, why: impl FnOnce() -> String) {
        self.doubt.get_or_insert_with(why);
    }

    pub(super) fn add_page(&mut self, pets: &[Pet], is_followed: bool) {
        self.pages += 1;
        if is_followed {
            let expected = *self.page_size.get_or_insert(pets.len());
            if pets.len() != expected {
                let (page, size) = (self.pages, pets.len());
                self.doubt(|| format!("page {page} has {size} pets, earlier pages {expected}"));
            }
        }
        for pet in pets {
            if !self.seen.insert(pet.id) {
                self.doubt(|| format!("it has pet {} twice", pet.id));
                continue;
            }
            if self.accounted.contains(&pet.id) || self.taken.contains(&pet.id) {
                continue;
            }
            let content = (pet.name.clone(), pet.category_id);
            if let Some(pets) = self.candidates.get_mut(&content) {
                pets.push(pet.clone());
            }
        }
    }

    /// Gives each unknown row a pet like it, each pet once. Rows without a status take what those
    /// with one have left.
    pub(super) fn finish(mut self) -> Verdict {
        let absent = self.accounted.difference(&self.seen).min().copied();
        if let Some(id) = absent {
            self.doubt(|| format!("it lacks pet {id} of this import"));
        }
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for (row, pet) in self.unknown {
            let content = (pet.name.clone(), pet.category_id);
            let pets = self.candidates.entry(content).or_default();
            let is_like = |other: &Pet| pet.status.is_none() || other.status == pet.status;
            match pets.iter().position(is_like) {
                Some(at) => found.push((row, pets.swap_remove(at).id)),
                None => missing.push(row),
            }
        }
        found.sort_unstable();
        missing.sort_unstable();
        Verdict {
            found,
            missing,
            doubt: self.doubt,
        }
    }
}

#[cfg(test)]
mod tests {
    use petstore_client::PetStatus;
    use serde_json::Value;

    use super::*;
    use crate::commands::import::rows::Rows;

    /// Returns what a list of one pet says about unknown rows.
    fn verdict(rows: &str, pet: Pet) -> Verdict {
        let rows = Rows::read("rows", rows.as_bytes().to_vec(), None).unwrap();
        let mut state = State::default();
        for (number, row) in rows.all().iter().enumerate() {
            state.apply(Record::Sent(vec![(number, row.digest().unwrap())]));
        }
        let taken = HashSet::new();
        let mut list = PetList::new(rows.all(), &state, &taken);
        list.add_page(&[pet], false);
        list.finish()
    }

    #[test]
    fn rows_without_a_status_take_what_those_with_one_leave() {
        let rows = "name,categoryId,status\nRex,7,\nRex,7,sold\n";
        let sold = NewPet::new("Rex", 7).with_status(PetStatus::Sold);
        let both = |row, other| (vec![(row, 4)], vec![other]);
        let Verdict { found, missing, .. } = verdict(rows, sold.into_pet(4));
        assert_eq!((found, missing), both(1, 0));
        let without = NewPet::new("Rex", 7).into_pet(4);
        let Verdict { found, missing, .. } = verdict(rows, without);
        assert_eq!((found, missing), both(0, 1));
        let other = NewPet::new("Rex", 8).into_pet(4);
        assert_eq!(verdict(rows, other).missing, [0, 1]);
    }

    #[test]
    fn a_pet_with_another_value_of_any_field_is_not_that_of_a_row() {
        let row = serde_json::json!({ "name": "Rex", "categoryId": 7, "status": "sold" });
        for field in &Pet::FIELDS[1..] {
            let mut other = row.clone();
            match &row[field] {
                Value::String(text) => other[field] = format!("not {text}").into(),
                Value::Number(_) => other[field] = 8.into(),
                _ => panic!("the row needs `{field}`"),
            }
            let other: NewPet = serde_json::from_value(other).unwrap();
            let verdict = verdict(&row.to_string(), other.into_pet(4));
            assert_eq!(verdict.missing, [0], "{field}");
        }
    }
}
