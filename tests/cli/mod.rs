//! The command line, in process: a snapshot pins standard output, standard error and the exit
//! code of a command together.

mod harness;

mod api;
mod completions;
mod doctor;
mod dry_run;
mod export;
mod failures;
mod help;
mod hints;
mod hostile;
mod import;
mod import_company;
mod import_files;
mod import_journal;
mod import_outage;
mod import_output;
mod import_pace;
mod key_command;
mod keys;
mod limits;
mod mistakes;
mod output;
mod pets;
mod profiles;
mod scene;
mod secrecy;
mod sessions;
mod shop;
mod streams;

pub(crate) use self::harness::Petstore;
