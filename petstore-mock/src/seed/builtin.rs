//! The pets the mock brings along: the same 25 at each start, of every status and of none.

use super::SeedPet;
use crate::model::PetStatus::{self, Available, Pending, Sold};

/// Name, category (1 dogs, 2 cats, 3 birds, 4 small mammals, 5 reptiles, 6 fish) and status.
const PETS: [(&str, i64, Option<PetStatus>); 25] = [
    ("Bramble", 1, Some(Available)),
    ("Miso", 2, Some(Available)),
    ("Captain Plume", 3, Some(Pending)),
    ("Biscuit", 1, Some(Sold)),
    ("Zoë", 2, Some(Available)),
    ("Thistle", 4, None),
    ("Mango", 3, Some(Available)),
    ("Otto", 1, Some(Pending)),
    ("Sir Hops-a-Lot", 4, Some(Available)),
    ("Luna", 2, Some(Sold)),
    ("Gecko Roman", 5, Some(Available)),
    ("Bubbles", 6, Some(Available)),
    ("Pfötchen", 2, None),
    ("Juniper", 1, Some(Available)),
    ("Pip", 4, Some(Pending)),
    ("Sheldon", 5, Some(Available)),
    ("Marlin", 6, Some(Sold)),
    ("Olive", 2, Some(Available)),
    ("Rook", 3, Some(Available)),
    ("小春", 1, Some(Pending)),
    ("Nutmeg", 4, Some(Available)),
    ("Ziggy", 5, Some(Sold)),
    ("Coral", 6, None),
    ("Hazel", 1, Some(Available)),
    ("Figaro", 2, Some(Pending)),
];

pub(super) fn pets() -> Vec<SeedPet> {
    let pet = |(name, category_id, status): (&str, i64, Option<PetStatus>)| {
        let pet = SeedPet::new(name, category_id);
        match status {
            Some(status) => pet.with_status(status),
            None => pet,
        }
    };
    PETS.into_iter().map(pet).collect()
}
