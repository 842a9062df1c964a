//! Checks the layers of each crate: `lib.rs` groups its `mod` lines, and a module uses only the
//! groups above its own. A crate has at most seven groups, no circular imports (including
//! `super::`), and no type name twice.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{CRATES, read, rust_files};

/// The crates with all checks.
const SETTLED: [&str; 3] = ["petstore-cli", "petstore-client", "petstore-mock"];

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

/// The source of a crate without its tests, by module path such as `rate_limit::ledger`.
fn modules(name: &str) -> BTreeMap<String, String> {
    let test_modules: HashSet<String> = rust_files(&format!("{name}/src"))
        .iter()
        .flat_map(|path| test_modules(&read(path)))
        .collect();
    let mut modules = BTreeMap::new();
    for path in rust_files(&format!("{name}/src")) {
        let inside = path.strip_prefix(format!("{name}/src")).unwrap().with_extension("");
        let parts: Vec<_> = inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        if parts.iter().any(|part| test_modules.contains(part)) {
            continue;
        }
        let module = parts.join("::");
        let module = module.strip_suffix("::mod").unwrap_or(&module).to_owned();
        let text = read(&path);
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        modules.insert(module, code.to_owned());
    }
    modules
}

/// The modules that exist in tests only.
fn test_modules(text: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().collect();
    let pairs = lines.windows(2).filter(|pair| {
        pair[0].starts_with("#[cfg(test)]") || pair[0].starts_with("#[cfg(all(test")
    });
    let name = |line: &str| line.strip_prefix("mod ")?.strip_suffix(';').map(str::to_owned);
    pairs.filter_map(|pair| name(pair[1])).collect()
}

/// The paths of all `use` lines that begin with `crate` or `super`, braces written out.
fn used_paths(code: &str) -> Vec<String> {
    let statements = code.split("use ").skip(1);
    let paths =
        statements.filter(|text| text.starts_with("crate::") || text.starts_with("super::"));
    let ends = paths.filter_map(|text| text.split(';').next());
    ends.flat_map(|path| written_out(&path.split_whitespace().collect::<String>())).collect()
}

fn written_out(path: &str) -> Vec<String> {
    let Some((stem, list)) = path.split_once("::{") else { return vec![path.to_owned()] };
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
    parts.flat_map(|part| written_out(&format!("{stem}::{part}"))).collect()
}

/// The module that a path names in `module`: the longest one that exists.
fn target(modules: &BTreeMap<String, String>, module: &str, path: &str) -> Option<String> {
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
    let names = (1..=here.len()).rev().map(|length| here[..length].join("::"));
    names.into_iter().find(|name| modules.contains_key(name)).filter(|name| name != module)
}

/// A circle of modules, if there is one.
fn circle(modules: &BTreeMap<String, String>) -> Option<Vec<String>> {
    fn visit(
        uses: &BTreeMap<&String, Vec<String>>,
        path: &mut Vec<String>,
        done: &mut HashSet<String>,
    ) -> Option<Vec<String>> {
        let module = path.last().unwrap().clone();
        for next in uses.get(&module).into_iter().flatten() {
            if let Some(start) = path.iter().position(|seen| seen == next) {
                return Some(path[start..].to_vec());
            }
            if done.contains(next) {
                continue;
            }
            path.push(next.clone());
            if let Some(circle) = visit(uses, path, done) {
                return Some(circle);
            }
            path.pop();
        }
        done.insert(module);
        None
    }
    let used = |(module, code): (&String, &String)| {
        used_paths(code).iter().filter_map(|path| target(modules, module, path)).collect()
    };
    let uses: BTreeMap<_, Vec<_>> = modules.iter().map(|entry| (entry.0, used(entry))).collect();
    let mut done = HashSet::new();
    modules.keys().find_map(|module| visit(&uses, &mut vec![module.clone()], &mut done))
}

/// The names of types that are defined twice, and where.
fn types_defined_twice(modules: &BTreeMap<String, String>) -> Vec<(String, Vec<String>)> {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (module, code) in modules {
        for line in code.lines() {
            let line = line.trim_start();
            let public =
                line.strip_prefix("pub").map_or(line, |rest| {
                    rest.split_once(')').map_or(rest, |(scope, rest)| {
                        if scope.starts_with('(') { rest } else { line }
                    })
                });
            let mut words = public.split_whitespace();
            if matches!(words.next(), Some("struct" | "enum" | "trait"))
                && let Some(word) = words.next()
            {
                defined.entry(name(word)).or_default().push(module.clone());
            }
        }
    }
    defined.into_iter().filter(|(_, modules)| modules.len() > 1).collect()
}

#[test]
fn a_settled_crate_has_few_groups_no_circle_and_no_name_twice() {
    for name in SETTLED {
        let groups = groups(&read(format!("{name}/src/lib.rs")));
        let last = groups.values().max().unwrap() - groups.values().min().unwrap();
        assert!(last <= 7, "{name} has {} groups of modules", last + 1);
        let modules = modules(name);
        assert_eq!(circle(&modules), None, "{name}");
        assert_eq!(types_defined_twice(&modules), [], "{name}");
    }
}

#[test]
fn a_circle_through_super_and_a_name_defined_twice_are_found() {
    let source = [
        ("a::b", "use super::c::X;\npub(crate) struct Y;"),
        ("a::c", "use crate::{\n    z,\n    a::b::{self, Y},\n};\npub struct X;\nenum Y {}"),
        ("a", "mod b;"),
    ];
    let own = |(module, code): (&str, &str)| (module.to_owned(), code.to_owned());
    let modules: BTreeMap<_, _> = source.map(own).into();
    assert_eq!(circle(&modules).unwrap(), ["a::b", "a::c"]);
    let twice = types_defined_twice(&modules);
    assert_eq!(twice, [("Y".to_owned(), vec!["a::b".to_owned(), "a::c".to_owned()])]);
    let mut straight = modules;
    straight.insert("a::c".to_owned(), "use crate::z;".to_owned());
    assert_eq!((circle(&straight), types_defined_twice(&straight).len()), (None, 0));
}
