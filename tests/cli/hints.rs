//! Follows every hint that a test of an import prints, and counts the pets at the service: no hint
//! creates a pet twice.

use std::collections::{BTreeMap, BTreeSet};

use super::harness::Ran;

/// The hints of a scene, and the inputs of its imports.
#[derive(Default)]
pub(super) struct Hints {
    /// The commands that hints name, and that were not run yet.
    open: Vec<String>,
    seen: BTreeSet<String>,
    /// All texts that a file had.
    texts: BTreeMap<String, Vec<String>>,
}

impl Hints {
    /// Notes the text of a file, or of standard input.
    pub(super) fn input(&mut self, name: &str, text: &str) {
        let texts = self.texts.entry(name.to_owned()).or_default();
        texts.push(text.to_owned());
    }

    /// Notes the hints that a command printed. What is only an option is added to the command.
    pub(super) fn take(&mut self, line: &str, ran: &Ran, home: &str) {
        let lines = ran.stderr.lines();
        for hint in lines.filter_map(|line| line.strip_prefix("hint: ")) {
            let hint = hint.replace("FILE", "HOME/FILE").replace("HOME", home);
            for quoted in hint.split('`').skip(1).step_by(2) {
                let command = match quoted.strip_prefix("petstore ") {
                    Some(command) => command.to_owned(),
                    None if quoted.starts_with("--") => format!("{line} {quoted}"),
                    None => continue,
                };
                if self.seen.insert(command.clone()) {
                    self.open.push(command);
                }
            }
        }
    }

    /// Returns the words of a command to run.
    pub(super) fn next(&mut self) -> Option<Vec<String>> {
        let command = self.open.pop()?;
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
    pub(super) fn check(&self, names: &[String]) {
        let mut pets = BTreeMap::<&str, usize>::new();
        for name in names {
            *pets.entry(name).or_default() += 1;
        }
        for (name, pets) in pets {
            let most = |texts: &Vec<String>| texts.iter().map(|text| count(text, name)).max();
            let rows: usize = self.texts.values().filter_map(most).sum();
            let seen = &self.seen;
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
            let open = &self.open;
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
    reader.flexible(true).delimiter(delimiter);
    let mut reader = reader.from_reader(text.as_bytes());
    let records = reader.records().flatten();
    records
        .filter(|record| record.iter().any(|cell| cell == name))
        .count()
}
