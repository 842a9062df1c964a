//! The connections: accepting them, with TLS where it is asked for, speaking HTTP/1.1 or HTTP/2 on each, holding them to the limits,
//! doing to them what faults want of the socket, and ending them when the server stops. What a request
//! is answered is left to `router`.

mod answering;
mod connection;
mod door;
mod farewell;
mod handshake;
mod link;
mod message;
mod refusal;
mod serve;
mod stage;
mod staged;
mod tracked;
mod wire;

pub(crate) use self::{door::Door, serve::serve};
