//! The pets in order of their ids, in pieces that lists share until one of them is changed: a copy of a
//! million pets takes no longer than one of a thousand pieces.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::model::{Pet, PetStatus};

/// How many pets a piece has at most.
const MAX_PIECE: usize = 1_024;

/// A pet as it is kept: its JSON, written once, and what it is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredPet {
    pub(crate) id: i64,
    pub(crate) status: Option<PetStatus>,
    json: Box<str>,
}

impl StoredPet {
    /// Returns the pet as the service writes it.
    pub(crate) fn json(&self) -> &str {
        &self.json
    }

    pub(crate) fn to_pet(&self) -> Pet {
        // It was written from one.
        serde_json::from_str(&self.json).expect("a stored pet is the JSON of a pet")
    }
}

impl From<&Pet> for StoredPet {
    fn from(pet: &Pet) -> Self {
        // Texts and numbers: there is nothing in it that JSON can't say.
        let json = serde_json::to_string(pet).unwrap_or_default();
        Self { id: pet.id, status: pet.status, json: json.into() }
    }
}

impl Serialize for StoredPet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.json).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StoredPet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Pet::deserialize(deserializer).map(|pet| Self::from(&pet))
    }
}

/// Pets by ascending id.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PetList {
    /// None of them is empty.
    pieces: Vec<Arc<Vec<StoredPet>>>,
    len: usize,
    /// Whether two pets had one id when it was read.
    had_twins: bool,
}

impl PetList {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether two pets had one id when it was read: only one of them is there.
    pub(crate) fn had_twins(&self) -> bool {
        self.had_twins
    }

    /// Returns the pieces, to be written one after the other.
    pub(crate) fn pieces(&self) -> &[Arc<Vec<StoredPet>>] {
        &self.pieces
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &StoredPet> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// Returns the pets after an id.
    pub(crate) fn after(&self, id: i64) -> impl Iterator<Item = &StoredPet> {
        let place = self.pieces.partition_point(|piece| last_id(piece) <= id);
        let first = self
            .pieces
            .get(place)
            .map_or(&[][..], |piece| &piece[piece.partition_point(|pet| pet.id <= id)..]);
        let rest = self.pieces.get(place + 1..).unwrap_or_default();
        first.iter().chain(rest.iter().flat_map(|piece| piece.iter()))
    }

    pub(crate) fn get(&self, id: i64) -> Option<&StoredPet> {
        let place = self.pieces.partition_point(|piece| last_id(piece) < id);
        let piece = self.pieces.get(place)?;
        piece.binary_search_by_key(&id, |pet| pet.id).ok().map(|at| &piece[at])
    }

    /// Adds a pet; false if another one has its id.
    pub(crate) fn insert(&mut self, pet: StoredPet) -> bool {
        let place = self.pieces.partition_point(|piece| last_id(piece) < pet.id);
        let is_last = place == self.pieces.len();
        if is_last && self.pieces.last().is_none_or(|piece| piece.len() >= MAX_PIECE) {
            self.pieces.push(Arc::new(vec![pet]));
        } else {
            let place = place.min(self.pieces.len() - 1);
            let piece = Arc::make_mut(&mut self.pieces[place]);
            let Err(at) = piece.binary_search_by_key(&pet.id, |it| it.id) else { return false };
            piece.insert(at, pet);
            if piece.len() > 2 * MAX_PIECE {
                let upper = piece.split_off(MAX_PIECE);
                self.pieces.insert(place + 1, Arc::new(upper));
            }
        }
        self.len += 1;
        true
    }

    pub(crate) fn remove(&mut self, id: i64) -> Option<StoredPet> {
        let place = self.pieces.partition_point(|piece| last_id(piece) < id);
        let piece = self.pieces.get_mut(place)?;
        let at = piece.binary_search_by_key(&id, |pet| pet.id).ok()?;
        let removed = Arc::make_mut(piece).remove(at);
        if piece.is_empty() {
            self.pieces.remove(place);
        }
        self.len -= 1;
        Some(removed)
    }
}

fn last_id(piece: &[StoredPet]) -> i64 {
    // None of them is empty.
    piece.last().map_or(i64::MIN, |pet| pet.id)
}

impl Serialize for PetList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// Reads pets in any order.
impl<'de> Deserialize<'de> for PetList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut pets = Vec::<StoredPet>::deserialize(deserializer)?;
        pets.sort_by_key(|pet| pet.id);
        let mut list = Self::default();
        list.had_twins = !pets.into_iter().all(|pet| list.insert(pet));
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NewPet;

    fn pet(id: i64) -> StoredPet {
        let new = NewPet { name: format!("pet {id}"), category_id: 1, status: None };
        StoredPet::from(&Pet::new(id, new))
    }

    fn ids<'p>(pets: impl Iterator<Item = &'p StoredPet>) -> Vec<i64> {
        pets.map(|pet| pet.id).collect()
    }

    #[test]
    fn keeps_pets_in_order_across_its_pieces() {
        let mut list = PetList::default();
        // Every other id forwards, the rest backwards, so that pieces are split.
        let (even, odd) = ((0..2_500).map(|id| 2 * id), (0..2_500).rev().map(|id| 2 * id + 1));
        for id in even.chain(odd) {
            assert!(list.insert(pet(id)));
            assert!(!list.insert(pet(id)));
        }
        assert_eq!(ids(list.iter()), (0..5_000).collect::<Vec<_>>());
        assert_eq!(ids(list.after(4_096)), (4_097..5_000).collect::<Vec<_>>());
        assert_eq!((ids(list.after(-7)).len(), ids(list.after(9_999)).len()), (5_000, 0));
        assert!(
            list.pieces().len() > 2 && list.pieces().iter().all(|it| it.len() <= 2 * MAX_PIECE)
        );
        for id in 0..5_000 {
            assert_eq!(list.get(id).map(|pet| pet.id), Some(id));
        }
        assert!(list.get(-1).is_none() && list.get(5_000).is_none());
        for id in 1_000..4_000 {
            assert_eq!(list.remove(id).map(|pet| pet.id), Some(id));
            assert!(list.remove(id).is_none());
        }
        assert_eq!((list.len(), ids(list.after(998))[..2].to_vec()), (2_000, vec![999, 4_000]));
    }

    #[test]
    fn a_copy_shares_its_pieces_until_one_is_changed() {
        let mut list = PetList::default();
        (0..3_000).for_each(|id| assert!(list.insert(pet(id))));
        let copy = list.clone();
        list.remove(0);
        assert_eq!((copy.len(), list.len(), copy.get(0).is_some()), (3_000, 2_999, true));
        let shared = list.pieces().iter().zip(copy.pieces()).filter(|(a, b)| Arc::ptr_eq(a, b));
        assert_eq!(shared.count(), copy.pieces().len() - 1);
    }

    #[test]
    fn reads_what_it_writes_and_finds_twins() {
        let list: PetList = serde_json::from_str(
            r#"[{"id":9,"name":"a","categoryId":1},{"id":-3,"name":"é","categoryId":2,"status":"sold"}]"#,
        )
        .unwrap();
        assert_eq!(ids(list.iter()), [-3, 9]);
        assert_eq!(list.get(-3).unwrap().to_pet().status, Some(PetStatus::Sold));
        let text = serde_json::to_string(&list).unwrap();
        assert_eq!(serde_json::from_str::<PetList>(&text).unwrap(), list);
        let twins = r#"[{"id":9,"name":"a","categoryId":1},{"id":9,"name":"b","categoryId":1}]"#;
        assert!(serde_json::from_str::<PetList>(twins).unwrap().had_twins() && !list.had_twins());
    }
}
