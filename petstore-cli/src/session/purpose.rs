//! The purpose of a command's request, which decides about retries and words.

/// What a lost request may have done, and where to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) effect: &'static str,
    pub(super) advice: &'static str,
}

/// A command whose operation the service will remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Retiring {
    pub(super) command: &'static str,
    /// What to use from now on.
    pub(super) replacement: &'static str,
    /// What does the same after the removal.
    pub(super) hint: String,
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

    /// Returns whether a request deletes something, so that nothing is found if it is sent again.
    pub(super) fn deletes(self) -> bool {
        match self {
            Self::Delete => true,
            Self::Read | Self::GetPet(_) | Self::CreatePet | Self::Change => false,
        }
    }

    /// Returns what the service refuses with a 4xx.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::CreatePet => "pet",
            Self::Read | Self::GetPet(_) | Self::Delete | Self::Change => "request",
        }
    }

    /// Returns what a 404 means, with a hint, if the command knows what is missing.
    pub(super) fn missing(self) -> Option<(String, &'static str)> {
        match self {
            Self::GetPet(id) => Some((
                format!("no pet {id}"),
                "`petstore pets list --all` lists all pets",
            )),
            Self::Read | Self::CreatePet | Self::Delete | Self::Change => None,
        }
    }

    /// Returns the command, if it uses an operation that the service will remove.
    pub(super) fn retiring(self) -> Option<Retiring> {
        match self {
            Self::GetPet(id) => Some(Retiring {
                command: "pets get",
                replacement: "`petstore pets list`",
                hint: format!("`petstore pets list --id {id}` searches for the pet"),
            }),
            Self::Read | Self::CreatePet | Self::Delete | Self::Change => None,
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
