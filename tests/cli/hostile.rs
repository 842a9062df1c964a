//! Commands against a server that answers with anything.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::select;

use super::harness::{Petstore, Ran};
use crate::client::{Act, Wire};
use crate::hostile::{Hostile, KEY, Reply, block_on, check, check_text, replies};

const FEW: (u32, u64) = (150, 3);
const MANY: (u32, u64) = (3_000, 4);

const COMMANDS: &[&str] = &[
    "pets list",
    "pets list --all -o json",
    "pets list --all --jq length",
    "pets list -o table -vvv",
    "pets get 1",
    "pets create Rex --category-id 7 -o json",
    "store orders -o json",
    "pets export",
    "pets export -o ndjson --fields id,name",
    "api /pets",
    "api /pets -i -vv",
    "api /pets --query limit=5 -o ndjson",
    "api /pets -d {}",
    "limits --refresh",
    "limits --refresh -o json",
    "doctor",
    "auth status",
    "pets list --error-format json -v",
];

/// Fails if a command violates a documented guarantee.
fn check_ran(line: &str, ran: &Ran) -> Result<(), TestCaseError> {
    check_text(&ran.stderr)?;
    prop_assert!(
        ran.stderr.len() < 200_000,
        "{} bytes of messages",
        ran.stderr.len()
    );
    prop_assert!(
        matches!(ran.code, 0 | 3..=9),
        "{}: exit {}: {}",
        line,
        ran.code,
        ran.stderr
    );
    prop_assert!(
        ran.code == 0 || !ran.stdout.contains(KEY),
        "{}: {}",
        line,
        ran.stdout
    );
    if ran.code == 0 && line.contains("-o json") {
        let document = serde_json::from_str::<serde_json::Value>(&ran.stdout);
        prop_assert!(document.is_ok(), "{}: {}", line, ran.stdout);
    }
    Ok(())
}

fn petstore(base: &str, home: &std::path::Path) -> Petstore {
    Petstore::with(base, KEY).home(home)
}

async fn command(replies: Vec<Reply>, line: &str) -> Result<u8, TestCaseError> {
    let server = Hostile::start(replies);
    let home = tempfile::tempdir().unwrap();
    let ran = petstore(&server.wire.base(), home.path()).run(line).await;
    check_ran(line, &ran)?;
    server.check()?;
    Ok(ran.code)
}

fn run_commands(cases: (u32, u64)) -> BTreeSet<u8> {
    let codes = RefCell::<BTreeSet<_>>::default();
    check((replies(), select(COMMANDS)), cases, |(replies, line)| {
        codes.borrow_mut().insert(block_on(command(replies, line))?);
        Ok(())
    });
    codes.into_inner()
}

/// Imports with a hostile server, and continues with one that works. Rows that the first server may
/// have processed must not be sent to the second one.
async fn import(replies: Vec<Reply>) -> Result<(), TestCaseError> {
    let server = Hostile::start(replies);
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("rows");
    let row = |number| format!("{{\"name\":\"pet {number}\",\"categoryId\":1}}\n");
    std::fs::write(&file, (1..=3).map(row).collect::<String>()).unwrap();
    let line = format!("pets import {}", file.display());
    let ran = petstore(&server.wire.base(), home.path()).run(&line).await;
    check_ran(&line, &ran)?;
    server.check()?;
    let [all, counted @ ..] = ran.summary();
    let whole = (all, counted.iter().sum::<usize>());
    prop_assert_eq!(whole, (3, 3), "{}", ran.stderr);
    let journal = home.path().join("rows.petstore-journal");
    let journal = std::fs::read(journal).unwrap_or_default();
    prop_assert!(
        !crate::hostile::contains(&journal, KEY.as_bytes()),
        "the key is in the journal"
    );

    let created = b"HTTP/1.1 201 OK\r\nContent-Length: 35\r\n\r\n{\"id\":9,\"name\":\"a\",\"categoryId\":1}  ";
    let good = Wire::start(move |_| Act::Answer(created.to_vec()));
    let ran = petstore(&good.base(), home.path()).run(&line).await;
    prop_assert!(
        matches!(ran.code, 0 | 2 | 8),
        "exit {}: {}",
        ran.code,
        ran.stderr
    );
    for request in good.seen() {
        let is_refused = server.may_be_refused(&request.body);
        prop_assert!(
            is_refused,
            "sent again: {}",
            String::from_utf8_lossy(&request.body)
        );
    }
    Ok(())
}

#[test]
fn every_command_ends_with_a_documented_code() {
    let codes = run_commands(FEW);
    // Every code must occur, so that its messages were checked.
    for code in [0, 3, 4, 5, 6, 7, 9] {
        assert!(codes.contains(&code), "{code} is missing in {codes:?}");
    }
}

#[test]
fn an_import_sends_no_row_twice_that_may_have_been_processed() {
    check(replies(), (FEW.0 / 2, FEW.1), |replies| {
        block_on(import(replies))
    });
}

#[test]
#[ignore = "it takes minutes"]
fn commands_and_imports_keep_promises_whatever_comes() {
    println!("{:?}", run_commands(MANY));
    check(replies(), (MANY.0 / 2, MANY.1), |replies| {
        block_on(import(replies))
    });
}
