//! Tests of the completions in real shells, if they are installed.

use std::path::Path;
use std::process::Command;

use rexpect::session::spawn_command;

use super::support::PETSTORE;

/// A shell without a configuration, and a profile to complete; `None` where it is not installed.
fn shell(name: &str, flags: &[&str], home: &Path) -> Option<Command> {
    Command::new(name).arg("--version").output().ok()?;
    let programs = Path::new(PETSTORE).parent().unwrap();
    std::fs::create_dir_all(home.join(".config/petstore")).unwrap();
    std::fs::write(
        home.join(".config/petstore/config.toml"),
        "[profiles.staging]\n",
    )
    .unwrap();
    let mut command = Command::new(name);
    command
        .args(flags)
        .env_clear()
        .env("HOME", home)
        .env("TERM", "xterm")
        .env("PS1", "ask> ");
    command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    Some(command)
}

/// Loads completions at a terminal of zsh, types the beginning of a line and a tab, and waits for
/// what it makes of it.
fn completes(load: &str, typed: &str, becomes: &str) {
    let home = tempfile::tempdir().unwrap();
    let Some(command) = shell("zsh", &["-f", "-i"], home.path()) else {
        return;
    };
    // Long enough that only a hang exceeds it.
    let mut terminal = spawn_command(command, Some(120_000)).unwrap();
    terminal.exp_string("ask> ").unwrap();
    terminal
        .send_line(&format!(
            "autoload -U compinit; compinit -u; {load}; echo rea''dy"
        ))
        .unwrap();
    terminal.exp_string("ready").unwrap();
    terminal.exp_string("ask> ").unwrap();
    terminal.send(&format!("{typed}\t")).unwrap();
    terminal.flush().unwrap();
    terminal.exp_string(becomes).expect(load);
    // A shell at a terminal ignores SIGTERM.
    terminal.send_control('u').unwrap();
    terminal.send_line("exit").unwrap();
    terminal.exp_eof().unwrap();
}

#[test]
fn bash_completes_commands_values_profiles_and_files() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("pets.csv"), "").unwrap();
    for (words, expected) in [
        (["petstore", "pe"].as_slice(), "pets\n"),
        (&["petstore", "pets", "list", "-o", "nd"], "ndjson\n"),
        (&["petstore", "pets", "list", "--fields", "na"], "name\n"),
        (&["petstore", "config", "use", "st"], "staging\n"),
        (&["petstore", "pets", "import", "pe"], "pets.csv\n"),
    ] {
        // Calls the function of `complete -F` like bash.
        let [.., before, word] = words else {
            panic!("{words:?}")
        };
        let (line, last) = (words.join(" "), words.len() - 1);
        let script = format!(
            "source <(petstore completions bash); COMP_WORDS=({line}); COMP_CWORD={last}; \
             COMP_TYPE=9; [[ $(complete -p petstore) =~ -F\\ ([^ ]+) ]]; \
             ${{BASH_REMATCH[1]}} petstore {word} {before}; echo \"${{COMPREPLY[@]}}\""
        );
        let Some(mut bash) = shell("bash", &["--norc", "-c", &script], home.path()) else {
            return;
        };
        let output = bash.current_dir(home.path()).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            expected,
            "{script}: {output:?}"
        );
    }
}

#[test]
fn zsh_completes_commands_and_profiles() {
    completes("source <(petstore completions zsh)", "petstore pe", "ts");
    completes(
        "source <(petstore completions zsh)",
        "petstore config use st",
        "aging",
    );
}

#[test]
fn fish_completes_commands_values_profiles_and_files() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("pets.csv"), "").unwrap();
    for (line, expected) in [
        ("petstore pe", "pets"),
        ("petstore pets list -o nd", "ndjson"),
        ("petstore config use st", "staging"),
        ("petstore pets import pe", "pets.csv"),
    ] {
        let script = format!("petstore completions fish | source; complete -C '{line}'");
        let Some(mut fish) = shell("fish", &["-c", &script], home.path()) else {
            return;
        };
        let output = fish.current_dir(home.path()).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(stdout.starts_with(expected), "{script}: {stdout}");
    }
}
