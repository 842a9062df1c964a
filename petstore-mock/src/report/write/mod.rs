//! The forms of the report, one file each. None of them repeats what a client sent: evidence is made
//! of numbers, times and names of ours.

mod json;
mod junit;
mod markdown;
mod page;
mod text;
mod units;

#[cfg(test)]
mod sample;

pub(super) use self::{
    json::json,
    junit::junit,
    markdown::markdown,
    page::page,
    text::{summary, text},
    units::seconds,
};
