//! The plans of keys and their quotas (specification, section 8). Pure functions of `now`.

mod plan;
mod window;

pub(crate) use self::window::{Allowance, Exhausted, Period, Quota, Rate, Used};
pub use self::{
    plan::{ParsePlanError, Plan},
    window::{RateHeaders, Window},
};
