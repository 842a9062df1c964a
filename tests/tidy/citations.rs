//! Checks that the sections and rules of the specification that comments and texts cite exist.

use super::{CRATES, files, read};

/// Returns the number at the start of a text, such as `4.3`.
fn number(text: &str) -> &str {
    let is_other = |c: char| !c.is_ascii_digit() && c != '.';
    let end = text.find(is_other).unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// The citations of a text: the number of a section, and of its rule if one is named.
fn citations(text: &str) -> Vec<(String, Option<String>)> {
    // A citation may span two lines of a comment.
    let lines = text
        .lines()
        .map(|line| line.trim().trim_start_matches(['/', '!', '#']).trim_start());
    let text = lines.collect::<Vec<_>>().join(" ");
    let cited = text.split("pecification, section ").skip(1).map(|rest| {
        let section = number(rest);
        let rule = rest[section.len()..].strip_prefix(", rule");
        let rule = rule.map(|rule| number(rule.trim_start_matches(['s', ' '])).to_owned());
        (section.to_owned(), rule)
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
    let specification = read("petstore-mock/guide/specification.md");
    let folders = CRATES.iter().chain(&["tests", "examples", ".github"]);
    let texts = folders.flat_map(|folder| files(folder, &["rs", "md", "yaml", "toml"]));
    let texts = texts.chain(["README.md".into(), "CHANGELOG.md".into()]);
    let (mut count, mut wrong) = (0, Vec::new());
    // This file has the words that introduce a citation.
    for path in texts.filter(|path| !path.ends_with("citations.rs")) {
        for (section, rule) in citations(&read(&path)) {
            count += 1;
            let problem = problem(&specification, &section, rule.as_deref());
            wrong.extend(problem.map(|problem| format!("{}: {problem}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 30, "only {count} citations were found");
}
