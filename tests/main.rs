//! t
mod mock;
