//! Tests of the help of commands, topics and man pages.

use insta::assert_snapshot;
use petstore_mock::Operation;

use super::completions::follow;
use super::harness::Petstore;

pub(super) async fn printed(line: &str) -> String {
    let ran = Petstore::bare().run(line).await;
    assert_eq!((ran.stderr.as_str(), ran.code), ("", 0), "{line}");
    ran.stdout
}

/// Returns all commands, as completions and the help of groups name them.
async fn commands() -> Vec<String> {
    let mut commands = Vec::new();
    for name in follow(Petstore::bare(), &[""]).await {
        let help = printed(&format!("{name} --help")).await;
        match help.split_once("\n\nCommands:\n") {
            _ if name.starts_with('-') => {}
            None => commands.push(name),
            Some((_, list)) => {
                let lines = list.lines().take_while(|line| !line.is_empty());
                let words = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
                let inner = words.filter(|word| !word.is_empty());
                commands.extend(inner.map(|inner| format!("{name} {inner}")));
            }
        }
    }
    assert!(commands.len() > 20, "{commands:?}");
    commands
}

#[tokio::test]
async fn the_first_page_and_the_topics_name_all_commands_and_formats() {
    let first = printed("--help").await;
    for command in commands().await {
        let (group, _) = command.split_once(' ').unwrap_or((&command, ""));
        let is_named = [group, &command].map(|name| first.contains(&format!("\n  {name} ")));
        assert!(
            is_named.contains(&true) || group == "help",
            "{command} is missing in\n{first}"
        );
    }
    let (output, options) = (printed("help output").await, printed("help options").await);
    let readme = include_str!("../../petstore-cli/README.md");
    for format in follow(Petstore::bare(), &["pets", "list", "-o", ""]).await {
        assert!(
            output.contains(&format!("\n  {format} ")),
            "{format} is missing in\n{output}"
        );
        assert!(
            options.contains(&format!(" {format}")),
            "{format} is missing in\n{options}"
        );
        assert!(
            readme.contains(&format!("`{format}`")),
            "{format} is missing in petstore-cli/README.md"
        );
    }
}

/// A new operation needs a command here, which the test above then looks for on the first page.
fn command_of(operation: Operation) -> Option<&'static str> {
    match operation {
        Operation::ListPets => Some("pets list"),
        Operation::CreatePet => Some("pets create"),
        Operation::GetPet => Some("pets get"),
        Operation::ListOrders => Some("store orders"),
        _ => None,
    }
}

#[tokio::test]
async fn each_operation_of_the_service_has_a_command() {
    let commands = commands().await;
    for &operation in Operation::ALL {
        let command = command_of(operation);
        let command = command.unwrap_or_else(|| panic!("which command sends {operation}?"));
        assert!(commands.contains(&command.to_owned()), "no `{command}`");
    }
}

#[tokio::test]
async fn the_help_of_a_command_fits_a_screen_and_begins_with_examples() {
    for command in commands().await {
        let text = printed(&format!("{command} --help")).await;
        assert!(
            text.lines().count() <= 40,
            "{command}: {}",
            text.lines().count()
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        let usage = format!("\n\nUsage: petstore {command}");
        assert!(text.contains(&usage), "{text}");
        assert!(text.contains("\n\nExamples:\n  "), "{text}");
        assert_eq!(text, printed(&format!("{command} -h")).await);
    }
    assert_snapshot!("pets_list", printed("pets list --help").await);
    assert_snapshot!("pets_import", printed("pets import --help").await);
    assert_snapshot!("pets", printed("pets --help").await);
    assert_snapshot!("petstore", printed("--help").await);
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
        let ran = Petstore::bare()
            .run(&format!("--mock {command} -o csv"))
            .await;
        let header = ran.stdout.lines().next().unwrap().replace(',', ", ");
        let help = printed(&format!("{command} --help"))
            .await
            .replace('\n', " ");
        assert!(
            help.contains(&format!("Fields: {header}")),
            "{command}: {header}"
        );
    }
}

#[tokio::test]
async fn petstore_alone_says_how_to_start_and_exits_with_2() {
    let ran = Petstore::bare().run("").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    petstore: list, create and import pets of a Pet Store service

    Usage: petstore <command> [options]

    Start with:
      petstore --mock pets list    try any command on a built-in server
      petstore auth login          store the base URL and an API key
      petstore doctor              check the configuration and the service

    `petstore --help` lists all commands.
    --- exit 2
    ");
}

