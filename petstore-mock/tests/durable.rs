//! The data file, with the binary as a process: what was answered 201 outlives `kill -9`, and a file
//! that can't be used is named and left as it is.
#![cfg(feature = "data")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::Value;

/// A path of this test's own, below the folder that cargo gives tests.
fn scratch(name: &str) -> PathBuf {
    let name = format!("durable-{}-{name}", std::process::id());
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn command(data: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_petstore-mock"));
    command.args(["--port", "0", "--data"]).arg(data).args(more).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server that is ready; it is killed when this is dropped, as by `kill -9`.
struct Running {
    child: Child,
    addr: SocketAddr,
}

impl Running {
    fn start(data: &Path, more: &[&str]) -> Self {
        let mut child = command(data, more).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let addr = ready.strip_prefix("listening on http://").and_then(|rest| {
            let addr = rest.strip_suffix("/v1\n")?;
            addr.parse().ok()
        });
        let Some(addr) = addr else {
            let mut error = String::new();
            child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
            panic!("it is not ready: {error}");
        };
        Self { child, addr }
    }

    /// Returns all pets, name by id.
    fn pets(&self) -> BTreeMap<i64, String> {
        let mut pets = BTreeMap::new();
        let mut path = "/v1/pets?limit=100".to_owned();
        loop {
            let answer = ask(self.addr, &format!("GET {path} HTTP/1.1"), "").unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            for pet in serde_json::from_str::<Value>(body).unwrap().as_array().unwrap() {
                pets.insert(pet["id"].as_i64().unwrap(), pet["name"].as_str().unwrap().to_owned());
            }
            let Some(next) = head.split("link: <").nth(1) else { return pets };
            next.split('>').next().unwrap().clone_into(&mut path);
        }
    }

    /// Adds a pet and returns its id, if it was answered 201.
    fn create(addr: SocketAddr, name: &str) -> Option<i64> {
        let body = format!(r#"{{"name": "{name}", "categoryId": 7, "status": "sold"}}"#);
        let answer = ask(addr, "POST /v1/pets HTTP/1.1", &body)?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let pet: Value = serde_json::from_str(body).ok()?;
        head.starts_with("HTTP/1.1 201").then(|| pet["id"].as_i64()).flatten()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already where the test stopped it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends one request and returns the whole answer; nothing if the server is gone.
fn ask(addr: SocketAddr, line: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(addr).ok()?;
    let length = body.len();
    let request = format!(
        "{line}\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer enterprise-key\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Starts a server that can't, and returns what it says.
fn refusal(data: &Path) -> String {
    let mut child = command(data, &[]).spawn().unwrap();
    let mut out = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut out).unwrap();
    if !out.is_empty() {
        child.kill().unwrap();
        panic!("it was not refused: {out}");
    }
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{error}");
    let prefix = format!("petstore-mock: can't use the data file {}: ", data.display());
    let last = error.lines().last().unwrap();
    last.strip_prefix(&prefix).unwrap_or_else(|| panic!("{error}")).to_owned()
}

#[test]
fn what_was_answered_201_outlives_kill_9_in_the_middle_of_a_thousand_creations() {
    let data = scratch("killed");
    let mut known: BTreeMap<i64, String> = BTreeMap::new();
    for round in 0..3 {
        let mut server = Running::start(&data, &["--seed", "none"]);
        let before = server.pets();
        for (id, name) in &known {
            assert_eq!(before.get(id), Some(name), "the pet {id} is lost");
        }
        let highest = before.keys().max().copied().unwrap_or(0);
        let (added, answered) = (Mutex::new(BTreeMap::new()), AtomicUsize::new(0));
        thread::scope(|scope| {
            for worker in 0..20 {
                let (added, answered, addr) = (&added, &answered, server.addr);
                scope.spawn(move || {
                    for nth in 0..50 {
                        let name = format!("{round}-{worker}-{nth}");
                        let Some(id) = Running::create(addr, &name) else { return };
                        let twin = added.lock().unwrap().insert(id, name);
                        assert_eq!(twin, None, "the id {id} was given twice");
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            while answered.load(Ordering::Relaxed) < 500 {
                thread::yield_now();
            }
            server.child.kill().unwrap();
        });
        let added = added.into_inner().unwrap();
        assert!(added.keys().all(|id| *id > highest), "an id was given again");
        known.extend(added);
    }
    assert!(known.len() >= 1_500);
    let server = Running::start(&data, &[]);
    let after = server.pets();
    assert!(known.iter().all(|(id, name)| after.get(id) == Some(name)));
    // The seed is for a new file only: nothing came but what was asked for.
    assert!(after.values().all(|name| name.contains('-')), "{after:?}");
    drop(server);
    fs::remove_file(data).unwrap();
}

#[test]
fn the_second_process_on_a_file_is_told_so_and_the_first_goes_on() {
    let data = scratch("shared");
    let first = Running::start(&data, &[]);
    assert_eq!(
        refusal(&data),
        "another petstore-mock is using it: stop that one, or choose another file"
    );
    assert_eq!(Running::create(first.addr, "Rex"), Some(26));
    drop(first);
    let second = Running::start(&data, &[]);
    assert_eq!(second.pets()[&26], "Rex");
    drop(second);
    fs::remove_file(data).unwrap();
}

#[test]
fn a_damaged_or_foreign_file_is_refused_and_left_as_it_is() {
    let data = scratch("damaged");
    drop(Running::start(&data, &[]));
    let whole = fs::read(&data).unwrap();
    let mut flipped = whole.clone();
    flipped[300] ^= 1;
    let text = b"somebody's notes".to_vec();
    let half = whole[..whole.len() / 2].to_vec();
    let head = whole[..100].to_vec();
    let foreign = "it is not a data file of petstore-mock, and is left as it is";
    let damaged = "it is damaged, and is left as it is";
    for (bytes, says) in [
        (text, foreign),
        (half, damaged),
        (head, damaged),
        (flipped, damaged),
        (vec![0; 9_000], foreign),
    ] {
        fs::write(&data, &bytes).unwrap();
        let error = refusal(&data);
        assert!(error.starts_with(says), "{error}");
        assert!(fs::read(&data).unwrap() == bytes, "it was written to: {error}");
    }
    fs::write(&data, &whole).unwrap();
    assert_eq!(Running::start(&data, &[]).pets().len(), 25);
    // What follows the last whole commit was never answered.
    fs::write(&data, [&whole[..], b"5f1c0000 300 [{\"add"].concat()).unwrap();
    assert_eq!(Running::start(&data, &[]).pets().len(), 25);
    // A file that is there but empty, as `mktemp` makes one, is a new one.
    fs::write(&data, "").unwrap();
    assert_eq!(Running::start(&data, &[]).pets().len(), 25);
    fs::remove_file(data).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn where_no_file_can_be_made_the_operating_system_is_quoted() {
    // Not even root can make a file there.
    let error = refusal(Path::new("/proc/petstore.data"));
    assert!(error.contains("os error"), "{error}");
    let error = refusal(Path::new("/nowhere/petstore.data"));
    assert!(error.contains("No such file or directory"), "{error}");
    assert!(refusal(Path::new("/proc")).contains("Is a directory"));
}

/// The status of an answer, which must have the Error shape if it is an error.
fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_507_and_not_ready_until_there_is_room_again() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let data = scratch("full");
    // A limit of the file's size stands for a full disk: the write fails either way.
    let script = "trap '' XFSZ; ulimit -S -f 16; exec \"$0\" --port 0 --data \"$1\"";
    let mut child = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_petstore-mock")])
        .arg(&data)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let addr = ready.trim().strip_prefix("listening on http://").unwrap();
    let addr = addr.strip_suffix("/v1").unwrap().parse().unwrap();
    let server = Running { child, addr };
    let name = "x".repeat(1_000);
    let mut added = Vec::new();
    while let Some(id) = Running::create(addr, &name) {
        added.push(id);
    }
    let body = format!(r#"{{"name": "{name}", "categoryId": 7}}"#);
    let refused = ask(addr, "POST /v1/pets HTTP/1.1", &body).unwrap();
    assert_eq!(status(&refused), "507", "{refused}");
    assert!(refused.contains("insufficient_storage"), "{refused}");
    let is_ready = || ask(addr, "GET /_mock/ready HTTP/1.1", "").unwrap();
    assert_eq!(status(&is_ready()), "507");
    assert_eq!(status(&ask(addr, "GET /_mock/health HTTP/1.1", "").unwrap()), "200");
    assert_eq!(status(&ask(addr, "GET /v1/pets HTTP/1.1", "").unwrap()), "200");
    let pid = Pid::from_raw(i32::try_from(server.child.id()).unwrap());
    let limit = Rlimit { current: None, maximum: None };
    prlimit(pid, Resource::Fsize, limit).unwrap();
    assert_eq!(status(&is_ready()), "200");
    added.push(Running::create(addr, "after").unwrap());
    drop(server);
    let kept = Running::start(&data, &[]).pets();
    assert!(added.len() > 2 && added.iter().all(|id| kept.contains_key(id)), "{}", kept.len());
    assert_eq!(kept.len(), 25 + added.len(), "what was refused is not there");
    fs::remove_file(data).unwrap();
}
