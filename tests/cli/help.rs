//! Tests of the help of commands, and of the manual pages.

use insta::assert_snapshot;

use super::completions::follow;
use super::harness::Petstore;

/// Returns the help or the page that a line prints.
async fn printed(line: &str) -> String {
    let ran = Petstore::bare().run(line).await;
    ran.said("", 0);
    ran.stdout
}

/// Returns the commands that the help of a group names; none for a command.
async fn named(group: &str) -> Vec<String> {
    let help = printed(&format!("{group} -h")).await;
    let Some((_, list)) = help.split_once("\nCommands:\n") else {
        return Vec::new();
    };
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty() && *name != "help");
    names
        .map(|name| format!("{group} {name}").trim_start().to_owned())
        .collect()
}

/// Returns all commands, without groups.
async fn commands() -> Vec<String> {
    let mut commands = Vec::new();
    for name in named("").await {
        let inner = named(&name).await;
        match inner.is_empty() {
            true => commands.push(name),
            false => commands.extend(inner),
        }
    }
    assert!(commands.len() > 18, "{commands:?}");
    commands
}

#[tokio::test]
async fn the_readme_names_every_format() {
    let readme = include_str!("../../petstore-cli/README.md");
    for format in follow(Petstore::bare(), &["pets", "list", "-o", ""]).await {
        assert!(readme.contains(&format!("`{format}`")), "{format}");
    }
}

#[tokio::test]
async fn the_help_of_a_command_has_examples_and_the_options_of_all_commands() {
    for command in commands().await {
        let long = printed(&format!("{command} --help")).await;
        for part in ["\n\nExamples:\n  ", "--max-wait <TIME>"] {
            assert!(long.contains(part), "{part}: {long}");
        }
        assert_eq!(long, printed(&format!("help {command}")).await);
        let short = printed(&format!("{command} -h")).await;
        assert!(!short.contains("--max-wait"), "{short}");
        assert!(short.lines().count() <= 24, "{short}");
    }
    let help = printed("--help").await;
    let import = printed("pets import --help").await;
    let (_, options) = help.split_once("\nService and key:\n").unwrap();
    let (options, _) = options.split_once("\nExamples:\n").unwrap();
    // The options of all commands are the same everywhere.
    let own = import.replace(options, "  …\n");
    assert_snapshot!("petstore", help);
    assert_snapshot!("pets_list", printed("pets list -h").await);
    assert_snapshot!("pets_import", own);
}

#[tokio::test]
async fn the_help_of_a_command_names_its_fields_in_their_order() {
    for command in [
        "pets list",
        "pets import",
        "limits --refresh",
        "auth status",
        "config list",
        "doctor",
    ] {
        let line = format!("--mock {command} -o csv");
        let shown = Petstore::bare().run(&line).await.stdout;
        let header = shown.lines().next().unwrap().replace(',', ", ");
        let help = printed(&format!("{command} --help")).await;
        let is_named = help
            .replace('\n', " ")
            .contains(&format!("Fields: {header}"));
        assert!(is_named, "{command}: {header}");
    }
}

#[tokio::test]
async fn petstore_alone_says_how_to_go_on_and_exits_with_2() {
    for line in ["", "pets"] {
        let ran = Petstore::bare().run(line).await;
        assert_eq!((&*ran.stdout, ran.code), ("", 2), "{line}");
        assert_eq!(ran.stderr, printed(&format!("{line} -h")).await);
    }
}

#[tokio::test]
async fn other_names_of_commands_work() {
    for (other, name) in [
        ("pet ls", "pets list"),
        ("pets show", "pets get"),
        ("pets add", "pets create"),
        ("pets new", "pets create"),
        ("rate-limits", "limits"),
        ("config ls", "config list"),
    ] {
        let help = printed(&format!("{other} --help")).await;
        assert_eq!(help, printed(&format!("{name} --help")).await);
    }
    assert_eq!(printed("version").await, printed("--version").await);
}

#[tokio::test]
async fn there_is_a_manual_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let man = format!("man {}", folder.path().display());
    let ran = Petstore::bare().home(folder.path()).run(&man).await;
    ran.said("note: wrote a manual page for each command into HOME\n", 0);
    let page = |name: &str| {
        let name = format!("petstore {name}").trim_end().replace(' ', "-");
        std::fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap()
    };
    for command in commands().await {
        let page = page(&command);
        assert!(page.contains("\nExamples:\n"), "{command}: {page}");
    }
    let first = page("");
    for part in ["Environment:", "Exit codes:", "Files:", "\\-\\-max\\-wait"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert_eq!(printed("man").await, first);
}

#[tokio::test]
async fn help_is_never_wider_than_80_columns() {
    for command in commands().await {
        let help = printed(&format!("{command} --help")).await;
        let too_wide = help.lines().find(|line| line.chars().count() > 80);
        assert_eq!(too_wide, None, "{command}");
    }
}
