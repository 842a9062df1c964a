//! `petstore api`: any request.

mod fields;
mod pages;
mod request;

pub(crate) use request::Api;
