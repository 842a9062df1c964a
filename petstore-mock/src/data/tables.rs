//! What stands where in the database: reading it all, and making one change in it.

use redb::{
    Database, ReadableDatabase, ReadableTable, Table, TableDefinition, TableHandle,
    WriteTransaction,
};

use super::DataError;
use crate::{
    model::Pet,
    store::{Change, ChangeError, Order, Store},
};

/// Each pet as JSON, by its id.
const PETS: TableDefinition<'_, i64, &[u8]> = TableDefinition::new("pets");
/// Each order as JSON, in the order they were added.
const ORDERS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("orders");
/// The form of all this, and the highest id there ever was.
const META: TableDefinition<'_, &str, i64> = TableDefinition::new("petstore-mock");

const FORM: &str = "form";
const LAST_ID: &str = "last-id";

/// The form that is written, and the only one that is read.
const VERSION: i64 = 1;

/// Reads everything; returns nothing if nothing was ever written.
pub(super) fn read(db: &Database) -> Result<Option<Store>, DataError> {
    let reading = db.begin_read().map_err(damaged)?;
    let names: Vec<_> = reading.list_tables().map_err(damaged)?.collect();
    if names.is_empty() {
        return Ok(None);
    }
    if !names.iter().any(|table| table.name() == META.name()) {
        return Err(DataError::Foreign);
    }
    let meta = reading.open_table(META).map_err(damaged)?;
    let number = |name| match meta.get(name) {
        Ok(Some(value)) => Ok(value.value()),
        Ok(None) => Err(DataError::Damaged(format!("it does not say its {name}"))),
        Err(error) => Err(damaged(error)),
    };
    match number(FORM)? {
        VERSION => {}
        other => return Err(DataError::Later(other)),
    }
    let table = reading.open_table(PETS).map_err(damaged)?;
    let mut pets = Vec::new();
    for entry in table.iter().map_err(damaged)? {
        let (id, text) = entry.map_err(damaged)?;
        let pet: Pet = serde_json::from_slice(text.value()).map_err(damaged)?;
        if pet.id != id.value() {
            return Err(DataError::Damaged(format!("the pet {} is not in its place", pet.id)));
        }
        pets.push(pet);
    }
    let table = reading.open_table(ORDERS).map_err(damaged)?;
    let mut orders: Vec<Order> = Vec::new();
    for entry in table.iter().map_err(damaged)? {
        let (_, text) = entry.map_err(damaged)?;
        orders.push(serde_json::from_slice(text.value()).map_err(damaged)?);
    }
    Ok(Some(Store::new(pets, orders).with_last_id(number(LAST_ID)?)))
}

fn damaged(error: impl std::fmt::Display) -> DataError {
    DataError::Damaged(error.to_string())
}

/// The tables while they are written.
pub(super) struct Tables<'t> {
    pets: Table<'t, i64, &'static [u8]>,
    orders: Table<'t, u64, &'static [u8]>,
    meta: Table<'t, &'static str, i64>,
    last_id: i64,
}

impl<'t> Tables<'t> {
    /// Opens them; `last_id` is the highest id there ever was.
    pub(super) fn open(writing: &'t WriteTransaction, last_id: i64) -> Result<Self, redb::Error> {
        Ok(Self {
            pets: writing.open_table(PETS)?,
            orders: writing.open_table(ORDERS)?,
            meta: writing.open_table(META)?,
            last_id,
        })
    }

    /// Makes a change here, and returns it as it is to be made in memory: with the id of a new pet.
    /// What can't be made changes nothing.
    pub(super) fn apply(
        &mut self,
        change: Change,
    ) -> Result<Result<Change, ChangeError>, redb::Error> {
        match change {
            Change::Add { id, pet } => {
                let Some(id) = id.or_else(|| self.last_id.checked_add(1)) else {
                    return Ok(Err(ChangeError::OutOfIds));
                };
                if self.pets.get(id)?.is_some() {
                    return Ok(Err(ChangeError::IdTaken(id)));
                }
                self.insert(&Pet::new(id, pet.clone()))?;
                self.last_id = self.last_id.max(id);
                return Ok(Ok(Change::Add { id: Some(id), pet }));
            }
            Change::Remove(id) => {
                if self.pets.remove(id)?.is_none() {
                    return Ok(Err(ChangeError::NoSuchPet(id)));
                }
            }
            Change::ClearPets => self.pets.retain(|_, _| false)?,
            Change::AddOrder(ref order) => self.push(order)?,
            Change::ClearOrders => self.orders.retain(|_, _| false)?,
            Change::Replace(ref store) => {
                self.pets.retain(|_, _| false)?;
                self.orders.retain(|_, _| false)?;
                store.pets().iter().try_for_each(|pet| self.insert(pet))?;
                store.orders().iter().try_for_each(|order| self.push(order))?;
                self.last_id = store.last_id();
            }
        }
        Ok(Ok(change))
    }

    /// Writes what is to be known of the whole.
    pub(super) fn finish(mut self) -> Result<(), redb::Error> {
        self.meta.insert(FORM, VERSION)?;
        self.meta.insert(LAST_ID, self.last_id)?;
        Ok(())
    }

    fn insert(&mut self, pet: &Pet) -> Result<(), redb::Error> {
        self.pets.insert(pet.id, &**pet.json())?;
        Ok(())
    }

    fn push(&mut self, order: &Order) -> Result<(), redb::Error> {
        let text = serde_json::to_vec(order).map_err(|error| redb::Error::Io(error.into()))?;
        let place = self.orders.last()?.map_or(0, |(last, _)| last.value().saturating_add(1));
        self.orders.insert(place, &*text)?;
        Ok(())
    }
}
