//! The client across real sockets: what it sends, and what it makes of what comes back.

mod kit;
mod wire;

mod broken;
mod contract;
mod held_back;
mod odd_answers;
mod odd_values;
mod requests;
mod retries;
mod retry_after;
mod sizes;
