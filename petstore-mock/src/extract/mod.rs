//! Takes out of a request what its operation needs, and answers in the service's Error shape where
//! that is not there. What is done with it is left to `routes` and `admin`.

mod body;
mod credentials;
mod draft;
mod flaw;
mod head;
mod list_query;
mod new_pet;
mod pet_id;
mod query;
mod visit;

pub(crate) use self::{
    body::{Text, TooSlow},
    credentials::{KeyFault, bearer},
    flaw::{credentials, key_flaw},
    head::Head,
    list_query::ListQuery,
    new_pet::new_pet,
    pet_id::PetId,
    query::single,
    visit::{Standing, Visit},
};
