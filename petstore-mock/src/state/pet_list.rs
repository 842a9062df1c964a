//! The pets, sorted by id. They are in pieces, which the copies of a list share until a piece is
//! changed. So a copy of a million pets only copies pointers to a thousand pieces.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer, ser::Error as _};
use serde_json::value::RawValue;

use crate::model::{Pet, PetStatus};

/// The usual number of pets in a piece. A piece has at most twice as many.
const PIECE: usize = 1_024;

/// A stored pet: its serialized JSON, and the fields for searches.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Pet")]
pub(crate) struct StoredPet {
    pub(crate) id: i64,
    status: Option<PetStatus>,
    json: Arc<str>,
}

impl StoredPet {
    /// Returns the pet as the service writes it.
    pub(crate) fn json(&self) -> &str {
        &self.json
    }

    pub(crate) fn to_pet(&self) -> Pet {
        serde_json::from_str(&self.json).expect("a stored pet is a serialized pet")
    }
}

impl From<Pet> for StoredPet {
    fn from(pet: Pet) -> Self {
        let json = serde_json::to_string(&pet).expect("texts and numbers can be serialized");
        Self {
            id: pet.id,
            status: pet.status,
            json: json.into(),
        }
    }
}

impl Serialize for StoredPet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.json).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Pets by ascending id.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "Vec<StoredPet>")]
pub(crate) struct PetList {
    /// The pieces. None of them is empty.
    pieces: Vec<Arc<Vec<StoredPet>>>,
}

impl PetList {
    pub(crate) fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }

    pub(super) fn pieces(&self) -> &[Arc<Vec<StoredPet>>] {
        &self.pieces
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &StoredPet> {
        self.find(None, None)
    }

    /// Returns the pets with ids above `after` and this status.
    pub(crate) fn find(
        &self,
        after: Option<i64>,
        status: Option<PetStatus>,
    ) -> impl Iterator<Item = &StoredPet> {
        let is_after = move |id: i64| after.is_none_or(|after| id > after);
        let first = self
            .pieces
            .partition_point(|piece| !is_after(last_id(piece)));
        self.pieces[first..]
            .iter()
            .flat_map(|piece| &**piece)
            .filter(move |pet| is_after(pet.id) && (status.is_none() || pet.status == status))
    }

    /// Returns the highest id, or 0 if there is no pet.
    pub(crate) fn last_id(&self) -> i64 {
        self.pieces.last().map_or(0, |piece| last_id(piece))
    }

    pub(crate) fn get(&self, id: i64) -> Option<&StoredPet> {
        let piece = self.pieces.get(self.place(id))?;
        position(piece, id).ok().map(|at| &piece[at])
    }

    /// Adds a pet. Returns false if another one has its id.
    pub(crate) fn insert(&mut self, pet: StoredPet) -> bool {
        if self.pieces.is_empty() {
            self.pieces.push(Arc::default());
        }
        let place = self.place(pet.id).min(self.pieces.len() - 1);
        let Err(at) = position(&self.pieces[place], pet.id) else {
            return false;
        };
        let piece = Arc::make_mut(&mut self.pieces[place]);
        piece.insert(at, pet);
        if piece.len() > 2 * PIECE {
            let upper = piece.split_off(PIECE);
            piece.shrink_to_fit();
            self.pieces.insert(place + 1, Arc::new(upper));
        }
        true
    }

    /// Removes a pet. Returns false if no pet has the id.
    pub(crate) fn remove(&mut self, id: i64) -> bool {
        let place = self.place(id);
        let Some(piece) = self.pieces.get_mut(place) else {
            return false;
        };
        let Ok(at) = position(piece, id) else {
            return false;
        };
        let piece = Arc::make_mut(piece);
        piece.remove(at);
        if piece.is_empty() {
            self.pieces.remove(place);
        }
        true
    }

    /// Returns the piece for the pet with this id.
    fn place(&self, id: i64) -> usize {
        self.pieces.partition_point(|piece| last_id(piece) < id)
    }
}

fn last_id(piece: &[StoredPet]) -> i64 {
    piece.last().map_or(i64::MIN, |pet| pet.id)
}

/// Returns the position of the pet with this id, or where it would be.
fn position(piece: &[StoredPet], id: i64) -> Result<usize, usize> {
    piece.binary_search_by_key(&id, |pet| pet.id)
}

