//! Checks that the files exist which the documents name.

use super::{CRATES, files, read, root};

/// Returns the targets of the links that lead to files.
fn links(text: &str) -> Vec<&str> {
    let inline = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    let targets = inline.chain(lines.map(|(_, target)| target));
    let files = targets.filter_map(|target| target.split('#').next());
    files
        .filter(|file| !file.is_empty() && !file.contains(':'))
        .collect()
}

#[test]
fn the_links_of_the_documents_lead_to_files() {
    let folders = CRATES.iter().chain(&[".github"]);
    let mut documents: Vec<_> = folders.flat_map(|name| files(name, &["md"])).collect();
    documents.extend(["README.md".into(), "CHANGELOG.md".into()]);
    let mut count = 0;
    for document in documents {
        let folder = root().join(document.parent().unwrap());
        for link in links(&read(&document)) {
            count += 1;
            let exists = folder.join(link).exists();
            assert!(exists, "{} links to {link}", document.display());
        }
    }
    assert!(count > 30, "only {count} links were found");
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
        let folder = folder_after(&text, "All paths are below `").map(|folder| root().join(folder));
        for word in text.split('`').skip(1).step_by(2) {
            let starts = ["petstore-", "tests/", ".ci/", ".github/"];
            let path = match &folder {
                _ if word.contains(char::is_whitespace) => continue,
                _ if starts.iter().any(|start| word.starts_with(start)) => root().join(word),
                Some(folder) if word.ends_with(".rs") => folder.join(word),
                _ => continue,
            };
            count += 1;
            assert!(path.exists(), "{} names {word}", page.display());
        }
    }
    assert!(count > 50, "only {count} paths were found");
}

#[test]
fn the_paths_in_the_pictures_of_the_architecture_exist() {
    let page = read(".github/ARCHITECTURE.md");
    let mut count = 0;
    for section in page.split("```mermaid").skip(1) {
        let (picture, text) = section.split_once("```").expect("a picture ends");
        let folder = folder_after(text, "All paths of this picture are below `")
            .expect("the text after a picture names a folder");
        // The last line of a label has the paths.
        let labels = picture.split('"').skip(1).step_by(2);
        let paths = labels.filter_map(|label| label.rsplit_once("<br>"));
        for path in paths.flat_map(|(_, paths)| paths.split(", ")) {
            count += 1;
            let exists = root().join(folder).join(path).exists();
            assert!(
                exists,
                "a picture names {path}, which is not below {folder}"
            );
        }
    }
    assert!(count > 20, "only {count} paths were found");
}
