//! `petstore store …`: the store.

mod orders;

pub(crate) use orders::Orders;
