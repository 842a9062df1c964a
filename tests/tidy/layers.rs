//! Checks the layers of each crate: `lib.rs` groups its `mod` lines, and a module uses only the
//! groups above its own. A crate has at most eight groups, no circular imports (including
//! `super::`), and no type name twice.

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

/// Returns by type the methods that a module defines, and the methods that it calls on `self`.
fn methods(code: &str) -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let mut methods: BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
    let name = |text: &str| -> String {
        text.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let mut current = None;
    for line in code.lines() {
        if let Some(rest) = line.strip_prefix("impl") {
            let rest = rest.trim_start_matches(|c: char| c != ' ').trim_start();
            let is_inherent = !rest.contains(" for ");
            current = is_inherent.then(|| name(rest));
        } else if line == "}" {
            current = None;
        }
        let Some(kind) = &current else { continue };
        let (defined, called) = methods.entry(kind.clone()).or_default();
        let code = line.split("//").next().unwrap_or_default();
        defined.extend(code.split("fn ").skip(1).map(name));
        for start in ["self.", "Self::"] {
            let calls = code.split(start).skip(1).filter(|rest| {
                let end = name(rest).len();
                rest[end..].starts_with('(')
            });
            called.extend(calls.map(name));
        }
    }
    methods
}

/// Returns the calls between files that no import shows: methods of one type in different files
/// that call each other.
fn calls(modules: &Modules) -> BTreeMap<&String, BTreeSet<String>> {
    let all: Vec<_> = modules
        .iter()
        .map(|(module, code)| (module, methods(code)))
        .collect();
    let mut calls: BTreeMap<&String, BTreeSet<String>> = BTreeMap::new();
    for (module, own) in &all {
        for (kind, (defined, called)) in own {
            let missing: BTreeSet<_> = called.difference(defined).collect();
            let others = all.iter().filter(|(other, methods)| {
                let elsewhere = methods.get(kind).map(|(defined, _)| defined);
                other != module
                    && elsewhere.is_some_and(|names| missing.iter().any(|it| names.contains(*it)))
            });
            let others = others.map(|(other, _)| (*other).clone());
            calls.entry(module).or_default().extend(others);
        }
    }
    calls
}

/// Returns the modules in import cycles: repeatedly removes modules that use no other module, or
/// that no other module uses.
fn circle(modules: &Modules) -> Vec<&String> {
    circle_of(uses(modules))
}

/// Returns the modules in cycles of imports and of calls between files. Not used for the
/// command line, where the parts of an import call each other.
fn circle_of_calls(modules: &Modules) -> Vec<&String> {
    let mut uses = uses(modules);
    for (module, called) in calls(modules) {
        uses.entry(module).or_default().extend(called);
    }
    circle_of(uses)
}

fn circle_of(mut left: BTreeMap<&String, BTreeSet<String>>) -> Vec<&String> {
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

/// The names of types that are defined twice, and where.
fn types_defined_twice(modules: &Modules) -> Vec<(String, Vec<String>)> {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (module, code) in modules {
        for line in code.lines().map(str::trim_start) {
            let scopes = ["pub(crate) ", "pub(super) ", "pub "];
            let item = scopes
                .iter()
                .find_map(|scope| line.strip_prefix(scope))
                .unwrap_or(line);
            let mut kinds = ["struct ", "enum ", "trait "].iter();
            if let Some(rest) = kinds.find_map(|kind| item.strip_prefix(kind)) {
                let name = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
                defined.entry(name).or_default().push(module.clone());
            }
        }
    }
    defined
        .into_iter()
        .filter(|(_, modules)| modules.len() > 1)
        .collect()
}

#[test]
fn a_crate_has_few_layers_no_circle_and_no_name_twice() {
    for name in CRATES {
        let groups = groups(&read(format!("{name}/src/lib.rs")));
        let last = groups.values().max().unwrap() - groups.values().min().unwrap();
        assert!(
            groups.len() > 3 && last <= 7,
            "{name} has {} groups of modules",
            last + 1
        );
        let modules = modules(name);
        assert_eq!(offences(&modules, &groups), [""; 0], "{name}");
        assert_eq!(circle(&modules), [""; 0], "{name}");
        if name != "petstore-cli" {
            assert_eq!(circle_of_calls(&modules), [""; 0], "{name}: calls");
        }
        assert_eq!(types_defined_twice(&modules), [], "{name}");
    }
}

#[test]
fn reads_the_diagram_and_the_uses_as_meant() {
    let groups = groups("mod a;\npub mod b;\n\nmod c;\n\npub use a::X;\n");
    assert_eq!((groups["a"], groups["b"], groups["c"]), (0, 0, 1));
    let code =
        "use crate::{a::{self, X}, b}; // crate::c\nlet x = (crate::c::y(), super::super::Z);";
    let paths = [
        "crate::a::self",
        "crate::a::X",
        "crate::b",
        "crate::c::y",
        "super::super::Z",
    ];
    assert_eq!(named(code), paths);
    let modules: Modules = [("a", "use crate::c;"), ("b", "crate::a::x()"), ("c", "")]
        .map(|(module, code)| (module.to_owned(), code.to_owned()))
        .into();
    assert_eq!(offences(&modules, &groups), ["a uses c", "b uses a"]);
}

#[test]
fn a_circle_through_super_and_a_name_defined_twice_are_found() {
    let source = [
        ("a::b", "use super::c::X;\npub(crate) struct Y;"),
        (
            "a::c",
            "use crate::{\n    z,\n    a::b::{self, Y},\n};\npub struct X;\nenum Y {}",
        ),
        ("a", "use crate::a::b;"),
        ("z", ""),
    ];
    let own = |(module, code): (&str, &str)| (module.to_owned(), code.to_owned());
    let modules: Modules = source.map(own).into();
    assert_eq!(circle(&modules), ["a::b", "a::c"]);
    let twice = types_defined_twice(&modules);
    assert_eq!(
        twice,
        [("Y".to_owned(), vec!["a::b".to_owned(), "a::c".to_owned()])]
    );
    let mut straight = modules;
    straight.insert("a::c".to_owned(), "use crate::z;".to_owned());
    assert_eq!(
        (
            circle(&straight).len(),
            types_defined_twice(&straight).len()
        ),
        (0, 0)
    );
}

#[test]
fn a_circle_through_calls_of_one_types_methods_is_found() {
    let source = [
        (
            "a",
            "impl X {\n    fn one(&self) {\n        self.two();\n    }\n}\n",
        ),
        (
            "b",
            "impl X {\n    fn two(&self) {\n        Self::one();\n    }\n}\n",
        ),
        (
            "c",
            "impl X {\n    fn three(&self) {\n        self.one();\n    }\n}\n",
        ),
        (
            "d",
            "impl Y for X {\n    fn two(&self) {\n        self.one();\n    }\n}\n",
        ),
    ];
    let own = |(module, code): (&str, &str)| (module.to_owned(), code.to_owned());
    let modules: Modules = source.map(own).into();
    assert_eq!(circle(&modules), [""; 0]);
    assert_eq!(circle_of_calls(&modules), ["a", "b"]);
}
