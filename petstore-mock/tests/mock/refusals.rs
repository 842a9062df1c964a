//! Tests of start errors: one line and an exit status.

use std::{fs, net::TcpListener};

use super::process::{run, scratch};

/// Runs the program with arguments that it refuses, and returns its stderr.
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
    assert!(
        err.starts_with(&format!("petstore-mock: cannot listen on {addr}: ")),
        "{err}"
    );
    assert!(
        err.ends_with("; choose another port with --port (0 takes a free one)\n"),
        "{err}"
    );
    assert_eq!(err.lines().count(), 1);
}

#[test]
fn a_bad_seed_is_named_by_file_field_line_and_column() {
    let seed = scratch("bad.json");
    let path = seed.to_str().unwrap();
    fs::write(&seed, "[\n  {\"name\": \"Rex\", \"categoryId\": \"7\"}\n]").unwrap();
    let err = refused(&["--port", "0", "--seed", path], 1);
    let expected = format!(
        "petstore-mock: {path}: `[0].categoryId`: invalid type: string \"7\", expected i64 at line 2 \
         column 35\n"
    );
    assert_eq!(err, expected);
    fs::remove_file(&seed).unwrap();
    let err = refused(&["--port", "0", "--seed", path], 1);
    assert!(
        err.starts_with(&format!("petstore-mock: cannot read the seed {path}: ")),
        "{err}"
    );
}

#[test]
fn an_unwritable_port_file_is_an_error_before_the_ready_line() {
    let err = refused(&["--port", "0", "--port-file", "/nowhere/port"], 1);
    assert!(
        err.starts_with("petstore-mock: cannot write the port file /nowhere/port: "),
        "{err}"
    );
}

#[test]
fn what_was_typed_wrong_ends_with_2() {
    for args in [
        &["--nonsense"][..],
        &["--port", "65536"],
        &["--port", "x"],
        &["--addr", "localhost"],
        &["serve", "extra"],
        &["--port", "0", "serve"],
    ] {
        let err = refused(args, 2);
        assert!(err.starts_with("error: "), "{args:?}: {err}");
    }
    for assumption in [
        "paging=maybe",
        "window=open",
        "default-status=lost",
        "cors=localhost",
        "ban-after=-1",
        "ban-after=100001",
        "ban-for=999999999999",
        "nonsense=1",
        "paging",
    ] {
        let err = refused(&["--assume", assumption], 2);
        let start = format!("petstore-mock: --assume {assumption}: ");
        assert!(err.starts_with(&start) && err.lines().count() == 1, "{err}");
    }
}

#[test]
fn an_address_with_a_port_is_refused_with_the_flags_to_use() {
    for (address, says) in [
        ("127.0.0.1:0", "use `--addr 127.0.0.1 --port 0`"),
        ("[::1]:8080", "use `--addr ::1 --port 8080`"),
        ("localhost", "give an IP address, such as 127.0.0.1"),
    ] {
        let err = refused(&["--addr", address], 2);
        assert!(err.contains(says), "{address}: {err}");
    }
}

#[test]
fn a_key_that_was_typed_wrong_is_not_repeated() {
    for (key, says) in [
        ("s3cr3t", "has no `=`"),
        ("s3cr3t=gold", "no known plan"),
        ("a=s3cr3t", "no known plan"),
        // A space separates keys.
        ("s3cr3t s3cr3t=free", "has no `=`"),
        ("s3cr3t\ts3cr3t=free", "contains a space"),
        ("=free", "is empty"),
    ] {
        let err = refused(&["--port", "0", "--key", key], 2);
        assert!(err.contains(says) && err.lines().count() == 1, "{err}");
        assert!(!err.contains("s3cr3t"), "{err}");
    }
}

#[test]
fn a_key_that_was_given_twice_is_refused_and_not_repeated() {
    for plan in ["pro", "free"] {
        let twice = [
            "--port",
            "0",
            "--key",
            "s3cr3t=free",
            "--key",
            &format!("s3cr3t={plan}"),
        ];
        let err = refused(&twice, 2);
        assert!(
            err.contains("give each key once") && err.lines().count() == 1,
            "{err}"
        );
        assert!(!err.contains("s3cr3t"), "{err}");
    }
}

#[test]
fn a_missing_or_unwritable_certificate_file_is_an_error() {
    let err = refused(
        &["--port", "0", "--tls", "--tls-ca-file", "/nowhere/ca.pem"],
        1,
    );
    assert!(
        err.starts_with("petstore-mock: cannot write the CA certificate /nowhere/ca.pem: "),
        "{err}"
    );
    // There is none without --tls.
    refused(&["--port", "0", "--tls-ca-file", "ca.pem"], 2);
}
