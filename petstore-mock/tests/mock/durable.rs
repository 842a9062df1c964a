//! Tests of the data file with a real process: pets that were answered 201 survive `kill -9`, and
//! an unusable file is reported and not changed.

use std::{collections::BTreeMap, fs, net::SocketAddr, path::Path, sync::Mutex, thread};

use serde_json::Value;

#[cfg(target_os = "linux")]
use super::process::BINARY;
use super::process::{Running, ask, run, scratch};

const KEY: &str = "enterprise-key";

/// Starts a server that keeps its data in a file.
fn start(data: &Path, more: &[&str]) -> Running {
    Running::start(&[&["--port", "0", "--data", data.to_str().unwrap()], more].concat())
}

/// Returns all pets, name by id.
fn pets(server: &Running) -> BTreeMap<i64, String> {
    let answer = server.get("/_mock/snapshot", KEY);
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let snapshot: Value = serde_json::from_str(body).unwrap();
    let mut named = BTreeMap::new();
    for pet in snapshot["store"]["pets"].as_array().unwrap() {
        let name = pet["name"].as_str().unwrap();
        named.insert(pet["id"].as_i64().unwrap(), name.to_owned());
    }
    named
}

/// Adds a pet and returns its id, if it was answered 201.
fn create(addr: SocketAddr, name: &str) -> Option<i64> {
    let body = format!(r#"{{"name": "{name}", "categoryId": 7, "status": "sold"}}"#);
    let answer = ask(addr, "POST /v1/pets", KEY, &body)?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let pet: Value = serde_json::from_str(body).ok()?;
    let id = pet["id"].as_i64();
    id.filter(|_| head.starts_with("HTTP/1.1 201"))
}

/// Runs a server that cannot use its data file, and returns its error.
fn refusal(data: &Path) -> String {
    let (status, out, error) = run(&["--port", "0", "--data", data.to_str().unwrap()]);
    assert_eq!((status, &*out), (1, ""), "{error}");
    let prefix = format!(
        "petstore-mock: cannot use the data file {}: ",
        data.display()
    );
    let last = error.lines().last().unwrap();
    last.strip_prefix(&prefix)
        .unwrap_or_else(|| panic!("{error}"))
        .to_owned()
}

#[test]
fn created_pets_outlive_kill_9() {
    let data = scratch("killed");
    let known = Mutex::new(BTreeMap::new());
    for round in 1..=2 {
        let mut server = start(&data, &["--seed", "none"]);
        thread::scope(|scope| {
            for worker in 0..20 {
                let (known, addr) = (&known, server.addr());
                scope.spawn(move || {
                    for nth in 0..50 {
                        let name = format!("{round}-{worker}-{nth}");
                        let Some(id) = create(addr, &name) else {
                            return;
                        };
                        let twin = known.lock().unwrap().insert(id, name);
                        assert_eq!(twin, None, "the id {id} was given twice");
                    }
                });
            }
            while known.lock().unwrap().len() < 500 * round {
                thread::yield_now();
            }
            server.child.kill().unwrap();
        });
    }
    let after = pets(&start(&data, &[]));
    for (id, name) in known.into_inner().unwrap() {
        assert_eq!(after.get(&id), Some(&name), "the pet {id} is lost");
    }
    // The file contains only pets from requests, because the seed applies only to a new file.
    assert!(after.values().all(|name| name.contains('-')), "{after:?}");
}

#[test]
fn a_second_process_on_a_file_fails_and_the_first_continues() {
    let data = scratch("shared");
    let first = start(&data, &[]);
    assert_eq!(
        refusal(&data),
        "another petstore-mock is using it: stop that one, or choose another file"
    );
    assert_eq!(create(first.addr(), "Rex"), Some(26));
}

#[test]
fn a_damaged_or_foreign_file_is_refused_and_left_as_it_is() {
    let data = scratch("damaged");
    drop(start(&data, &[]));
    let whole = fs::read(&data).unwrap();
    for (bytes, says) in [
        (&b"somebody's notes"[..], "it is not a data file"),
        (&whole[..whole.len() / 2], "it is damaged"),
    ] {
        fs::write(&data, bytes).unwrap();
        let error = refusal(&data);
        assert!(error.starts_with(says), "{error}");
        assert!(fs::read(&data).unwrap() == bytes, "the file was changed");
    }
    // An incomplete commit at the end was never answered, so it is ignored. An empty file, for
    // example from `mktemp`, counts as new.
    for bytes in [&whole[..], &[&whole[..], b"{\"add\":{\"na"].concat(), b""] {
        fs::write(&data, bytes).unwrap();
        assert_eq!(pets(&start(&data, &[])).len(), 25);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn where_no_file_can_be_the_operating_system_is_quoted() {
    for (path, says) in [
        ("/nowhere/petstore.data", "No such file or directory"),
        ("/proc", "Is a directory"),
    ] {
        let error = refusal(Path::new(path));
        assert!(error.contains(says), "{error}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_507_and_not_ready_until_it_has_space() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    use std::process::Command;
    let data = scratch("full");
    // A limit of the file's size simulates a full disk.
    let script = "trap '' XFSZ; ulimit -S -f 16; exec \"$0\" --port 0 --data \"$1\"";
    let server = Running::spawn(Command::new("sh").args(["-c", script, BINARY]).arg(&data));
    let addr = server.addr();
    let name = "x".repeat(1_000);
    let mut added = Vec::new();
    while let Some(id) = create(addr, &name) {
        added.push(id);
    }
    let body = format!(r#"{{"name": "{name}", "categoryId": 7}}"#);
    let status = |line: &str, body: &str| {
        let answer = ask(addr, line, KEY, body).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status("POST /v1/pets", &body), "507");
    assert_eq!(status("GET /_mock/health", ""), "507");
    assert_eq!(status("GET /v1/pets", ""), "200");
    let pid = Pid::from_raw(i32::try_from(server.child.id()).unwrap());
    let limit = Rlimit {
        current: None,
        maximum: None,
    };
    prlimit(pid, Resource::Fsize, limit).unwrap();
    assert_eq!(status("GET /_mock/health", ""), "200");
    added.push(create(addr, "after").unwrap());
    drop(server);
    let kept = pets(&start(&data, &[]));
    assert!(added.len() > 2 && added.iter().all(|id| kept.contains_key(id)));
    assert_eq!(
        kept.len(),
        25 + added.len(),
        "a pet of a refused request is there"
    );
}
