//! A shell with its own home folder, the programs of this build in `PATH`, and a mock server.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::SystemTime;

use petstore_mock::{MockServer, Plan};
use tempfile::TempDir;

use super::{CRATES, files, root};

/// The base URL in the documents.
const ELSEWHERE: &str = "https://petstore.example/v1";

/// The example that the README runs.
const EXAMPLE: &str = "examples/quickstart";

/// A replacement for the programs that run the user's tests in the documents.
const TESTS: &str = "#!/bin/sh\nexec petstore pets list --limit 1\n";

pub(super) struct Shell {
    pub(super) home: TempDir,
    server: MockServer,
}

/// The folder with the programs of this build, which are built if they are missing, or older than
/// their source.
fn programs() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let test = std::env::current_exe().unwrap();
        let folder = test.parent().and_then(Path::parent).unwrap();
        let built = ["petstore", "petstore-mock", EXAMPLE].map(|name| written(&folder.join(name)));
        if built.into_iter().min().flatten() < newest_source() {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "--workspace", "--bins", "--examples"]);
            // Build scripts read what cargo says about their package. What it says about this one
            // would build them again, here and by the next command.
            for (name, _) in std::env::vars() {
                if name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_") {
                    build.env_remove(name);
                }
            }
            assert!(build.current_dir(root()).status().unwrap().success());
        }
        folder.to_owned()
    });
    &FOLDER
}

/// Returns when a file was written; `None` if it is missing.
fn written(file: &Path) -> Option<SystemTime> {
    file.metadata().and_then(|found| found.modified()).ok()
}

/// Returns when a file that the programs are built from was written last.
fn newest_source() -> Option<SystemTime> {
    const KINDS: &[&str] = &["css", "html", "js", "md", "rs", "txt", "yaml"];
    let sources = CRATES.map(|name| files(&format!("{name}/src"), KINDS));
    let sources = sources.iter().flatten();
    sources.filter_map(|file| written(&root().join(file))).max()
}

impl Shell {
    /// Opens a shell whose home folder has the files that the examples name.
    pub(super) fn open() -> Self {
        use std::os::unix::fs::PermissionsExt;

        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(home.path().join(name), text).unwrap();
        write("key.txt", "k\n");
        write("pets.csv", "name,categoryId\nRex,7\n");
        std::fs::create_dir(home.path().join("bin")).unwrap();
        for name in ["bin/cargo", "bin/npm", "bin/pytest"] {
            write(name, TESTS);
            let runs = PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(home.path().join(name), runs).unwrap();
        }
        let builder = MockServer::builder().key("k", Plan::Business);
        let server = builder.start_blocking().unwrap();
        Self { home, server }
    }

    /// Runs a script. Panics if it fails.
    pub(super) fn type_in(&self, script: &str, vars: &[(&str, &str)]) {
        let ended = self.command(script, vars).output().unwrap();
        assert!(ended.status.success(), "{script}\n{ended:?}");
    }

    pub(super) fn command(&self, script: &str, vars: &[(&str, &str)]) -> Command {
        let (home, programs) = (self.home.path(), programs());
        let examples = format!("{}/examples/", programs.display());
        let script = script
            .replace(ELSEWHERE, self.server.url())
            .replace("cargo run -- ", "petstore ")
            .replace("cargo run -p petstore-examples --example ", &examples);
        let (own, built) = (home.join("bin"), programs.display());
        let path = format!("{}:{built}:/usr/local/bin:/usr/bin:/bin", own.display());
        let mut shell = Command::new("sh");
        shell
            .args(["-eu", "-c", &script])
            .current_dir(home)
            .env_clear()
            .env("HOME", home)
            .env("PATH", path)
            .envs(vars.iter().copied())
            // `auth login` reads the key from standard input.
            .stdin(std::fs::File::open(home.join("key.txt")).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        shell
    }

    /// Reads a file that a script has left.
    pub(super) fn left(&self, name: &str) -> String {
        std::fs::read_to_string(self.home.path().join(name)).unwrap()
    }

    /// The variables that name the mock server and its key.
    pub(super) fn set_up(&self) -> [(&'static str, &str); 2] {
        [
            ("PETSTORE_BASE_URL", self.server.url()),
            ("PETSTORE_API_KEY", "k"),
        ]
    }
}
