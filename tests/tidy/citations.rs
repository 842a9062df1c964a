//! Checks that the sections and rules of the specification that comments and texts cite exist.

use std::path::PathBuf;

use super::{CRATES, files, read};

const SPECIFICATION: &str = "petstore-mock/guide/specification.md";

/// All files that hold text with citations.
fn texts() -> Vec<PathBuf> {
    let folders = CRATES.iter().chain(&["tests", "examples", ".github"]);
    let mut texts: Vec<_> = folders
        .flat_map(|folder| files(folder, &["rs", "md", "yaml", "toml"]))
        // It has the words that introduce a citation.
        .filter(|path| !path.ends_with("citations.rs"))
        .collect();
    texts.extend(["README.md", "CHANGELOG.md"].map(PathBuf::from));
    texts
}

/// Joins the lines of comments, because a citation may span two lines.
fn joined(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.trim().trim_start_matches(['/', '!', '#']).trim_start());
    lines.collect::<Vec<_>>().join(" ")
}

/// Returns the number at the start of a text, such as `4.3`.
fn number(text: &str) -> &str {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// The citations of a text: the number of a section, and of its rule if one is named.
fn citations(text: &str) -> Vec<(String, Option<String>)> {
    let text = joined(text);
    let cited = text.split_inclusive("pecification, section ").skip(1);
    let cited = cited.map(|rest| {
        let section = number(rest);
        let rest = &rest[section.len()..];
        let rule = ["", "s"]
            .iter()
            .find_map(|plural| rest.strip_prefix(&format!(", rule{plural} ")));
        (section.to_owned(), rule.map(|rule| number(rule).to_owned()))
    });
    cited.collect()
}

/// Returns what is wrong with a citation.
fn problem(specification: &str, section: &str, rule: Option<&str>) -> Option<String> {
    let is_heading = |line: &&str| {
        let title = line.trim_start_matches('#');
        title.len() < line.len() && number(title.trim_start()) == section
    };
    let mut lines = specification.lines().skip_while(|line| !is_heading(line));
    if lines.next().is_none() {
        return Some(format!("there is no section {section}"));
    }
    let rule = format!("{}. ", rule?);
    let mut section_lines = lines.take_while(|line| !line.starts_with("## "));
    let is_there = section_lines.any(|line| line.starts_with(&rule));
    (!is_there).then(|| format!("section {section} has no rule {rule}"))
}

#[test]
fn every_cited_section_of_the_specification_exists() {
    let specification = read(SPECIFICATION);
    let (mut count, mut wrong) = (0, Vec::new());
    for path in texts() {
        for (section, rule) in citations(&read(&path)) {
            count += 1;
            let problem = problem(&specification, &section, rule.as_deref());
            wrong.extend(problem.map(|problem| format!("{}: {problem}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 30, "only {count} citations were found");
}
