//! What was found out about a request before it was routed: when it came, from where, and whether its
//! key lets it in. The router's front finds it out; these extractors act on it, since only a route
//! knows whether a 404 or a 405 comes before a 401.

use std::{net::IpAddr, time::Duration};

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::{Head, KeyFault};
use crate::{error::ApiError, exchange::Admission, world::Verdict};

/// A request, before it was routed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    /// The one time that everything about this request goes by.
    pub(crate) now: Duration,
    pub(crate) peer: IpAddr,
    pub(crate) standing: Standing,
    pub(crate) head: Head,
}

/// Whether its key lets a request in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Standing {
    /// The path is none of the service's: nobody asked for a key.
    Outside,
    /// There is no valid key.
    Stranger(KeyFault),
    /// The key is valid.
    Known(Verdict),
}

impl From<Standing> for Admission {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Outside => Self::Outside,
            Standing::Stranger(_) => Self::Stranger,
            Standing::Known(Verdict::Admitted) => Self::Admitted,
            Standing::Known(Verdict::Exhausted(_)) => Self::Refused,
            Standing::Known(Verdict::Banned(_)) => Self::Banned,
        }
    }
}

impl Visit {
    /// Fails if a valid key was refused, or if there are too many header fields: that comes before
    /// everything else, whatever the route.
    pub(crate) fn check(self) -> Result<(), ApiError> {
        match self.standing {
            Standing::Known(Verdict::Exhausted(quota)) => Err(ApiError::exhausted(quota, self.now)),
            Standing::Known(Verdict::Banned(until)) => Err(ApiError::banned(until, self.now)),
            Standing::Known(Verdict::Admitted) | Standing::Stranger(_) | Standing::Outside => {
                self.head.check()
            }
        }
    }

    /// Fails unless the request was let in with a valid key.
    pub(crate) fn authorize(self) -> Result<(), ApiError> {
        self.check()?;
        match self.standing {
            Standing::Known(_) => Ok(()),
            Standing::Stranger(fault) => Err(fault.into()),
            Standing::Outside => Err(KeyFault::Missing.into()),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Visit {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let visit = parts.extensions.get().copied();
        visit.ok_or_else(|| ApiError::internal("a request reached its route past the front"))
    }
}
