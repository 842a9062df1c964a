//! Tests of start errors: an exit status, and a line that says what to do.

use std::{fs, net::TcpListener};

use super::process::{run, scratch};

/// Runs the program with arguments that it refuses, and returns its stderr.
#[track_caller]
fn refused(args: &[&str], expected: i32) -> String {
    let (status, out, err) = run(args);
    assert_eq!((status, &*out), (expected, ""), "{args:?}: {err}");
    err
}

#[test]
fn a_port_in_use_is_one_line_that_names_the_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap();
    let err = refused(&["--port", &addr.port().to_string()], 1);
    let start = format!("petstore-mock: cannot listen on {addr}: ");
    let end = "; choose another port with --port (0 takes a free one)\n";
    assert!(err.starts_with(&start) && err.ends_with(end), "{err}");
    assert_eq!(err.lines().count(), 1);
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let seed = scratch("bad.json");
    let path = seed.to_str().unwrap();
    fs::write(&seed, "[\n  {\"name\": \"Rex\", \"categoryId\": \"7\"}\n]").unwrap();
    let place = format!("{path}: `[0].categoryId`: ");
    for (args, says) in [
        (&["--seed", path][..], &*place),
        (&["--seed", "/nowhere/a"], "cannot read the seed /nowhere/a"),
        (
            &["--port-file", "/nowhere/a"],
            "cannot write the port file /nowhere/a",
        ),
        (
            &["--tls", "--tls-ca-file", "/nowhere/a"],
            "cannot write the CA certificate /nowhere/a",
        ),
        (
            &["--admin-token-file", "/nowhere/a"],
            "cannot read the admin token /nowhere/a",
        ),
    ] {
        let err = refused(&[&["--port", "0"], args].concat(), 1);
        assert!(err.starts_with(&format!("petstore-mock: {says}")), "{err}");
    }
}

#[test]
fn what_was_typed_wrong_ends_with_2() {
    for (args, says) in [
        (&["--addr", "localhost"][..], "give an IP address"),
        (&["--addr", "[::1]:80"], "the port as --port"),
        // A flag before the command would be ignored.
        (&["--port", "0", "serve"], "cannot be used"),
        // There is no certificate without --tls.
        (&["--tls-ca-file", "ca.pem"], "--tls"),
        (&["--assume", "paging=maybe"], "--assume paging=maybe: "),
    ] {
        let err = refused(args, 2);
        assert!(err.contains(says), "{args:?}: {err}");
    }
}

#[test]
fn a_key_that_was_typed_wrong_is_not_repeated() {
    for (key, says) in [
        // White space separates keys.
        ("s3cr3t s3cr3t=free", "has no `=`"),
        (" ", "has no `=`"),
        ("a=s3cr3t", "no known plan"),
        ("s3cr3t\u{e9}=free", "contains a space"),
        ("=free", "is empty"),
        ("s3cr3t=free s3cr3t=free", "give each key once"),
    ] {
        let err = refused(&["--port", "0", "--key", key], 2);
        assert!(err.contains(says) && err.lines().count() == 1, "{err}");
        assert!(!err.contains("s3cr3t"), "{err}");
    }
}
