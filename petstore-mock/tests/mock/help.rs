//! The help and the version.

use super::process::run;

#[test]
fn the_version_goes_to_stdout() {
    let (status, out, err) = run(&["--version"]);
    assert_eq!((status, &*err), (0, ""));
    assert_eq!(out, concat!("petstore-mock ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// Returns the help in two parts: before the assumptions, and the assumptions.
fn help() -> (String, String) {
    let (status, out, err) = run(&["--help"]);
    assert_eq!((status, &*err), (0, ""));
    let lines: Vec<_> = out.lines().map(str::trim_end).collect();
    let assumptions = lines.iter().position(|line| *line == "Assumptions:").unwrap();
    let (first, second) = lines.split_at(assumptions);
    (first.join("\n"), second.join("\n"))
}

#[test]
fn the_help_names_its_commands_and_flags() {
    insta::assert_snapshot!(help().0, @r#"
    A mock server that implements the whole Pet Store service.

    Where the service's specification is silent, the mock makes assumptions. The flags below that are
    marked as assumptions change them.

    Without a command, `petstore-mock` serves.

    Usage: petstore-mock [OPTIONS]
           petstore-mock <COMMAND>

    Commands:
      serve        Serve until SIGINT or SIGTERM (default command)
      exec         Serve while another command runs, and exit with its status
      health       Check whether a mock is ready: exit status 0 if it is
      openapi      Print the OpenAPI document of the service
      completions  Print the completions of a shell
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Server:
          --addr <ADDR>
              Address to listen on

              [default: 127.0.0.1]

          --port <PORT>
              Port to listen on; 0 for a free port (default: 4010; with exec, a free port)

          --port-file <FILE>
              File to write the port to, before the ready line

          --tls
              Serve over TLS, with a new certificate authority at each start.

              The certificate is for localhost, 127.0.0.1, ::1 and the listening address.

          --tls-ca-file <FILE>
              File to write the authority's certificate to (PEM), before the ready line

          --admin-token-file <FILE>
              File with a token for administration from other machines.

              The variable PETSTORE_MOCK_ADMIN_TOKEN also sets it. Without a token, administration is
              local only.

    Service:
          --key <[NAME:]KEY=PLAN>
              Key and its plan: free, pro, business, enterprise, or enterprise:MINUTE/DAY (repeatable).

              NAME:KEY=PLAN gives the key a name for reports and the journal. Write :KEY=PLAN if a key
              without a name contains a colon.

              Replaces the default keys: free-key=free, pro-key=pro, business-key=business,
              enterprise-key=enterprise. Assumption: the specification shows neither how a key maps to a
              plan nor the quotas of Enterprise (default: 1000000 per minute and 100000000 per day).

          --seed <FILE|none>
              JSON file with the initial pets; `none` for an empty store.

              An array of pets, or {"pets": [...], "orders": [...]}. A pet without an id gets one. The
              default is 25 pets, the same at each start.

          --data <FILE>
              File that keeps pets, orders and ids; created if missing (default: keep nothing).

              A pet that was answered 201 survives a kill of the process. The seed applies only to a new
              or empty file. Only one petstore-mock at a time can use a file.

          --faults <FILE>
              JSON file with an array of initial faults.

              The format of each is that of POST /_mock/faults, such as {"operation": "listPets",
              "effect": {"status": 503}}.

          --start-at <DATE>
              Start of the mock's clock, such as 2030-12-04 or 2030-12-04T23:59:00Z (default: now)
    "#);
}

#[test]
fn the_help_marks_what_is_assumed() {
    insta::assert_snapshot!(help().1, @r"
    Assumptions:
          --default-status <STATUS>
              Status of a pet that is created without one (assumption: none)

              [possible values: available, pending, sold]

          --paging <SWITCH>
              Whether a page has a Link to the next page (assumption: on)

              [default: on]
              [possible values: on, off]

          --window <KIND>
              Kind of quota window (assumption: fixed).

              Fixed windows are aligned to the minute and to the UTC day. Sliding windows are the last
              60 and 86400 seconds.

              [default: fixed]
              [possible values: fixed, sliding]

          --cors <ORIGIN|*|off>
              Origin whose web pages may use the service; `*` for all, `off` for none (assumption: all)

              [default: *]

          --rate-headers <QUOTA>
              Quota in the X-RateLimit headers (assumption: the one with the fewest requests left)

              [default: tightest]
              [possible values: tightest, minute, day]

          --ban-after <N>
              Requests before the end of Retry-After that do not cause a ban (assumption: 10)

              [default: 10]

          --ban-within <SECONDS>
              Seconds within which those requests are counted (assumption: 60)

              [default: 60]

          --ban-for <SECONDS>
              Duration of a ban in seconds; 0 disables bans (assumption: 300)

              [default: 300]

    Limits:
          --max-connections <N>
              Maximum connections at once; others are answered 503

              [default: 4096]

          --max-admin-body <BYTES>
              Maximum size in bytes of a body for the administration; larger ones are answered 413

              [default: 268435456]

          --head-timeout <SECONDS>
              Seconds for the head of a request, then it is answered 408; 0 for no limit

              [default: 10]

          --body-timeout <SECONDS>
              Seconds for the body of a request, then it is answered 408; 0 for no limit

              [default: 30]

          --idle-timeout <SECONDS>
              Seconds that a connection may be idle, then it is closed; 0 for no limit

              [default: 120]

          --write-timeout <SECONDS>
              Seconds that a client may not read its response, then the connection is reset; 0 for no
              limit

              [default: 30]

          --grace <SECONDS>
              Seconds for requests in flight when the server stops; a second signal stops it immediately

              [default: 5]

    Report:
          --report <FILE>
              File to write the compliance report to, when the server stops.

              Its extension sets the format: .txt, .json, .xml (JUnit) or .md.

          --report-format <FORMAT>
              Format of that file, regardless of its extension

              [possible values: text, json, junit, markdown]

          --rule <NAME=SEVERITY>
              Severity of a rule: off, notice, warning or violation (repeatable).

              Rules: told-to-wait, back-off, repeated-post, key-in-url (violations), retry-after,
              steady-retry, repeated-error, key-scheme (warnings), quota-ignored, deprecated,
              keep-alive, user-agent (notices). A notice never fails a run.

          --fail-on <SEVERITY>
              Exit with 3 if the report has violations; with `warnings`, also if it has warnings

              [possible values: violations, warnings]
    ");
}
