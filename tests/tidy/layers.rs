//! `lib.rs` is the diagram of its crate: a module uses only the groups of `mod` lines above its
//! own.

use std::collections::HashMap;

use super::{CRATES, read, rust_files};

/// The group of each module: the groups are the blocks of `mod` lines between blank lines.
fn groups(lib: &str) -> HashMap<String, usize> {
    let mut groups = HashMap::new();
    let mut group = 0;
    for line in lib.lines() {
        let line = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        match line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            Some(module) => {
                groups.insert(module.to_owned(), group);
            }
            None if line.is_empty() => group += 1,
            None => {}
        }
    }
    groups
}

/// The modules that code names through `crate::`, alone or in braces.
fn named(code: &str) -> Vec<String> {
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or(""));
    let code: String = lines.collect();
    let mut found = Vec::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            Some(list) => found.extend(first_names(list)),
            None => found.push(name(after)),
        }
    }
    found
}

/// The names that open the members of a list in braces, without what is nested deeper.
fn first_names(list: &str) -> Vec<String> {
    let mut depth = 0;
    let mut names = vec![name(list.trim_start())];
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(list[at + 1..].trim_start())),
            _ => {}
        }
    }
    names
}

fn name(code: &str) -> String {
    code.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The uses that point sideways or upwards, as text.
fn offences(name: &str) -> Vec<String> {
    let lib = read(format!("{name}/src/lib.rs"));
    let groups = groups(&lib);
    assert!(groups.len() > 3, "{name}: {groups:?}");
    let mut offences = Vec::new();
    for path in rust_files(&format!("{name}/src")) {
        let inside = path.strip_prefix(format!("{name}/src")).unwrap();
        let module = inside.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        let Some(own) = groups.get(module) else { continue };
        let text = read(&path);
        // What a unit test uses is no dependency.
        let text = text.split("#[cfg(test)]").next().unwrap_or("");
        for used in named(text) {
            let Some(group) = groups.get(&used) else { continue };
            if used != module && group >= own {
                offences.push(format!("{}: {module} uses {used}", path.display()));
            }
        }
    }
    offences
}

#[test]
fn every_module_uses_only_the_layers_above_its_own() {
    for name in CRATES {
        assert_eq!(offences(name), [""; 0]);
    }
}

#[test]
fn reads_the_diagram_and_the_uses_as_meant() {
    let groups = groups("mod a;\npub mod b;\n\nmod c;\n\npub use a::X;\n");
    assert_eq!((groups["a"], groups["b"], groups["c"]), (0, 0, 1));
    let code = "use crate::{a::{self, X}, b}; // crate::c\nlet x = crate::c::y();";
    assert_eq!(named(code), ["a", "b", "c"]);
}
