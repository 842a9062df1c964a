//! Tests of `serve` from the ready line to the end on a signal.

use std::fs;
#[cfg(unix)]
use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Command,
};

use super::process::{Running, scratch};
#[cfg(unix)]
use super::{
    process::{BINARY, send},
    support::post_head,
};

#[cfg(unix)]
#[test]
fn prints_one_line_when_it_is_ready_and_ends_with_0_on_a_signal() {
    for (args, signal) in [
        (&["--port", "0"][..], "INT"),
        (&["serve", "--port", "0"], "TERM"),
    ] {
        let server = Running::start(args);
        assert!(server.addr().ip().is_loopback());
        let answer = server.get("/v1/pets", "free-key");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        let (status, out, err) = server.stop(signal);
        assert_eq!((status, &*out), (Some(0), ""));
        let line = "petstore-mock: compliance: nothing found in 1 request\n";
        assert_eq!(err, line);
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
    send("INT", &server.child);
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
    drop(silent());
    let answer = server.get("/v1/pets", "free-key");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let again = silent();
    assert_eq!(server.stop("TERM").0, Some(0));
    drop(again);
}

#[test]
fn writes_the_port_and_the_certificate_before_it_says_that_it_is_ready() {
    let (port, ca) = (scratch("port"), scratch("ca.pem"));
    let flags = ["--port-file", port.to_str().unwrap(), "--tls"];
    let ca_file = ["--port=0", "--tls-ca-file", ca.to_str().unwrap()];
    let server = Running::start(&[&flags[..], &ca_file].concat());
    let port = fs::read_to_string(&port).unwrap();
    let url = format!("listening on https://127.0.0.1:{}/v1\n", port.trim_end());
    assert_eq!(server.ready, url);
    let pem = fs::read_to_string(&ca).unwrap();
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"), "{pem}");
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
