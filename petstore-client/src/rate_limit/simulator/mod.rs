//! Simulations of real limiters in virtual time, beside a service that counts, refuses and bans.
//!
//! `world` runs the processes of a case, `service` is the service, and the other files are the stories: what users
//! must see, with numbers. Each story runs with a few seeds. With many, and with all of its variants:
//! `cargo test --release -p petstore-client --lib simulator -- --ignored --nocapture`

mod rng;
mod service;
mod table;
mod world;

mod faults;
mod sharing;
mod sole;
