//! Follows every hint that a test of an import prints, and counts the pets at the server: no hint
//! creates a pet twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use super::harness::Ran;

/// The hints of a scene, and the inputs of its imports.
#[derive(Default)]
pub(super) struct Hints {
    /// The commands that hints name, and that were not run yet.
    open: Mutex<Vec<String>>,
    seen: Mutex<BTreeSet<String>>,
    /// All texts that a file had.
    texts: Mutex<BTreeMap<String, Vec<String>>>,
}

impl Hints {
    /// Notes the text of a file, or of standard input.
    pub(super) fn input(&self, name: &str, text: &str) {
        let mut texts = self.texts.lock().unwrap();
        texts
            .entry(name.to_owned())
            .or_default()
            .push(text.to_owned());
    }

    /// Notes the hints that a command printed. What is only an option is added to the command.
    pub(super) fn take(&self, line: &str, ran: &Ran, home: &str) {
        for hint in ran
            .stderr
            .lines()
            .filter_map(|line| line.strip_prefix("hint: "))
        {
            let hint = hint
                .replace("HOME", home)
                .replace("FILE", &format!("{home}/FILE"));
            for quoted in hint.split('`').skip(1).step_by(2) {
                let command = match quoted.strip_prefix("petstore ") {
                    Some(command) => command.to_owned(),
                    None if quoted.starts_with("--") => format!("{line} {quoted}"),
                    None => continue,
                };
                if self.seen.lock().unwrap().insert(command.clone()) {
                    self.open.lock().unwrap().push(command);
                }
            }
        }
    }

    /// Returns the words of a command to run.
    pub(super) fn next(&self) -> Option<Vec<String>> {
        let command = self.open.lock().unwrap().pop()?;
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for c in command.chars() {
            match c {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                c => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        Some(words)
    }

    /// Checks that no pet exists more often than a row of an input says.
    pub(super) fn check<'n>(&self, names: impl Iterator<Item = &'n str>) {
        let mut pets = BTreeMap::<&str, usize>::new();
        for name in names {
            *pets.entry(name).or_default() += 1;
        }
        let texts = self.texts.lock().unwrap();
        for (name, pets) in pets {
            let most = |texts: &Vec<String>| texts.iter().map(|text| count(text, name)).max();
            let rows: usize = texts.values().filter_map(most).sum();
            let seen = self.seen.lock().unwrap();
            assert!(
                pets <= rows,
                "{pets} pets `{name}` for {rows} rows, after {seen:?}"
            );
        }
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let open = self.open.lock().unwrap();
            assert!(open.is_empty(), "hints that no test followed: {open:?}");
        }
    }
}

/// Returns how many rows of a text have a name.
fn count(text: &str, name: &str) -> usize {
    if text.trim_start().starts_with(['{', '[']) {
        return text.matches(&serde_json::json!(name).to_string()).count();
    }
    let delimiter = if text.contains(';') { b';' } else { b',' };
    let mut reader = csv::ReaderBuilder::new();
    let mut reader = reader
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(text.as_bytes());
    let cells = reader.records().flatten();
    cells
        .filter(|record| record.iter().any(|cell| cell == name))
        .count()
}
