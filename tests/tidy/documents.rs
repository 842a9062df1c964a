//! Checks that the files exist which the documents name.

use std::path::{Path, PathBuf};

use super::{CRATES, files, read, root};

/// All documents.
fn documents() -> Vec<PathBuf> {
    let folders = CRATES.iter().chain(&[".github"]);
    let mut documents: Vec<_> = folders.flat_map(|name| files(name, &["md"])).collect();
    documents.extend(["README.md", "CHANGELOG.md"].map(PathBuf::from));
    documents
}

/// Returns the targets of the links that lead to files.
fn links(text: &str) -> Vec<&str> {
    let inline = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let defined = text
        .lines()
        .filter_map(|line| line.strip_prefix('[')?.split_once("]: "))
        .map(|(_, target)| target);
    let targets = inline.chain(defined).filter_map(|it| it.split('#').next());
    targets
        .filter(|it| !it.is_empty() && !it.contains(':'))
        .collect()
}

#[test]
fn the_links_of_the_documents_lead_to_files() {
    let mut count = 0;
    for document in documents() {
        let text = read(&document);
        let folder = root().join(document.parent().unwrap());
        for link in links(&text) {
            count += 1;
            let target = folder.join(link);
            assert!(target.exists(), "{} links to {link}", document.display());
        }
    }
    assert!(count > 30, "only {count} links were found");
}

/// Returns the words in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|word| !word.contains(char::is_whitespace))
}

/// Returns the folder that a text names after `start`.
fn folder_after<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(start)?;
    rest.split('`').next()
}

#[test]
fn the_paths_in_the_contributors_pages_exist() {
    let mut count = 0;
    for page in files(".github", &["md"]) {
        let text = read(&page);
        let folder = folder_after(&text, "All paths are below `").unwrap_or_default();
        let folder = Path::new(folder);
        for word in quoted(&text) {
            let path = match word {
                _ if ["petstore-", "tests/", ".ci/", ".github/"]
                    .iter()
                    .any(|start| word.starts_with(start)) =>
                {
                    PathBuf::from(word)
                }
                _ if word.ends_with(".rs") && folder != Path::new("") => folder.join(word),
                _ => continue,
            };
            count += 1;
            assert!(
                root().join(&path).exists(),
                "{} names {}",
                page.display(),
                path.display()
            );
        }
    }
    assert!(count > 50, "only {count} paths were found");
}

/// Returns the paths that a picture names: the last lines of its labels.
fn paths_of_picture(picture: &str) -> impl Iterator<Item = &str> {
    let labels = picture.split('"').skip(1).step_by(2);
    let last_lines = labels.filter_map(|label| label.rsplit_once("<br>"));
    last_lines.flat_map(|(_, paths)| paths.split(", "))
}

#[test]
fn the_paths_in_the_pictures_of_the_architecture_exist() {
    let page = read(".github/ARCHITECTURE.md");
    let mut count = 0;
    for section in page.split("```mermaid").skip(1) {
        let (picture, text) = section.split_once("```").expect("a picture ends");
        let folder = folder_after(text, "All paths of this picture are below `")
            .expect("the text after a picture names a folder");
        for path in paths_of_picture(picture) {
            count += 1;
            assert!(
                root().join(folder).join(path).exists(),
                "a picture of ARCHITECTURE.md names {path}, which is not below {folder}"
            );
        }
    }
    assert!(count > 20, "only {count} paths were found");
}
