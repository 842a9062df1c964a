//! The pets and orders: adding, finding and paging, in memory. Pure; the lock around it is `world`'s,
//! and how a page is asked for over HTTP is `extract`'s.

mod change;
mod value;

pub use self::change::ChangeError;
pub(crate) use self::{
    change::Change,
    value::{Order, Store},
};
