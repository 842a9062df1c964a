//! The settings: the list of them, their types, their sources, and the API key.

pub(crate) mod config_file;
pub(crate) mod credentials;
pub(crate) mod precedence;
mod scalar;
pub(crate) mod secrets;
mod types;
mod values;

pub(crate) use self::precedence::{Settings, Source};
pub(crate) use self::scalar::accepted;
pub(crate) use self::secrets::checked_url;
pub(crate) use self::types::{Seconds, Size, StoreAddress};
pub(crate) use self::values::{OUTPUT, REQUESTS, SERVICE, Values};

pub(crate) fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

pub(crate) fn variable(name: &str) -> String {
    format!("PETSTORE_{}", name.to_uppercase())
}
