//! `petstore auth …`: the API key.

mod login;
mod logout;
mod status;

pub(crate) use login::Login;
pub(crate) use logout::Logout;
pub(crate) use status::Status;
