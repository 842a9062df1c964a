//! `--unknown check`: finds out which rows without a response were created, by listing the pets.
//! Rows with equal content are interchangeable, so that counting decides.

use std::collections::{BTreeMap, HashMap, HashSet};

use petstore_client::{Client, NewPet, Pet, PetStatus};

use super::input::Row;
use super::journal::{Journal, Record, RowState, State};
use super::{Import, Prepared, unwritable};
use crate::context::Context;
use crate::error::CliError;
use crate::time::count;
use crate::ui::{Activity, Progress, Ui};

impl Import {
    /// Finds out which unknown rows were created, and returns how many were.
    pub(super) async fn check(
        &self,
        context: &Context,
        prepared: &Prepared,
        client: &Client,
        journal: &mut Journal,
        unknown: usize,
    ) -> Result<usize, CliError> {
        let ui = &context.ui;
        let highest = journal.state.rows.iter().filter_map(|row| match row {
            RowState::Created(id) => Some(*id),
            _ => None,
        });
        let price = highest.max().map(|id| match id / 100 {
            0 => ", about 1 request".to_owned(),
            pages => format!(", about {} requests", count(pages + 1)),
        });
        let rows = if unknown == 1 { "row" } else { "rows" };
        let price = price.unwrap_or_default();
        ui.note_now(&format!(
            "checking {} unknown {rows}: listing all pets{price}",
            count(unknown)
        ));
        self.await_stragglers(context, journal).await;
        let pets = list(client, &prepared.rows.rows, &journal.state, ui).await?;
        let found = matched(&prepared.rows.rows, &journal.state, pets);
        journal.write(found.entries).map_err(|error| unwritable(&error))?;
        let left = unknown - found.found;
        let were = if found.found == 1 { "row was" } else { "rows were" };
        ui.note_now(&format!(
            "{} of {} {were} created, by content and count; {} were not, sent now",
            count(found.found),
            count(unknown),
            count(left)
        ));
        let is_shared = client.rate_limits().shared.is_some_and(|shared| shared.members > 1);
        if (is_shared || journal.state.first_id.is_none()) && found.found > 0 {
            let n = count(found.found);
            ui.warning(&format!("{n} matches are by content, not proved"), None);
        }
        if let Some((pet, more)) = found.surplus {
            let (name, category) = (&pet.name, pet.category_id);
            let text = format!(
                "{} more pets than rows read `{name}`, category {category}; they were not claimed",
                count(more)
            );
            ui.warning(&text, None);
        }
        Ok(found.found)
    }

    /// Waits until no request of an earlier run can still arrive.
    async fn await_stragglers(&self, context: &Context, journal: &Journal) {
        let since = journal.opened_after;
        let limit = context.facts.timeout;
        let Some(rest) =
            since.and_then(|since| limit.checked_sub(since)).filter(|rest| !rest.is_zero())
        else {
            return;
        };
        let rows = journal.state.count(|row| *row == RowState::Unknown);
        let text = format!("{} rows may still arrive; listing begins", count(rows));
        let end = tokio::time::Instant::now() + rest;
        context.ui.set_activity(Some(Activity {
            short: text.clone(),
            text,
            end: Some((end, None)),
        }));
        tokio::time::sleep_until(end).await;
        context.ui.set_activity(None);
    }
}

/// What was found out.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// What goes into the journal.
    entries: Vec<Record>,
    /// How many rows were created.
    found: usize,
    /// A content that more pets have than rows, and how many more there are.
    surplus: Option<(NewPet, usize)>,
}

/// The content of a pet as it is sent.
type Content = (String, i64, Option<String>);

fn content(name: &str, category: i64, status: Option<&PetStatus>) -> Content {
    (name.to_owned(), category, status.map(|status| status.as_str().to_owned()))
}

/// Lists the pets that rows of unknown state may have become.
async fn list(
    client: &Client,
    rows: &[Row],
    state: &State,
    ui: &Ui,
) -> Result<Vec<(i64, NewPet)>, CliError> {
    let wanted: HashSet<_> = unknown(rows, state).map(|(_, content)| content).collect();
    let mut pets = client.pets().list().limit(100).pages();
    let (mut candidates, mut listed) = (Vec::new(), 0_usize);
    while let Some(page) = pets.try_next().await? {
        listed += page.len();
        ui.set_progress(Some(Progress::Text(format!("listing pets: {} so far", count(listed)))));
        let fits = |pet: &&Pet| {
            let plain = content(&pet.name, pet.category_id, None);
            wanted.contains(&content(&pet.name, pet.category_id, pet.status.as_ref()))
                || wanted.contains(&plain)
        };
        for pet in page.iter().filter(fits) {
            let mut new = NewPet::new(&*pet.name, pet.category_id);
            new.status = pet.status.clone();
            candidates.push((pet.id, new));
        }
    }
    ui.set_progress(None);
    Ok(candidates)
}

