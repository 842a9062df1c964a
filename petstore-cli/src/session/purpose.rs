//! What a command's requests are for.

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
    pub(super) fn hint_after_loss(self) -> Option<&'static str> {
        match self {
            Self::Read | Self::GetPet(_) => None,
            Self::CreatePet => Some(
                "the pet may have been created: look in `petstore pets list --all` before you \
                 try again",
            ),
            Self::Change => {
                Some("the request may have been processed: check that before you try again")
            }
        }
    }
}
