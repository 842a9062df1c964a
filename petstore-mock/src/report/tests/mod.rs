//! Tests of the rules with recordings, each judged as if it had just happened.
//!
//! - `corpus`: real clients of many libraries, alone, as they were recorded.
//! - `company`: simulated clients of several workers, processes or users, honest and guilty. Their
//!   shapes are in `shapes`, and what they share in `simulation`.
//! - `examples`: the examples of the guide, and the numbers in the rules.

mod recording;
mod shapes;
mod simulation;

mod company;
mod corpus;
mod examples;
