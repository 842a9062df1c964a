//! The command line, in process: a snapshot pins standard output, standard error and the exit
//! code of a command together.

mod harness;

mod api;
mod configuration;
mod failures;
mod output;
mod pets;
mod secrecy;
mod streams;
mod terminal;
