//! The connections: accepting them, speaking HTTP/1.1 on each, and ending them when the server stops.
//! What a request is answered is left to `router`.

mod connection;
mod door;
mod linger;
mod serve;

pub(crate) use self::{door::Door, serve::serve};
