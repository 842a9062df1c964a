//! A snapshot of the client's public API, which shows every change of it. Every `pub` item is
//! reachable, because `unreachable_pub` is a warning.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::{read, rust_files};

/// Crates whose types appear in no signature.
const FOREIGN: [&str; 6] = ["reqwest", "hyper", "rustls", "tokio", "tower", "redis::"];

/// The public items of a file and its implementations of traits, one a line, without documentation and
/// bodies.
fn items(code: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut derived = None;
    let mut lines = code.lines().map(str::trim_end);
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let start = line.trim_start();
        if start.starts_with("#[derive(") {
            derived = Some(start);
        }
        if start.starts_with("#[") || start.starts_with("///") {
            continue;
        }
        let derived = derived.take();
        if line.starts_with("impl") && line.contains(" for ") {
            items.push(line.trim_end_matches([' ', '{', '}']).to_owned());
        }
        if !start.starts_with("pub ") || start.starts_with("pub mod") {
            continue;
        }
        items.extend(derived.map(str::to_owned));
        let is_block = start.starts_with("pub enum ") || start.starts_with("pub trait ");
        let mut item = start.to_owned();
        let is_whole = |item: &str| match is_block {
            true => item.ends_with(" }") || item.ends_with("{}"),
            false if item.contains('(') => item.ends_with([';', '{', '}']),
            false => item.ends_with([',', ';', '{', '}']),
        };
        while !is_whole(&item) {
            let Some(next) = lines.next() else { break };
            let is_end = next == format!("{}}}", " ".repeat(indent));
            let next = next.trim_start();
            if is_end || !(next.starts_with("//") || next.starts_with("#[")) {
                write!(item, " {next}").unwrap();
            }
            if is_end {
                break;
            }
        }
        // What a tuple struct holds is private.
        let shown = if item.starts_with("pub struct ") {
            item.split('(').next()
        } else {
            None
        };
        items.push(
            shown
                .unwrap_or(&item)
                .trim_end_matches(['{', ' '])
                .to_owned(),
        );
    }
    items
}

/// Returns the name that a `pub` type or trait gives itself.
fn type_name(item: &str) -> Option<&str> {
    let rest = ["pub struct ", "pub enum ", "pub trait "]
        .iter()
        .find_map(|kind| item.strip_prefix(kind));
    rest?.split(|c: char| !c.is_alphanumeric()).next()
}

#[test]
fn the_public_surface_of_the_client_is_what_was_agreed() {
    let mut surface = String::new();
    let read_items = |path: PathBuf| {
        let text = read(&path);
        let code = text
            .split("#[cfg(test)]\nmod tests")
            .next()
            .unwrap_or_default();
        (items(code), path)
    };
    let files: Vec<_> = rust_files("petstore-client/src")
        .into_iter()
        .map(read_items)
        .collect();
    let all = files.iter().flat_map(|(items, _)| items);
    let types: Vec<_> = all.filter_map(|item| type_name(item)).collect();
    for (items, path) in &files {
        // Of a type's traits and of a trait's types, both or one are public.
        let is_shown = |item: &&String| {
            let mut words = item.split(|c: char| !c.is_alphanumeric());
            !item.starts_with("impl") || words.any(|word| types.contains(&word))
        };
        let items: Vec<_> = items.iter().filter(is_shown).collect();
        if !items.is_empty() {
            writeln!(
                surface,
                "{}",
                path.strip_prefix("petstore-client/src").unwrap().display()
            )
            .unwrap();
        }
        for item in items {
            let is_signature = !item.starts_with("pub use ");
            let foreign = FOREIGN
                .iter()
                .find(|foreign| is_signature && item.contains(*foreign));
            assert_eq!(foreign, None, "{}: {item}", path.display());
            writeln!(surface, "    {item}").unwrap();
        }
    }
    insta::assert_snapshot!(surface);
}

#[test]
fn reads_items_without_their_documentation_and_bodies() {
    let code = "/// Doc.\n#[derive(Debug)]\n/// Doc.\npub enum E {\n    /// Doc.\n    A,\n    #[x]\n    B(u8),\n}\n\npub(crate) fn no() {}\n\
                impl E {\n    pub fn yes(\n        self,\n    ) -> u8 {\n        1\n    }\n}\n#[derive(Clone)]\nstruct P;\nimpl From<P> for S {\n}\n\
                pub struct S {\n    /// Doc.\n    pub field: u8,\n    private: u8,\n}\npub use a::b;";
    let expected = [
        "#[derive(Debug)]",
        "pub enum E { A, B(u8), }",
        "pub fn yes( self, ) -> u8",
        "impl From<P> for S",
        "pub struct S",
        "pub field: u8,",
        "pub use a::b;",
    ];
    assert_eq!(items(code), expected);
}
