//! `--unknown check`: lists the pets to find out which rows without a response were created. Rows
//! with equal content are interchangeable, so counts decide.

use std::collections::{HashMap, HashSet};

use petstore_client::{NewPet, Pet, PetStatus};

use super::journal::{Record, RowState, State};
use super::rows::Row;
use super::{Job, plural};
use crate::error::CliError;
use crate::status::{Activity, Progress};
use crate::time::count;

/// Unknown rows with one content, and unclaimed pets with this content.
#[derive(Debug, Default)]
struct Group {
    rows: Vec<usize>,
    ids: Vec<i64>,
}

/// Matches unknown rows with listed pets.
#[derive(Debug)]
struct Matcher {
    groups: HashMap<NewPet, Group>,
    claimed: HashSet<i64>,
    /// The lowest possible id of the import's pets.
    first_id: i64,
}

impl Matcher {
    fn new(rows: &[Row], state: &State) -> Self {
        let mut groups: HashMap<NewPet, Group> = HashMap::new();
        for row in state.unknown() {
            groups
                .entry(rows[row].pet.clone())
                .or_default()
                .rows
                .push(row);
        }
        let claimed = created_ids(state).collect();
        Self {
            groups,
            claimed,
            first_id: state.first_id.unwrap_or(i64::MIN),
        }
    }

    /// Returns the status that all unknown rows have. Pets with another one cannot match.
    fn status(&self) -> Option<&PetStatus> {
        let mut statuses = self.groups.keys().map(|pet| pet.status.as_ref());
        let first = statuses.next()??;
        statuses
            .all(|status| status == Some(first))
            .then_some(first)
    }

    /// Records a listed pet.
    fn add(&mut self, pet: &Pet) {
        if pet.id < self.first_id || self.claimed.contains(&pet.id) {
            return;
        }
        let plain = NewPet::new(&*pet.name, pet.category_id);
        let mut content = plain.clone();
        content.status.clone_from(&pet.status);
        let group = self.groups.get(&content);
        let has_room = group.is_some_and(|group| group.ids.len() < group.rows.len());
        if !has_room && self.groups.contains_key(&plain) {
            // A service may set a status if none was sent.
            content = plain;
        }
        if let Some(group) = self.groups.get_mut(&content) {
            group.ids.push(pet.id);
        }
    }

    /// Returns the outcome of each row, and the contents with more pets than rows, with the number
    /// of surplus pets. Rows claim the lowest ids first.
    fn finish(self) -> (Vec<Record>, Vec<(NewPet, usize)>) {
        let (mut found, mut unsent, mut surplus) = (Vec::new(), Vec::new(), Vec::new());
        for (content, Group { rows, mut ids }) in self.groups {
            ids.sort_unstable();
            if ids.len() > rows.len() {
                surplus.push((content, ids.len() - rows.len()));
            }
            let matched = ids.len().min(rows.len());
            let created = rows
                .iter()
                .zip(ids)
                .map(|(row, id)| (RowState::Created(id), vec![*row]));
            found.extend(created.map(|(state, rows)| Record::Rows(state, rows)));
            unsent.extend_from_slice(&rows[matched..]);
        }
        unsent.sort_unstable();
        found.push(Record::Rows(RowState::Announced, unsent));
        (found, surplus)
    }
}

fn created_ids(state: &State) -> impl Iterator<Item = i64> {
    state.rows.iter().filter_map(|row| match row {
        RowState::Created(id) => Some(*id),
        _ => None,
    })
}

