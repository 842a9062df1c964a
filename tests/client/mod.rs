//! The client across real sockets: what it sends, and what it makes of what comes back.

mod kit;
mod logs;
mod wire;

mod broken;
mod contract;
mod deprecation;
mod faults;
mod futures;
mod held_back;
mod keys;
mod limits;
mod messages;
mod odd_answers;
mod odd_values;
mod paging;
mod paging_guard;
mod quotas;
mod requests;
mod retries;
mod retry_after;
mod secrecy;
mod settings;
mod shaping;
mod shared;
mod sizes;
mod told;
