//! The store in a file: what was answered 201 is there after the process was killed.
//!
//! One thread writes. It takes all changes that wait, writes them in one commit, makes them in memory,
//! and only then says that they are made: so a thousand creations at once do not cost a thousand
//! commits, and nobody sees a pet that could still be lost.

#[cfg(feature = "data")]
mod error;
#[cfg(feature = "data")]
mod file;
#[cfg(feature = "data")]
mod tables;
#[cfg(feature = "data")]
mod writer;

#[cfg(not(feature = "data"))]
mod off;

#[cfg(feature = "data")]
pub use self::error::DataError;
#[cfg(not(feature = "data"))]
pub(crate) use self::off::Data;
#[cfg(feature = "data")]
pub(crate) use self::writer::Data;
