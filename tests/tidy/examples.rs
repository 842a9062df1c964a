//! Checks that the documentation of each public type that has a method shows an example, and that each
//! example program says which other crates it needs.

use std::collections::BTreeSet;

use super::{read, rust_files};

const CRATES_WITH_SURFACE: [&str; 2] = ["petstore-client", "petstore-mock"];

/// Returns the last segment of the path at the start of `code`.
fn last_segment(code: &str) -> &str {
    let end = code.find(['<', '(', ' ', '{', ';']).unwrap_or(code.len());
    let path = code[..end].trim_end_matches(':');
    path.rsplit("::").next().unwrap_or(path)
}

/// Returns the traits and types of a public surface that have methods of their own.
fn with_methods(surface: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut implemented = None;
    for line in surface.lines() {
        let line = without_attributes(line);
        if let Some(name) = line.strip_prefix("pub trait ") {
            implemented = Some(last_segment(name));
        } else if let Some(block) = line.strip_prefix("impl") {
            let is_of_trait = block.contains(" for ");
            implemented = (!is_of_trait).then(|| implemented_type(block));
        } else if line.starts_with("pub") && line.contains("fn ") {
            found.extend(implemented);
        } else {
            implemented = None;
        }
    }
    found
}

/// Returns the type that an `impl` block is for. `block` is the text after `impl`.
fn implemented_type(block: &str) -> &str {
    match block.split_once("> ") {
        Some((parameters, name)) if parameters.starts_with('<') => last_segment(name),
        _ => last_segment(block.trim_start()),
    }
}

fn without_attributes(line: &str) -> &str {
    match line
        .strip_prefix("#[")
        .and_then(|rest| rest.split_once("] "))
    {
        Some((_, rest)) => without_attributes(rest),
        None => line,
    }
}

/// Returns the types in a source file whose documentation, or that of their methods, has an example.
fn with_example(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut has_example = false;
    let mut implemented = None;
    for line in text.lines() {
        let code = line.trim_start();
        if code.starts_with("/// ```") {
            has_example = true;
            found.extend(implemented);
        }
        for kind in ["pub struct ", "pub enum ", "pub trait "] {
            if let Some(name) = code.strip_prefix(kind) {
                found.extend(has_example.then(|| last_segment(name)));
            }
        }
        if let Some(block) = line.strip_prefix("impl") {
            implemented = (!block.contains(" for ")).then(|| implemented_type(block));
        }
        if code.is_empty() {
            has_example = false;
        }
        if line == "}" {
            implemented = None;
        }
    }
    found
}

#[test]
fn each_public_type_with_a_method_has_an_example() {
    for name in CRATES_WITH_SURFACE {
        let surface = read(format!(".ci/surfaces/{name}.txt"));
        let types = with_methods(&surface);
        assert!(types.len() > 20, "{name} has only {types:?}");
        let texts: Vec<_> = rust_files(&format!("{name}/src"))
            .iter()
            .map(read)
            .collect();
        let shown: BTreeSet<_> = texts.iter().flat_map(|text| with_example(text)).collect();
        let missing: Vec<_> = types.difference(&shown).collect();
        assert!(missing.is_empty(), "{name}: add examples to {missing:?}");
    }
}

#[test]
fn a_type_with_a_method_and_without_an_example_is_found() {
    let surface = "\
#[non_exhaustive] pub struct x::One
impl x::One
pub fn x::One::get(&self) -> u8
impl core::clone::Clone for x::Two
pub fn x::Two::clone(&self) -> x::Two
impl<T> petstore_x::Three<T>
pub const fn petstore_x::Three<T>::new() -> Self
pub trait x::Four: core::marker::Send
pub fn x::Four::four()
pub trait x::Five: core::marker::Send
";
    let names = ["Four", "One", "Three"];
    assert!(with_methods(surface).into_iter().eq(names));
    let source = "
/// ```
/// ```
#[derive(Debug)]
pub struct One;

pub struct Two;

impl<T> Three<T> {
    /// ```
    /// ```
    pub fn new() {}
}

impl Four for Two {
    /// ```
    /// ```
    fn four() {}
}
";
    assert!(with_example(source).into_iter().eq(["One", "Three"]));
}

/// Returns the crates that a program names, of those that the workspace depends on.
fn crates_of<'m>(program: &str, manifest: &'m str) -> BTreeSet<&'m str> {
    let (_, dependencies) = manifest.split_once("[workspace.dependencies]").unwrap();
    let names = dependencies
        .lines()
        .take_while(|line| !line.starts_with('['));
    let names = names
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name);
    names
        .filter(|name| names_crate(program, &name.replace('-', "_")))
        .collect()
}

fn names_crate(program: &str, name: &str) -> bool {
    // The client re-exports the crates whose types are part of its API.
    if program.contains(&format!("use petstore_client::{name}::{{self")) {
        return false;
    }
    let path = format!("{name}::");
    program.match_indices(&path).any(|(at, _)| {
        let before = program[..at].chars().next_back();
        !before.is_some_and(|it| it.is_alphanumeric() || it == '_' || it == ':')
    })
}

/// Returns the crates that the header of a program says to add.
fn added(program: &str) -> BTreeSet<&str> {
    let header = program.split("\n#![").next().unwrap_or_default();
    match header.split_once("`cargo add ") {
        Some((_, rest)) => {
            let command = rest.split('`').next().unwrap_or_default();
            command
                .split_whitespace()
                .filter(|word| *word != "//!")
                .collect()
        }
        None => BTreeSet::new(),
    }
}

#[test]
fn each_example_says_which_crates_to_add() {
    let manifest = read("Cargo.toml");
    // Every program needs these, as the READMEs say.
    let usual = ["petstore-client", "petstore-mock", "tokio"];
    for folder in ["examples", "petstore-client/examples"] {
        for path in rust_files(folder) {
            let program = read(&path);
            let mut needed = crates_of(&program, &manifest);
            needed.retain(|name| !usual.contains(name));
            assert_eq!(added(&program), needed, "`cargo add` in {}", path.display());
        }
    }
}
