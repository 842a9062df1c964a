//! Tests of the rules with recordings, each judged as if it had just happened.
//!
//! - `corpus`: real clients of many libraries, alone; and clients of several workers, honest and guilty.
//! - `examples`: the examples of the guide, and the numbers in the rules.

mod recording;

mod corpus;
mod examples;