fn unknown<'r>(rows: &'r [Row], state: &'r State) -> impl Iterator<Item = (usize, Content)> + 'r {
    let is_unknown = |row: &usize| state.rows.get(*row) == Some(&RowState::Unknown);
    (0..rows.len()).filter(is_unknown).map(|row| {
        let NewPet { name, category_id, status, .. } = &rows[row].pet;
        (row, content(name, *category_id, status.as_ref()))
    })
}

/// Matches rows of unknown state with pets, by content and count.
fn matched(rows: &[Row], state: &State, pets: Vec<(i64, NewPet)>) -> Found {
    let claimed: HashSet<i64> = state
        .rows
        .iter()
        .filter_map(|row| match row {
            RowState::Created(id) => Some(*id),
            _ => None,
        })
        .collect();
    let mut by_content: HashMap<Content, Vec<(i64, NewPet)>> = HashMap::new();
    let mut groups: BTreeMap<Content, Vec<usize>> = BTreeMap::new();
    for (row, content) in unknown(rows, state) {
        groups.entry(content).or_default().push(row);
    }
    let first = state.first_id.unwrap_or(i64::MIN);
    for (id, pet) in pets.into_iter().filter(|(id, _)| *id >= first && !claimed.contains(id)) {
        let exact = content(&pet.name, pet.category_id, pet.status.as_ref());
        // A service may set a status where none was sent.
        let plain = content(&pet.name, pet.category_id, None);
        let content = if groups.contains_key(&exact) { exact } else { plain };
        by_content.entry(content).or_default().push((id, pet));
    }
    let mut found = Found::default();
    let mut unsent = Vec::new();
    for (content, rows) in groups {
        let mut pets = by_content.remove(&content).unwrap_or_default();
        pets.sort_by_key(|(id, _)| *id);
        if let Some((_, pet)) = pets.get(rows.len()) {
            found.surplus = found.surplus.take().or(Some((pet.clone(), pets.len() - rows.len())));
        }
        let mut rows = rows.into_iter();
        for ((id, _), row) in pets.into_iter().zip(rows.by_ref()) {
            found.entries.push(Record::Found(row, id));
            found.found += 1;
        }
        unsent.extend(rows);
    }
    if !unsent.is_empty() {
        unsent.sort_unstable();
        found.entries.push(Record::Unsent(unsent));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(names: &[&str]) -> Vec<Row> {
        let row = |name: &&str| Row { line: 1, span: 0..0, pet: NewPet::new(*name, 7) };
        names.iter().map(row).collect()
    }

    fn state(first_id: Option<i64>, rows: &[RowState]) -> State {
        let mut state = State::default();
        state.first_id = first_id;
        state.rows = rows.to_vec();
        state
    }

    fn pets(pets: &[(i64, &str)]) -> Vec<(i64, NewPet)> {
        pets.iter().map(|(id, name)| (*id, NewPet::new(*name, 7))).collect()
    }

    #[test]
    fn matches_by_content_and_count_the_lowest_ids_first() {
        use RowState::{Created, Unknown};

        let rows = rows(&["a", "a", "a", "b", "a"]);
        let state = state(Some(10), &[Created(10), Unknown, Unknown, Unknown, Unknown]);
        // 9 was there before, 10 is claimed, and of four rows two are there.
        let listed = pets(&[(12, "a"), (9, "a"), (10, "a"), (11, "a"), (13, "c")]);
        let found = matched(&rows, &state, listed);
        let expected = [Record::Found(1, 11), Record::Found(2, 12), Record::Unsent(vec![3, 4])];
        assert_eq!(found, Found { entries: expected.to_vec(), found: 2, surplus: None });
    }

    #[test]
    fn claims_no_more_pets_than_there_are_rows() {
        let state = state(None, &[RowState::Unknown]);
        let found = matched(&rows(&["a"]), &state, pets(&[(3, "a"), (1, "a"), (2, "a")]));
        assert_eq!(found.entries, [Record::Found(0, 1)]);
        assert_eq!(found.surplus, Some((NewPet::new("a", 7), 2)));
    }
}
