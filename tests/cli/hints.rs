//! Follows every hint that a test of an import prints, and counts the pets at the service: no hint
//! creates a pet twice, or loses a row.

use std::collections::{BTreeMap, BTreeSet};

use super::harness::Ran;

/// A command, and what it imports.
#[derive(Clone)]
pub(super) struct Command {
    pub(super) line: String,
    pub(super) stdin: Option<String>,
    /// The names of its inputs. A hint is about the inputs of the command that printed it.
    inputs: Vec<String>,
}

/// The hints of a scene, and the inputs of its imports.
#[derive(Default)]
pub(super) struct Hints {
    /// The commands that hints name, and that were not run yet.
    open: Vec<Command>,
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

    /// Returns a command line that a test runs.
    pub(super) fn command(&self, line: &str, stdin: Option<&str>, home: &str) -> Command {
        let words = words(line);
        let is_named = |name: &&String| words.contains(&format!("{home}/{name}"));
        let is_piped = |name: &&String| stdin == self.texts[*name].last().map(String::as_str);
        let inputs = self.texts.keys();
        let inputs = inputs.filter(|name| is_named(name) || is_piped(name));
        Command {
            line: line.to_owned(),
            stdin: stdin.map(str::to_owned),
            inputs: inputs.cloned().collect(),
        }
    }

    /// Notes the hints that a command printed. What is only an option is added to the command.
    pub(super) fn take(&mut self, command: &Command, ran: &Ran, home: &str) {
        let lines = ran.stderr.lines();
        for hint in lines.filter_map(|line| line.strip_prefix("hint: ")) {
            let hint = hint.replace("FILE", "HOME/FILE").replace("HOME", home);
            for quoted in hint.split('`').skip(1).step_by(2) {
                let line = match quoted.strip_prefix("petstore ") {
                    Some(line) => line.to_owned(),
                    None if quoted.starts_with("--") => format!("{} {quoted}", command.line),
                    None => continue,
                };
                if self.seen.insert(line.clone()) {
                    self.open.push(Command {
                        line,
                        ..command.clone()
                    });
                }
            }
        }
    }

    /// Returns a command to run.
    pub(super) fn next(&mut self) -> Option<Command> {
        self.open.pop()
    }

    /// Checks that no pet exists more often than a row of an input says, that all pets exist if the
    /// command says so, and that else it says what is left.
    pub(super) fn check(&self, command: &Command, ran: &Ran, names: &[String]) {
        let pets = counted(names);
        let seen = &self.seen;
        let mut most = BTreeMap::<String, usize>::new();
        for texts in self.texts.values() {
            let mut rows = BTreeMap::new();
            for (name, count) in texts.iter().flat_map(|text| counted(&names_of(text))) {
                let most: &mut usize = rows.entry(name).or_default();
                *most = count.max(*most);
            }
            for (name, count) in rows {
                *most.entry(name).or_default() += count;
            }
        }
        for (name, pets) in &pets {
            let rows = most.get(name).copied().unwrap_or_default();
            let what = format!("{pets} pets `{name}` for {rows} rows, after {seen:?}");
            assert!(*pets <= rows, "{what}");
        }
        let line = &command.line;
        if !line.contains("pets import") || line.contains("--dry-run") {
            return;
        }
        let what = format!("{line}\n{}", ran.stderr);
        // Meanwhile, the test may have imported the file to another service.
        let is_bound = ran.stderr.contains(" was imported to ");
        assert!(ran.code != 2 || is_bound, "a hint that cannot work: {what}");
        if ran.code != 0 {
            let is_said = ran.code != 8 || ran.stderr.contains("the import is not complete: ");
            assert!(is_said, "it does not say what is left: {what}");
            return;
        }
        for text in command
            .inputs
            .iter()
            .filter_map(|name| self.texts[name].last())
        {
            for (name, rows) in counted(&names_of(text)) {
                let pets = pets.get(&name).copied().unwrap_or_default();
                assert!(pets >= rows, "{pets} pets `{name}` for {rows} rows: {what}");
            }
        }
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let open: Vec<_> = self.open.iter().map(|command| &command.line).collect();
            assert!(open.is_empty(), "hints that no test followed: {open:?}");
        }
    }
}

/// Splits a command line into words, as a shell does: what is quoted is one word, or a part of one.
pub(super) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            ' ' if !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn counted(names: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.clone()).or_default() += 1;
    }
    counts
}

/// Returns the names of the rows of an input.
fn names_of(text: &str) -> Vec<String> {
    if text.trim_start().starts_with('{') {
        let rows = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
        let names = rows.flatten().map(|row| row["name"].clone());
        return names
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
    }
    let delimiter = if text.contains(';') { b';' } else { b',' };
    let mut reader = csv::ReaderBuilder::new();
    reader.flexible(true).delimiter(delimiter);
    let mut reader = reader.from_reader(text.as_bytes());
    let header = reader.headers().cloned().unwrap_or_default();
    let Some(column) = header.iter().position(|column| column == "name") else {
        return Vec::new();
    };
    let records = reader.records().flatten();
    records
        .filter_map(|record| record.get(column).map(str::to_owned))
        .collect()
}
