//! Checks that the imports of each crate go one way: `lib.rs` groups its `mod` lines, a module uses only
//! the groups above its own, and no modules import each other in a circle.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{CRATES, files, read};

/// The code of each module.
type Modules = BTreeMap<String, String>;

/// The group of each module: the groups are the blocks of `mod` lines between blank lines.
fn groups(lib: &str) -> HashMap<String, usize> {
    let mut groups = HashMap::new();
    for (group, block) in lib.split("\n\n").enumerate() {
        for line in block.lines() {
            let line = line
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ");
            if let Some(module) = line.strip_prefix("mod ") {
                groups.insert(module.trim_end_matches(';').to_owned(), group);
            }
        }
    }
    groups
}

/// The source of a crate without its tests, by module path such as `rate_limit::ledger`.
fn modules(name: &str) -> Modules {
    let source = format!("{name}/src");
    let paths = files(&source, &["rs"]).into_iter();
    let texts: Vec<_> = paths.map(|path| (read(&path), path)).collect();
    let only_in_tests: HashSet<_> = texts
        .iter()
        .flat_map(|(text, _)| test_modules(text))
        .collect();
    let mut modules = Modules::new();
    for (text, path) in &texts {
        let inside = path.strip_prefix(&source).unwrap().with_extension("");
        let parts: Vec<_> = inside.iter().filter_map(|part| part.to_str()).collect();
        if parts.iter().any(|part| only_in_tests.contains(part)) {
            continue;
        }
        let module = parts.join("::");
        let module = module.strip_suffix("::mod").unwrap_or(&module);
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
        modules.insert(module.to_owned(), code.to_owned());
    }
    modules
}

/// Returns the modules that exist only in tests.
fn test_modules(text: &str) -> impl Iterator<Item = &str> {
    let after = text
        .split("#[cfg(test)]\nmod ")
        .chain(text.split("#[cfg(all(test, unix))]\nmod "));
    after.filter_map(|rest| rest.lines().next()?.strip_suffix(';'))
}

/// Returns the paths in code that begin with `crate` or `super`, with braces expanded.
fn named(code: &str) -> Vec<String> {
    let lines = code
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""));
    let code = lines.collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    let mut rest = code.as_str();
    while let Some(start) = ["crate::", "super::"]
        .iter()
        .filter_map(|it| rest.find(it))
        .min()
    {
        rest = add_paths("", &rest[start..], &mut found);
    }
    found
}

/// Adds the path that code begins with, or its paths if it ends in braces. Returns the code after it.
fn add_paths<'c>(stem: &str, code: &'c str, found: &mut Vec<String>) -> &'c str {
    let is_in_path = |c: char| c.is_alphanumeric() || "_:".contains(c);
    let name = code.split(|c| !is_in_path(c)).next().unwrap_or_default();
    let path = format!("{stem}{name}");
    let mut rest = &code[name.len()..];
    if !path.ends_with("::") || !rest.starts_with('{') {
        found.push(path);
        return rest;
    }
    rest = &rest[1..];
    loop {
        rest = rest.trim_start_matches(|c| !is_in_path(c) && !"{}".contains(c));
        match rest.strip_prefix('}') {
            Some(after) => return after,
            None if rest.is_empty() => return rest,
            None => rest = add_paths(&path, rest, found),
        }
    }
}

/// The module that a path names in `module`: the longest one that exists.
fn target(modules: &Modules, module: &str, path: &str) -> Option<String> {
    let mut here: Vec<_> = module.split("::").collect();
    for part in path.split("::") {
        match part {
            "crate" => here.clear(),
            "super" => drop(here.pop()),
            name => here.push(name),
        }
    }
    let mut names = (1..=here.len())
        .rev()
        .map(|length| here[..length].join("::"));
    let found = names.find(|name| modules.contains_key(name));
    found.filter(|name| name != module)
}

/// The modules that each module uses.
fn uses(modules: &Modules) -> BTreeMap<&String, BTreeSet<String>> {
    let used = |(module, code): (&String, &String)| {
        let paths = named(code);
        paths
            .iter()
            .filter_map(|path| target(modules, module, path))
            .collect()
    };
    modules.iter().map(|entry| (entry.0, used(entry))).collect()
}

/// Describes the uses of modules in the same group or in a lower one.
fn offences(modules: &Modules, groups: &HashMap<String, usize>) -> Vec<String> {
    let top = |module: &str| module.split("::").next().unwrap_or_default().to_owned();
    let group = |module: &str| groups.get(&top(module));
    let mut offences = Vec::new();
    for (module, used) in uses(modules) {
        let others = used.iter().filter(|used| top(used) != top(module));
        let wrong = others.filter(|used| group(module).is_some() && group(used) >= group(module));
        offences.extend(wrong.map(|used| format!("{module} uses {used}")));
    }
    offences
}

/// Returns the modules in circles of imports: repeatedly removes modules that use no other module, or
/// that no other module uses.
fn circle(modules: &Modules) -> Vec<&String> {
    let mut left = uses(modules);
    loop {
        let used: BTreeSet<_> = left.values().flatten().cloned().collect();
        let names: BTreeSet<_> = left.keys().map(|name| (*name).clone()).collect();
        let before = left.len();
        left.retain(|name, uses| used.contains(*name) && !uses.is_disjoint(&names));
        if left.len() == before {
            return left.into_keys().collect();
        }
    }
}

#[test]
fn imports_go_one_way() {
    for name in CRATES {
        let groups = groups(&read(format!("{name}/src/lib.rs")));
        assert!(groups.len() > 3, "{name} has the groups {groups:?}");
        let modules = modules(name);
        let imports: usize = uses(&modules).values().map(BTreeSet::len).sum();
        assert!(imports > 100, "only {imports} imports of {name} were found");
        assert_eq!(offences(&modules, &groups), [""; 0], "{name}");
        assert_eq!(circle(&modules), [""; 0], "{name}");
    }
}
