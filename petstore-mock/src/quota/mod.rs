//! The quotas of the specification's section 8: what a key has used, has left, and when it gets more.
//! Pure functions of `now`; which key has which plan is left to `world`, the wording of a refusal to
//! `error`.

mod allowance;
mod window;

pub use self::{allowance::RateHeaders, window::Window};
pub(crate) use self::{
    allowance::{Allowance, Exhausted, Period},
    window::{Quota, Rate, Used},
};
