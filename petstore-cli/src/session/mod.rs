//! What a client of the service needs: its key, its limits, and messages for what happens.

mod explain;
mod key_command;
mod stores;
mod trace;
pub(crate) mod words;

pub(crate) use self::explain::failure;
pub(crate) use self::key_command::KeyCommand;
pub(crate) use self::stores::shared_limits;
pub(crate) use self::trace::{Tracer, cause, report_wait, shared_store};

use crate::settings::Settings;

/// The program's name in `User-Agent`.
pub(crate) const USER_AGENT: &str = concat!("petstore/", env!("CARGO_PKG_VERSION"));

/// The purpose of a command's requests, which decides about retries and hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    /// `getPet`, which the service will remove, with the pet's id.
    GetPet(i64),
    CreatePet,
    /// Any other change.
    Change,
}

impl Purpose {
    /// Returns whether a request only reads, so that it may be sent twice.
    pub(crate) fn is_read(self) -> bool {
        match self {
            Self::Read | Self::GetPet(_) => true,
            Self::CreatePet | Self::Change => false,
        }
    }

    /// Returns the hint if the service may have processed a request that failed.
    fn hint_after_loss(self, settings: &Settings) -> Option<String> {
        match self {
            Self::Read | Self::GetPet(_) => None,
            Self::CreatePet => {
                let list = settings.command("pets list --all");
                let hint = format!("the pet may have been created: look in {list}");
                Some(format!("{hint} before you try again"))
            }
            Self::Change => {
                let hint = "the request may have been processed: check that before you try again";
                Some(hint.to_owned())
            }
        }
    }
}
