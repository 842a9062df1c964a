//! What the service holds: the pets and orders, and the file that keeps them.

#[cfg(feature = "data")]
mod persistence;
mod pet_list;
mod store;

/// What stands for the data file where the feature `data` is off: nothing that could be opened.
#[cfg(not(feature = "data"))]
mod persistence {
    pub(crate) type Data = std::convert::Infallible;
}

#[cfg(feature = "data")]
pub use self::persistence::DataError;
pub use self::store::ChangeError;
pub(crate) use self::{
    persistence::Data,
    pet_list::{PetList, StoredPet},
    store::{Applied, Change, Content, Order, Store},
};
