//! The client across real sockets: what it sends, and what it makes of what comes back.

mod kit;
mod logs;
mod service;
mod wire;

mod blocks;
mod broken;
mod contract;
mod deprecation;
mod faults;
mod futures;
mod held_back;
mod keys;
mod limits;
mod messages;
mod not_sent;
mod odd_answers;
mod odd_values;
mod pace;
mod paging;
mod paging_guard;
mod programs;
mod quotas;
mod requests;
mod retries;
mod retry_after;
mod retry_budget;
mod rotation;
mod runtimes;
mod secrecy;
mod settings;
mod shaping;
mod shared;
mod sizes;
mod together;
mod told;
