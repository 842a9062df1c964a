//! What was meant by a name that does not exist, or by a line that makes no sense.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Returns the candidate that is most like a name, if any is like it.
pub(crate) fn similar<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let likeness = |candidate: &&str| strsim::jaro_winkler(name, candidate);
    let best = candidates.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) > 0.7).then_some(best)
}

/// Returns what helps with a line that could not be understood, where clap itself does not know.
pub(crate) fn tip(mistake: &clap::Error, tree: &Command) -> Option<String> {
    let context = |kind| match mistake.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if let Some(word) = context(ContextKind::InvalidSubcommand) {
        let family = tree.get_subcommands().find(|family| family.find_subcommand(word).is_some());
        return Some(format!("did you mean `petstore {} {word}`?", family?.get_name()));
    }
    if mistake.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let word = context(ContextKind::InvalidArg)?;
    let Some(flag) = word.strip_prefix("--") else {
        return (!word.starts_with('-'))
            .then(|| "what has spaces in it is one word in quotes".into());
    };
    if flag.contains("key") || flag.contains("token") {
        let why = "no flag takes the key, since others can read arguments";
        return Some(format!("{why}: set PETSTORE_API_KEY, or `petstore auth login`"));
    }
    let owner = owner(tree, "petstore", flag)?;
    Some(format!("`{word}` belongs to `{owner}`, and stands after it"))
}

/// Finds a command with a flag of its own.
fn owner(command: &Command, path: &str, flag: &str) -> Option<String> {
    if command.get_arguments().any(|arg| arg.get_long() == Some(flag)) {
        return Some(path.to_owned());
    }
    let mut inner = command.get_subcommands();
    inner.find_map(|inner| owner(inner, &format!("{path} {}", inner.get_name()), flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_is_alike_and_nothing_else() {
        assert_eq!(similar("base_ulr", ["output", "base_url"]), Some("base_url"));
        assert_eq!(similar("zzz", ["output", "base_url"]), None);
    }
}