impl Serialize for PetList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl TryFrom<Vec<StoredPet>> for PetList {
    type Error = String;

    fn try_from(mut pets: Vec<StoredPet>) -> Result<Self, String> {
        pets.sort_unstable_by_key(|pet| pet.id);
        match pets.windows(2).find(|pair| pair[0].id == pair[1].id) {
            Some(twins) => Err(format!("two pets have the id {}", twins[0].id)),
            None => Ok(Self {
                pieces: pets
                    .chunks(PIECE)
                    .map(|piece| Arc::new(piece.to_vec()))
                    .collect(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pet(id: i64, status: Option<PetStatus>) -> StoredPet {
        Pet {
            id,
            name: format!("pet {id}"),
            category_id: 1,
            status,
        }
        .into()
    }

    fn ids<'p>(pets: impl Iterator<Item = &'p StoredPet>) -> Vec<i64> {
        pets.map(|pet| pet.id).collect()
    }

    #[test]
    fn keeps_pets_in_order_across_its_pieces() {
        let mut list = PetList::default();
        // Even ids go in forwards, and then odd ones backwards, so that pieces are split.
        let (even, odd) = (
            (0..2_500).map(|id| 2 * id),
            (0..2_500).rev().map(|id| 2 * id + 1),
        );
        let status = |id: i64| (id == 7 || id == 4_321).then_some(PetStatus::Sold);
        for id in even.chain(odd) {
            assert!(list.insert(pet(id, status(id))));
            assert!(!list.insert(pet(id, None)));
        }
        assert_eq!(ids(list.iter()), (0..5_000).collect::<Vec<_>>());
        let after = |after| ids(list.find(Some(after), None));
        assert_eq!(after(4_096), (4_097..5_000).collect::<Vec<_>>());
        assert_eq!((after(-7).len(), after(9_999).len()), (5_000, 0));
        assert_eq!(ids(list.find(None, Some(PetStatus::Sold))), [7, 4_321]);
        assert_eq!(ids(list.find(Some(7), Some(PetStatus::Sold))), [4_321]);
        let lengths: Vec<_> = list.pieces.iter().map(|piece| piece.len()).collect();
        assert!(
            lengths.len() > 2 && lengths.iter().all(|it| *it <= 2 * PIECE),
            "{lengths:?}"
        );
        for id in 0..5_000 {
            assert_eq!(list.get(id).map(|pet| pet.id), Some(id));
        }
        assert!(list.get(-1).is_none() && list.get(5_000).is_none());
        for id in 1_000..4_400 {
            assert!(list.remove(id));
            assert!(!list.remove(id));
        }
        assert_eq!(ids(list.find(None, Some(PetStatus::Sold))), [7]);
        let rest = ids(list.find(Some(998), None));
        assert_eq!((list.len(), &rest[..2]), (1_600, &[999, 4_400][..]));
    }

    #[test]
    fn a_copy_shares_its_pieces_until_one_is_changed() {
        let mut list = PetList::default();
        (0..3_000).for_each(|id| assert!(list.insert(pet(id, None))));
        let copy = list.clone();
        list.remove(0);
        assert_eq!(
            (copy.len(), list.len(), copy.get(0).is_some()),
            (3_000, 2_999, true)
        );
        let shared = list
            .pieces
            .iter()
            .zip(&copy.pieces)
            .filter(|(a, b)| Arc::ptr_eq(a, b));
        assert_eq!(shared.count(), copy.pieces.len() - 1);
    }

    #[test]
    fn reads_its_own_json_and_refuses_duplicates() {
        let list: PetList = serde_json::from_str(
            r#"[{"id":9,"name":"a","categoryId":1},{"id":-3,"name":"é","categoryId":2,"status":"sold"}]"#,
        )
        .unwrap();
        assert_eq!(ids(list.iter()), [-3, 9]);
        assert_eq!(list.get(-3).unwrap().to_pet().status, Some(PetStatus::Sold));
        let text = serde_json::to_string(&list).unwrap();
        assert_eq!(serde_json::from_str::<PetList>(&text).unwrap(), list);
        let twins = r#"[{"id":9,"name":"a","categoryId":1},{"id":9,"name":"b","categoryId":1}]"#;
        let error = serde_json::from_str::<PetList>(twins)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("two pets have the id 9"), "{error}");
    }
}