#[tokio::test]
async fn help_shows_what_the_option_shows() {
    assert_eq!(
        printed("help pets list").await,
        printed("pets list --help").await
    );
    assert_eq!(printed("help").await, printed("--help").await);
    assert_snapshot!("environment", printed("help environment").await);
    assert_snapshot!("output", printed("help output").await);
    assert_snapshot!("rate_limits", printed("help rate-limits").await);
    assert_snapshot!("options", printed("help options").await);
    assert!(
        printed("help exit-codes")
            .await
            .contains("\n  7  rate limited or banned")
    );
}

#[tokio::test]
async fn other_names_of_commands_work() {
    for line in [
        "pet ls --limit 1",
        "pets show 1",
        "pets add Rex --category-id 7",
    ] {
        assert_eq!(
            Petstore::bare()
                .run(&format!("--mock {line} -q"))
                .await
                .code,
            0,
            "{line}"
        );
    }
    assert_eq!(printed("version").await, printed("--version").await);
    assert_eq!(
        printed("rate-limits --help").await,
        printed("limits --help").await
    );
    assert_eq!(
        printed("config ls --help").await,
        printed("config list --help").await
    );
}

#[tokio::test]
async fn there_is_a_manual_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let ran = Petstore::bare()
        .run_words(&["man", folder.path().to_str().unwrap()])
        .await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let page = |name: &str| {
        let name = format!("petstore {name}").trim_end().replace(' ', "-");
        std::fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap()
    };
    let source = concat!("\"petstore ", env!("CARGO_PKG_VERSION"), "\"");
    for name in commands()
        .await
        .iter()
        .map(String::as_str)
        .chain(["", "help output"])
    {
        let page = page(name);
        assert!(
            page.contains(".SH NAME") && page.contains("SEE ALSO"),
            "{page}"
        );
        assert!(page.contains(source), "{page}");
    }
    assert!(page("pets import").contains(".SH NOTES\nFILE is CSV with a header"));
    let first = page("");
    for section in ["OPTIONS", "ENVIRONMENT", "EXIT STATUS", "FILES", "SEE ALSO"] {
        assert!(
            first.contains(&format!(".SH \"{section}\""))
                || first.contains(&format!(".SH {section}")),
            "{section}: {first}"
        );
    }
    // Each option of `petstore help options` is on the first page.
    for line in printed("help options").await.lines() {
        let Some(option) = line.split_whitespace().find(|word| word.starts_with("--")) else {
            continue;
        };
        let name: String = option
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '-')
            .collect();
        let name = name.replace('-', "\\-");
        assert!(
            first.contains(&format!("\\fB{name}\\fR")),
            "{name}: {first}"
        );
    }
    assert_snapshot!(
        "man_pets_list",
        page("pets list").replace(source, "\"petstore VERSION\"")
    );
}

#[tokio::test]
async fn help_fits_a_narrow_terminal() {
    let topics = [
        "options",
        "environment",
        "output",
        "rate-limits",
        "exit-codes",
        "files",
    ];
    let topics = topics.map(|topic| format!("help {topic}"));
    let commands = commands().await;
    let helps = commands.iter().map(String::as_str).chain(["", "pets"]);
    for line in helps.map(|line| format!("{line} --help")).chain(topics) {
        for width in [40, 60] {
            let narrow = Petstore::bare().terminal().width(width);
            let text = narrow.run(&format!("--color never {line}")).await.stdout;
            let is_wide = |line: &&str| line.chars().count() > width.into();
            assert_eq!(text.lines().find(is_wide), None, "{line}");
            assert!(text.contains(' '), "{line}");
        }
    }
}

#[tokio::test]
async fn headings_and_options_stand_out_in_every_help() {
    for line in ["--help", "pets list --help", "help options"] {
        let ran = Petstore::bare().terminal().width(80);
        let text = ran.run(&format!("--color always {line}")).await.stdout;
        let headings = text.lines().filter(|line| line.starts_with("\u{1b}[1m"));
        assert!(headings.count() >= 2, "{text}");
        assert!(line == "--help" || text.contains("\u{1b}[36m--"), "{text}");
    }
}

#[tokio::test]
async fn a_wide_terminal_gets_lines_of_at_most_80_columns() {
    for line in ["pets list --help", "help options", "help output"] {
        let wide = Petstore::bare().terminal().width(160);
        assert_eq!(
            wide.run(&format!("--color never {line}")).await.stdout,
            printed(line).await
        );
    }
}
