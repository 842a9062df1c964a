//! Tests of `serve` from the ready line to the end on a signal.

use std::fs;
#[cfg(unix)]
use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Command,
};

#[cfg(unix)]
use super::process::BINARY;
use super::process::{Running, scratch};
#[cfg(unix)]
use super::support::post_head;

#[cfg(unix)]
#[test]
fn prints_one_line_when_it_is_ready_and_ends_with_0_on_a_signal() {
    for (args, signal) in [
        (&["--port", "0"][..], "INT"),
        (&["serve", "--port", "0"], "TERM"),
    ] {
        let server = Running::start(args);
        assert!(server.addr().ip().is_loopback());
        assert!(
            server
                .get("/v1/pets", "free-key")
                .starts_with("HTTP/1.1 200 OK\r\n")
        );
        // Neither an idle connection nor one without any request may delay the stop.
        let idle = TcpStream::connect(server.addr()).unwrap();
        let (status, out, err) = server.stop(signal);
        assert_eq!((status, &*out), (Some(0), ""));
        assert!(
            err.starts_with("petstore-mock: compliance: ") && err.lines().count() == 1,
            "{err}"
        );
        drop(idle);
    }
}

#[cfg(unix)]
#[test]
fn a_second_signal_does_not_wait_for_requests_in_flight() {
    let server = Running::start(&["--port", "0"]);
    let mut stream = TcpStream::connect(server.addr()).unwrap();
    let head = post_head("Content-Length: 32\r\nExpect: 100-continue");
    stream.write_all(head.as_bytes()).unwrap();
    stream.read_exact(&mut [0; 12]).unwrap();
    let pid = server.child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    // The first has arrived when the port is closed.
    while TcpStream::connect(server.addr()).is_ok() {}
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(server.stop("INT").0));
    // This is less than the grace period for requests in flight.
    let status = told.recv_timeout(std::time::Duration::from_secs(4));
    assert_eq!(status, Ok(Some(0)), "a graceful stop");
}

#[cfg(unix)]
#[test]
fn the_mock_recovers_when_file_descriptors_are_free_again() {
    let script = "ulimit -n 40 && exec \"$0\" --port 0";
    let server = Running::spawn(Command::new("sh").args(["-c", script, BINARY]));
    let silent = || -> Vec<_> {
        (0..60)
            .map(|_| TcpStream::connect(server.addr()).unwrap())
            .collect()
    };
    let first = silent();
    drop(first);
    assert!(
        server
            .get("/v1/pets", "free-key")
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
    let second = silent();
    assert_eq!(server.stop("TERM").0, Some(0));
    drop(second);
}

#[test]
fn writes_the_port_file_before_it_says_that_it_is_ready() {
    let file = scratch("port");
    let server = Running::start(&["--port", "0", "--port-file", file.to_str().unwrap()]);
    let port = fs::read_to_string(&file).unwrap();
    assert_eq!(port, format!("{}\n", server.addr().port()));
    server.stop("TERM");
}

#[test]
fn serves_as_its_flags_say() {
    let seed = scratch("seed.json");
    fs::write(&seed, r#"[{"name": "Rex", "categoryId": 7, "id": 5}]"#).unwrap();
    let server = Running::start(&[
        "--port=0",
        "--seed",
        seed.to_str().unwrap(),
        "--key=a=b=enterprise:9/9",
        "--key=c=pro",
        "--assume=rate-headers=day",
    ]);
    for (key, part) in [
        ("a=b", "x-ratelimit-limit: 9\r\n"),
        ("a=b", r#"[{"id":5,"name":"Rex","categoryId":7}]"#),
        ("c", "x-ratelimit-limit: 10000\r\n"),
        ("free-key", "HTTP/1.1 401"),
    ] {
        let answer = server.get("/v1/pets", key);
        assert!(answer.contains(part), "{key}: {answer}");
    }
    let empty = Running::start(&["--port=0", "--seed=none"]);
    assert!(empty.get("/v1/pets", "free-key").ends_with("\r\n\r\n[]"));
}

#[test]
fn the_ready_line_has_the_address_that_it_listens_on() {
    let server = Running::start(&["--port=0", "--addr=0.0.0.0"]);
    let ready = &server.ready;
    assert!(ready.starts_with("listening on http://0.0.0.0:"), "{ready}");
}

#[test]
fn the_authoritys_certificate_is_written_before_readiness() {
    let file = scratch("ca.pem");
    let path = file.to_str().unwrap();
    let server = Running::start(&["--port", "0", "--tls", "--tls-ca-file", path]);
    assert!(
        server.ready.starts_with("listening on https://127.0.0.1:"),
        "{}",
        server.ready
    );
    let pem = fs::read_to_string(&file).unwrap();
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"), "{pem}");
}
