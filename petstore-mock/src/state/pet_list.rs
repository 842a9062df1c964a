//! The pets sorted by id, in pieces that copies of the list share until one is changed. Copying a
//! million pets copies only a thousand pieces.

use std::{fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, SeqAccess, Visitor},
    ser::Error as _,
};
use serde_json::value::RawValue;
use strum::EnumCount;

use crate::model::{Pet, PetStatus};

/// The maximum number of pets in a piece.
const MAX_PIECE: usize = 1_024;

/// A stored pet: its serialized JSON, and the fields for searches.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        Self { id: pet.id, status: pet.status, json: json.into() }
    }
}

impl Serialize for StoredPet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.json).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Some pets by ascending id, at least one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Piece {
    pets: Vec<StoredPet>,
    /// The number of pets by status, so that a search for a rare status skips most pieces.
    counts: [usize; PetStatus::COUNT],
}

impl Piece {
    pub(crate) fn pets(&self) -> &[StoredPet] {
        &self.pets
    }

    fn new(pets: Vec<StoredPet>) -> Self {
        let mut counts = [0; PetStatus::COUNT];
        for status in pets.iter().filter_map(|pet| pet.status) {
            counts[status as usize] += 1;
        }
        Self { pets, counts }
    }

    fn last_id(&self) -> i64 {
        self.pets.last().map_or(i64::MIN, |pet| pet.id)
    }

    /// Returns the position of the pet with this id, or where it would be.
    fn place(&self, id: i64) -> Result<usize, usize> {
        self.pets.binary_search_by_key(&id, |pet| pet.id)
    }
}

/// Pets by ascending id.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PetList {
    pieces: Vec<Arc<Piece>>,
    len: usize,
}

impl PetList {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn pieces(&self) -> &[Arc<Piece>] {
        &self.pieces
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &StoredPet> {
        self.pieces.iter().flat_map(|piece| &piece.pets)
    }

    /// Returns the pets with ids above `after` and this status.
    pub(crate) fn find(
        &self,
        after: Option<i64>,
        status: Option<PetStatus>,
    ) -> impl Iterator<Item = &StoredPet> {
        let is_after = move |id: i64| after.is_none_or(|after| id > after);
        let first = self.pieces.partition_point(|piece| !is_after(piece.last_id()));
        self.pieces[first..]
            .iter()
            .filter(move |piece| status.is_none_or(|status| piece.counts[status as usize] > 0))
            .flat_map(|piece| &piece.pets)
            .filter(move |pet| is_after(pet.id) && (status.is_none() || pet.status == status))
    }

    /// Returns the highest id, or 0 if there is no pet.
    pub(crate) fn last_id(&self) -> i64 {
        self.pieces.last().map_or(0, |piece| piece.last_id())
    }

    pub(crate) fn get(&self, id: i64) -> Option<&StoredPet> {
        let piece = self.pieces.get(self.place(id))?;
        piece.place(id).ok().map(|at| &piece.pets[at])
    }

    /// Adds a pet. Returns false if another one has its id.
    pub(crate) fn insert(&mut self, pet: StoredPet) -> bool {
        let place = self.place(pet.id);
        let is_last = place == self.pieces.len();
        if is_last && self.pieces.last().is_none_or(|piece| piece.pets.len() >= MAX_PIECE) {
            self.pieces.push(Arc::new(Piece::new(vec![pet])));
        } else {
            let place = place.min(self.pieces.len() - 1);
            let piece = Arc::make_mut(&mut self.pieces[place]);
            let Err(at) = piece.place(pet.id) else { return false };
            if let Some(status) = pet.status {
                piece.counts[status as usize] += 1;
            }
            piece.pets.insert(at, pet);
            if piece.pets.len() > 2 * MAX_PIECE {
                let upper = piece.pets.split_off(MAX_PIECE);
                *piece = Piece::new(std::mem::take(&mut piece.pets));
                self.pieces.insert(place + 1, Arc::new(Piece::new(upper)));
            }
        }
        self.len += 1;
        true
    }

    /// Removes a pet. Returns false if no pet has the id.
    pub(crate) fn remove(&mut self, id: i64) -> bool {
        let place = self.place(id);
        let Some(piece) = self.pieces.get_mut(place) else { return false };
        let Ok(at) = piece.place(id) else { return false };
        let piece = Arc::make_mut(piece);
        if let Some(status) = piece.pets.remove(at).status {
            piece.counts[status as usize] -= 1;
        }
        if piece.pets.is_empty() {
            self.pieces.remove(place);
        }
        self.len -= 1;
        true
    }

    /// Returns the piece for the pet with this id.
    fn place(&self, id: i64) -> usize {
        self.pieces.partition_point(|piece| piece.last_id() < id)
    }
}

impl Serialize for PetList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// Reads pets in any order, one by one: as many again would take their memory in between.
impl<'de> Deserialize<'de> for PetList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListReader)
    }
}

struct ListReader;

impl<'de> Visitor<'de> for ListReader {
    type Value = PetList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of pets")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pets: A) -> Result<PetList, A::Error> {
        let mut list = PetList::default();
        while let Some(pet) = pets.next_element::<Pet>()? {
            let id = pet.id;
            if !list.insert(pet.into()) {
                return Err(A::Error::custom(format!("two pets have the id {id}")));
            }
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pet(id: i64, status: Option<PetStatus>) -> StoredPet {
        Pet { id, name: format!("pet {id}"), category_id: 1, status }.into()
    }

    fn ids<'p>(pets: impl Iterator<Item = &'p StoredPet>) -> Vec<i64> {
        pets.map(|pet| pet.id).collect()
    }

    #[test]
    fn keeps_pets_in_order_across_its_pieces() {
        let mut list = PetList::default();
        // Every other id forwards, the rest backwards, so that pieces are split.
        let (even, odd) = ((0..2_500).map(|id| 2 * id), (0..2_500).rev().map(|id| 2 * id + 1));
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
        let lengths: Vec<_> = list.pieces().iter().map(|piece| piece.pets.len()).collect();
        assert!(lengths.len() > 2 && lengths.iter().all(|it| *it <= 2 * MAX_PIECE), "{lengths:?}");
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
        assert_eq!((copy.len(), list.len(), copy.get(0).is_some()), (3_000, 2_999, true));
        let shared = list.pieces().iter().zip(copy.pieces()).filter(|(a, b)| Arc::ptr_eq(a, b));
        assert_eq!(shared.count(), copy.pieces().len() - 1);
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
        let error = serde_json::from_str::<PetList>(twins).unwrap_err().to_string();
        assert!(error.starts_with("two pets have the id 9"), "{error}");
    }
}
