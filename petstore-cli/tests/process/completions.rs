//! Tests of the completions in real shells, if they are installed.

use std::path::Path;
use std::process::Command;

use rexpect::session::spawn_command;

use super::support::PETSTORE;

/// Returns a shell without a configuration, and with a profile to complete; `None` if it is not
/// installed.
fn shell(name: &str, flags: &[&str], home: &Path) -> Option<Command> {
    Command::new(name).arg("--version").output().ok()?;
    let programs = Path::new(PETSTORE).parent().unwrap();
    let folder = home.join(".config/petstore");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "[profiles.staging]\n").unwrap();
    let mut command = Command::new(name);
    command.args(flags).env_clear().env("HOME", home);
    command.env("TERM", "xterm").env("PS1", "ask> ");
    command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    Some(command)
}

/// Loads completions at a terminal of a shell, types the beginning of a line and a tab, and waits for
/// the rest of the line.
fn completes_at_a_terminal(shell: Command, load: &str, typed: &str, rest: &str) {
    // Only a shell that hangs takes longer.
    let mut terminal = spawn_command(shell, Some(120_000)).unwrap();
    terminal.exp_string("ask> ").unwrap();
    terminal
        .send_line(&format!("{load}; echo rea''dy"))
        .unwrap();
    terminal.exp_string("ready").unwrap();
    terminal.exp_string("ask> ").unwrap();
    terminal.send(&format!("{typed}\t")).unwrap();
    terminal.flush().unwrap();
    terminal.exp_string(rest).expect(typed);
    // A shell at a terminal ignores SIGTERM.
    terminal.send_control('u').unwrap();
    terminal.send_line("exit").unwrap();
    terminal.exp_eof().unwrap();
}

/// Lines that end in an incomplete word, and the words that a shell offers for it.
const LINES: [(&str, &str); 8] = [
    ("petstore pe", "pets"),
    ("petstore pets add --cat", "--category-id"),
    ("petstore pets list --fields na", "name"),
    ("petstore config use st", "staging"),
    ("petstore config set output nd", "ndjson"),
    ("petstore help pets cr", "create"),
    ("petstore pets import pe", "pets.csv"),
    (
        "petstore pets import --journal pe",
        "pets.csv.petstore-journal",
    ),
];

/// A home folder with a file to import, and the journal of an earlier import.
fn home_with_files() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    for name in ["pets.csv", "pets.csv.petstore-journal"] {
        std::fs::write(home.path().join(name), "").unwrap();
    }
    home
}

/// Completes a line like bash, which calls the function of `complete -F`.
fn bash_completes(words: &str, line: &str, expected: &str) {
    let home = home_with_files();
    let mut last = words.rsplit(' ');
    let (word, before) = (last.next().unwrap(), last.next().unwrap());
    let script = format!(
        "source <(petstore completions bash); COMP_WORDS=({words}); \
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; \
         COMP_TYPE=9; [[ $(complete -p petstore) =~ -F\\ ([^ ]+) ]]; \
         ${{BASH_REMATCH[1]}} petstore {word} {before}; echo \"${{COMPREPLY[@]}}\""
    );
    let Some(mut bash) = shell("bash", &["--norc", "-c", &script], home.path()) else {
        return;
    };
    let output = bash.current_dir(home.path()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout.trim_end(), expected, "{line}: {output:?}");
}

#[test]
fn bash_completes_commands_values_profiles_and_files() {
    for (line, expected) in LINES {
        bash_completes(line, line, expected);
    }
    // bash splits words at `=`.
    bash_completes(
        "petstore pets list --output = nd",
        "petstore pets list --output=nd",
        "ndjson",
    );
}

#[test]
fn bash_quotes_the_spaces_of_file_names() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("my pets.csv"), "").unwrap();
    for typed in ["my", "my\\ pe"] {
        let Some(mut command) = shell("bash", &["--norc", "-i"], home.path()) else {
            return;
        };
        command.current_dir(home.path());
        // Without an echo, bash does not show the line.
        let load = "stty echo; source <(petstore completions bash 2> /dev/null)";
        let typed = format!("petstore pets import {typed}");
        completes_at_a_terminal(command, load, &typed, "\\ pets.csv");
    }
}

#[test]
fn zsh_completes_commands_profiles_and_values() {
    let sourced = "autoload -U compinit; compinit -u; source <(petstore completions zsh)";
    let from_its_path = "mkdir ~/site; petstore completions zsh > ~/site/_petstore; \
                         fpath=(~/site $fpath); autoload -U compinit; compinit -u";
    for (load, typed, rest) in [
        (sourced, "petstore config use st", "aging"),
        (sourced, "petstore config set output nd", "json"),
        (from_its_path, "petstore pets cr", "eate"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let Some(zsh) = shell("zsh", &["-f", "-i"], home.path()) else {
            return;
        };
        completes_at_a_terminal(zsh, load, typed, rest);
    }
}

#[test]
fn fish_completes_commands_values_profiles_and_files() {
    let home = home_with_files();
    for (line, expected) in LINES {
        let script = format!("petstore completions fish | source; complete -C '{line}'");
        let Some(mut fish) = shell("fish", &["-c", &script], home.path()) else {
            return;
        };
        let output = fish.current_dir(home.path()).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let mut words = stdout.lines().map(|line| line.split('\t').next().unwrap());
        assert_eq!(words.next(), Some(expected), "{line}: {stdout}");
        assert_eq!(words.next(), None, "{line}: {stdout}");
    }
}
