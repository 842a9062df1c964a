//! What an answer means for a row, and for those after it. Pure.

use petstore_client::{Error, ErrorKind, Pet, Response};

use super::journal::Event;

/// So many rows in a row that come to nothing are a service that is down.
const PATIENCE: u32 = 5;

/// Whether the rows after it are sent.
#[derive(Debug)]
pub(super) enum Verdict {
    /// They are.
    Fine,
    /// They are, unless this goes on.
    Trouble(Error),
    /// They would fare no better.
    Hopeless(Error),
}

/// Returns what to write down of a row, and whether to go on.
pub(super) fn judge(result: Result<Response<Pet>, Error>) -> (Event, Verdict) {
    let error = match result {
        Ok(pet) => return (Event::Created(pet.id), Verdict::Fine),
        Err(error) => error,
    };
    let status = error.status().map_or(0, |status| status.as_u16());
    if error.is_rate_limited() {
        return (Event::Unsent, Verdict::Hopeless(error));
    }
    match status {
        // The key, or the address: the same for every row.
        401 | 403 | 404 | 405 | 410 => (Event::Unsent, Verdict::Hopeless(error)),
        400..=499 if !error.may_have_been_processed() => {
            let reason = error.message().map_or_else(|| error.to_string(), ToOwned::to_owned);
            (Event::Rejected(format!("{status}: {reason}")), Verdict::Fine)
        }
        _ if error.may_have_been_processed() => {
            (Event::Unknown(error.to_string()), Verdict::Trouble(error))
        }
        _ if matches!(error.kind(), ErrorKind::Config | ErrorKind::InvalidRequest) => {
            (Event::Unsent, Verdict::Hopeless(error))
        }
        _ => (Event::Unsent, Verdict::Trouble(error)),
    }
}

/// Counts troubles that follow one another.
#[derive(Debug, Default)]
pub(super) struct Troubles(u32);

impl Troubles {
    /// Returns the reason to stop, if there is one.
    pub(super) fn take_in(&mut self, verdict: Verdict) -> Option<Error> {
        match verdict {
            Verdict::Fine => self.0 = 0,
            Verdict::Hopeless(error) => return Some(error),
            Verdict::Trouble(error) => {
                self.0 += 1;
                if self.0 >= PATIENCE {
                    return Some(error);
                }
            }
        }
        None
    }
}
