//! The purpose of a command's request, which decides about retries and words.

/// What a lost request may have done, and where to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) effect: &'static str,
    pub(super) advice: &'static str,
}

/// The purpose of a command's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    /// `getPet`, which the service will remove, with the pet's id.
    GetPet(i64),
    CreatePet,
    /// A `DELETE`, which finds nothing if an earlier attempt has deleted it.
    Delete,
    /// Any other change.
    Change,
}

impl Purpose {
    /// Returns whether a request only reads, so that it may be sent twice.
    pub(crate) fn is_read(self) -> bool {
        match self {
            Self::Read | Self::GetPet(_) => true,
            Self::CreatePet | Self::Delete | Self::Change => false,
        }
    }

    /// Returns what a lost request may have done. One that only reads has done nothing.
    pub(super) fn loss(self) -> Option<Loss> {
        match self {
            Self::Read | Self::GetPet(_) => None,
            Self::CreatePet => Some(Loss {
                effect: "the pet may have been created",
                advice: "look in `petstore pets list --all`",
            }),
            Self::Delete | Self::Change => Some(Loss {
                effect: "the request may have been processed",
                advice: "check the result",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_purpose_that_reads_may_be_sent_twice() {
        for (purpose, reads) in [
            (Purpose::Read, true),
            (Purpose::GetPet(7), true),
            (Purpose::CreatePet, false),
            (Purpose::Delete, false),
            (Purpose::Change, false),
        ] {
            assert_eq!(purpose.is_read(), reads, "{purpose:?}");
            assert_eq!(purpose.loss().is_none(), reads, "{purpose:?}");
        }
    }
}
