//! What faults do: one kind, one file. Each is a pure change of an [`Answer`]; what it needs of the
//! socket it writes into the answer's [`Script`], which `accept` carries out.

mod answer;
mod bandwidth;
mod body;
mod content_type;
mod cut;
mod date;
mod delay;
mod empty_reply;
pub(super) mod field;
mod hang;
mod header;
mod make;
mod malformed_json;
mod pet_status;
mod rate_headers;
mod reset;
mod retry_after;
mod script;
mod seconds;
mod stall;
mod status;
mod trickle;
mod value;

pub(crate) use self::{
    answer::Answer,
    script::{At, End, How, Pace, Script},
};
pub use self::{delay::Delay, rate_headers::RateFault, retry_after::RetryAfter, value::Effect};