impl Job<'_> {
    /// Finds out which unknown rows were created. The others may be sent.
    pub(super) async fn check(&mut self, unknown: usize) -> Result<(), CliError> {
        let ui = self.context.ui().clone();
        let rows = plural(unknown, "unknown row", "unknown rows");
        let mut matcher = Matcher::new(&self.input.rows, &self.journal.state);
        let mut list = self.client.pets().list().limit(100);
        let highest = created_ids(&self.journal.state).max();
        let listed = match (matcher.status(), highest) {
            (Some(status), _) => {
                list = list.status(status.clone());
                format!("all {status} pets")
            }
            (None, Some(id)) => {
                let pages = usize::try_from(id / 100).unwrap_or(0) + 1;
                format!("all pets, about {}", plural(pages, "request", "requests"))
            }
            (None, None) => "all pets".to_owned(),
        };
        ui.note_now(&format!("checking {rows}: listing {listed}"));
        self.await_stragglers(unknown).await;
        let mut pages = list.pages();
        let mut listed = 0;
        while let Some(page) = pages.try_next().await? {
            listed += page.len();
            ui.set_progress(Some(Progress::Text(format!(
                "listing pets: {} so far",
                count(listed)
            ))));
            page.iter().for_each(|pet| matcher.add(pet));
        }
        ui.set_progress(None);
        let (records, surplus) = matcher.finish();
        // The last record contains the rows that were not found.
        self.found = records.len() - 1;
        self.journal.write(records)?;
        let found = count(self.found);
        let left = match unknown - self.found {
            0 => String::new(),
            left => format!("; sending the other {}", count(left)),
        };
        ui.note_now(&format!(
            "found {found} of {rows}, by content and count{left}"
        ));
        let is_shared = self
            .client
            .rate_limits()
            .shared
            .is_some_and(|shared| shared.members > 1);
        if self.found > 0 && (is_shared || self.journal.state.first_id.is_none()) {
            ui.warning(&format!("{found} matches are by content, not proved"), None);
        }
        for (
            NewPet {
                name, category_id, ..
            },
            more,
        ) in surplus
        {
            let pets = plural(more, "more pet than rows reads", "more pets than rows read");
            let text = format!("{pets} `{name}`, category {category_id}; not claimed");
            ui.warning(&text, None);
        }
        Ok(())
    }

    /// Waits until no request of an earlier run can still arrive.
    async fn await_stragglers(&self, unknown: usize) {
        let context = &self.context;
        let since = self.journal.opened_after.unwrap_or_default();
        let rest = context.settings().values().timeout().saturating_sub(since);
        if rest.is_zero() {
            return;
        }
        let rows = plural(unknown, "row", "rows");
        let text = format!("{rows} may still arrive; listing begins");
        let end = tokio::time::Instant::now() + rest;
        let activity = Activity::new(text.clone()).short(text).ends(end);
        context.ui().set_activity(Some(activity));
        tokio::time::sleep(rest).await;
        context.ui().set_activity(None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Place;
    use super::*;

    /// Matches rows, of which the first may be created already, with listed pets.
    fn matched(
        rows: &[(&str, RowState)],
        first_id: Option<i64>,
        pets: &[(i64, &str)],
    ) -> (Vec<Record>, Vec<(NewPet, usize)>) {
        let mut state = State::default();
        state.first_id = first_id;
        state.rows = rows.iter().map(|(_, state)| state.clone()).collect();
        let rows: Vec<_> = rows
            .iter()
            .map(|(name, _)| Row {
                place: Place::Line(1),
                pet: NewPet::new(*name, 7),
            })
            .collect();
        let mut matcher = Matcher::new(&rows, &state);
        for (id, name) in pets {
            let pet =
                serde_json::json!({ "id": id, "name": name, "categoryId": 7, "status": "sold" });
            matcher.add(&serde_json::from_value(pet).unwrap());
        }
        let (mut records, surplus) = matcher.finish();
        records.sort_by_key(|record| match record {
            Record::Rows(RowState::Created(id), _) => *id,
            _ => i64::MAX,
        });
        (records, surplus)
    }

    #[test]
    fn matches_by_content_and_count_the_lowest_ids_first() {
        use RowState::{Created, Unknown};

        let rows = [
            ("a", Created(10)),
            ("a", Unknown),
            ("a", Unknown),
            ("b", Unknown),
            ("a", Unknown),
        ];
        // 9 was there before, 10 is claimed, and of four rows two are there.
        let pets = [(12, "a"), (9, "a"), (10, "a"), (11, "a"), (13, "c")];
        let expected = vec![
            Record::Rows(Created(11), vec![1]),
            Record::Rows(Created(12), vec![2]),
            Record::Rows(RowState::Announced, vec![3, 4]),
        ];
        assert_eq!(matched(&rows, Some(10), &pets), (expected, vec![]));
    }

    #[test]
    fn a_row_without_a_status_claims_what_a_row_with_the_status_of_the_service_leaves() {
        let (plain, sold) = (
            NewPet::new("a", 7),
            NewPet::new("a", 7).with_status(PetStatus::Sold),
        );
        let mut state = State::default();
        state.rows = vec![RowState::Unknown; 3];
        let rows = [plain.clone(), sold, plain].map(|pet| Row {
            place: Place::Line(1),
            pet,
        });
        let mut matcher = Matcher::new(&rows, &state);
        for id in 1..=3 {
            let pet =
                serde_json::json!({ "id": id, "name": "a", "categoryId": 7, "status": "sold" });
            matcher.add(&serde_json::from_value(pet).unwrap());
        }
        let (records, surplus) = matcher.finish();
        assert_eq!(
            records.last(),
            Some(&Record::Rows(RowState::Announced, vec![]))
        );
        assert_eq!((records.len(), surplus), (4, vec![]));
    }

    #[test]
    fn claims_at_most_one_pet_per_row() {
        let pets = [(3, "a"), (1, "a"), (2, "a")];
        let expected = vec![
            Record::Rows(RowState::Created(1), vec![0]),
            Record::Rows(RowState::Announced, vec![]),
        ];
        let surplus = vec![(NewPet::new("a", 7), 2)];
        assert_eq!(
            matched(&[("a", RowState::Unknown)], None, &pets),
            (expected, surplus)
        );
    }
}
