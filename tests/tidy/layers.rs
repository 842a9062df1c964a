//! Checks that the imports of each crate go one way: `lib.rs` groups its `mod` lines, a module uses only
//! the groups above its own, and no modules import each other in a circle.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{CRATES, read, rust_files};

/// The code of each module.
type Modules = BTreeMap<String, String>;

/// The group of each module: the groups are the blocks of `mod` lines between blank lines.
fn groups(lib: &str) -> HashMap<String, usize> {
    let mut groups = HashMap::new();
    let mut group = 0;
    for line in lib.lines() {
        let line = line
            .trim_start_matches("pub ")
            .trim_start_matches("pub(crate) ");
        match line
            .strip_prefix("mod ")
            .and_then(|rest| rest.strip_suffix(';'))
        {
            Some(module) => {
                groups.insert(module.to_owned(), group);
            }
            None if line.is_empty() => group += 1,
            None => {}
        }
    }
    groups
}

/// The source of a crate without its tests, by module path such as `rate_limit::ledger`.
fn modules(name: &str) -> Modules {
    let test_modules: HashSet<String> = rust_files(&format!("{name}/src"))
        .iter()
        .flat_map(|path| test_modules(&read(path)))
        .collect();
    let mut modules = BTreeMap::new();
    for path in rust_files(&format!("{name}/src")) {
        let inside = path
            .strip_prefix(format!("{name}/src"))
            .unwrap()
            .with_extension("");
        let parts: Vec<_> = inside
            .iter()
            .map(|part| part.to_str().unwrap().to_owned())
            .collect();
        if parts.iter().any(|part| test_modules.contains(part)) {
            continue;
        }
        let module = parts.join("::");
        let module = module.strip_suffix("::mod").unwrap_or(&module).to_owned();
        let text = read(&path);
        let code = text
            .split("#[cfg(test)]\nmod tests")
            .next()
            .unwrap_or_default();
        modules.insert(module, code.to_owned());
    }
    modules
}

/// Returns the modules that exist only in tests.
fn test_modules(text: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().collect();
    let pairs = lines.windows(2).filter(|pair| {
        pair[0].starts_with("#[cfg(test)]") || pair[0].starts_with("#[cfg(all(test")
    });
    let name = |line: &str| {
        line.strip_prefix("mod ")?
            .strip_suffix(';')
            .map(str::to_owned)
    };
    pairs.filter_map(|pair| name(pair[1])).collect()
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
        let path = &rest[start..];
        let end = path_end(path);
        found.extend(written_out(
            &path[..end].split_whitespace().collect::<String>(),
        ));
        rest = &path[end..];
    }
    found
}

/// The length of the path that code begins with. Spaces and commas belong to it in braces only.
fn path_end(code: &str) -> usize {
    let mut depth = 0;
    let ends = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        let is_part = c.is_alphanumeric() || "_:{}".contains(c) || (depth > 0 && " ,*".contains(c));
        depth < 0 || !is_part
    };
    code.find(ends).unwrap_or(code.len())
}

fn written_out(path: &str) -> Vec<String> {
    let Some((stem, list)) = path.split_once("::{") else {
        return vec![path.to_owned()];
    };
    let mut depth = 0;
    let mut parts = vec![String::new()];
    for c in list.strip_suffix('}').unwrap_or(list).chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            c => parts.last_mut().unwrap().push(c),
        }
    }
    let parts = parts.iter().filter(|part| !part.is_empty());
    parts
        .flat_map(|part| written_out(&format!("{stem}::{part}")))
        .collect()
}

/// The module that a path names in `module`: the longest one that exists.
fn target(modules: &Modules, module: &str, path: &str) -> Option<String> {
    let mut here: Vec<_> = module.split("::").collect();
    let mut parts: Vec<_> = path.split("::").collect();
    if parts[0] == "crate" {
        here.clear();
        parts.remove(0);
    }
    while parts.first() == Some(&"super") {
        here.pop();
        parts.remove(0);
    }
    here.extend(parts);
    let names = (1..=here.len())
        .rev()
        .map(|length| here[..length].join("::"));
    names
        .into_iter()
        .find(|name| modules.contains_key(name))
        .filter(|name| name != module)
}

/// The modules that each module uses.
fn uses(modules: &Modules) -> BTreeMap<&String, BTreeSet<String>> {
    let used = |(module, code): (&String, &String)| {
        named(code)
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
        let Some(own) = group(module) else { continue };
        let others = used.iter().filter(|used| top(used) != top(module));
        let wrong = others.filter(|used| group(used).is_some_and(|group| group >= own));
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
        assert_eq!(offences(&modules, &groups), [""; 0], "{name}");
        assert_eq!(circle(&modules), [""; 0], "{name}");
    }
}
