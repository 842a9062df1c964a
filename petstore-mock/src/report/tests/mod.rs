//! Tests of the rules, with recordings: exchanges of clients, each judged as if it had just
//! happened.
//!
//! - `corpus`: real clients of many libraries, alone, as they were recorded.
//! - `examples`: the examples of the guide.
//! - `company`: simulated clients of several workers, processes or users, honest and guilty. Their
//!   shapes are in `shapes`, and what they share in `simulation`.
//! - `evidence`: what findings show. `bounds`: what they may not exceed.
//! - `exact`: the numbers in the rules.

mod recording;
mod shapes;
mod simulation;

mod bounds;
mod company;
mod corpus;
mod evidence;
mod exact;
mod examples;
