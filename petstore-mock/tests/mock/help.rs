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

    Where the service's specification is silent, the mock takes the plainest reading. Each of these is
    marked below as an assumption, with the flag that chooses another.

    Without a command, `petstore-mock` serves.

    Usage: petstore-mock [OPTIONS]
           petstore-mock <COMMAND>

    Commands:
      serve        Serves until SIGINT or SIGTERM; so does the mock without a command
      exec         Serves while another command runs, and ends as that ends
      health       Asks a mock whether it is ready: exit status 0 if it is
      openapi      Prints the OpenAPI document of the service
      completions  Prints a script by which a shell completes the commands and flags of petstore-mock
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
              Port to listen on; 0 takes a free one (default: 4010, and for exec a free one)

          --port-file <FILE>
              File to write the port to, before the ready line is printed

          --tls
              Serve over TLS, with a certificate authority that is made anew at each start.

              The certificate is for localhost, 127.0.0.1, ::1 and the address listened on.

          --tls-ca-file <FILE>
              File to write the authority's certificate to (PEM), before the ready line is printed

          --admin-token-file <FILE>
              File with the token by which the mock can be administered from other machines.

              The variable PETSTORE_MOCK_ADMIN_TOKEN does the same; without either, it can't be.

    Service:
          --key <[NAME:]KEY=PLAN>
              Key and its plan: free, pro, business, enterprise, or enterprise:MINUTE/DAY (repeatable).

              With a name, NAME:KEY=PLAN, reports and the journal show the key by that; write :KEY=PLAN
              for a key that holds a colon and has no name.

              The first one replaces the four that are there otherwise: free-key=free, pro-key=pro,
              business-key=business, enterprise-key=enterprise. Assumption: the specification does not
              show how a key maps to a plan, nor Enterprise's quotas (here 1000000 a minute and
              100000000 a day unless set).

          --seed <FILE|none>
              JSON file with the pets to start with; `none` for an empty store.

              An array of pets, or {"pets": [...], "orders": [...]}. A pet without an id gets one.
              Without this flag there are 25 pets, the same at each start.

          --data <FILE>
              File that keeps pets, orders and ids; made if it is not there (nothing is kept unless
              given).

              A pet that was answered 201 is there after the process was killed. The seed is for a new
              or empty file only. One petstore-mock at a time can use a file.

          --faults <FILE>
              JSON file with an array of faults that are there from the start.

              Each is what POST /_mock/faults takes, such as {"operation": "listPets", "effect":
              {"status": 503}}.

          --start-at <DATE>
              Date at which the mock's clock starts, such as 2030-12-04 or 2030-12-04T23:59:00Z
              (default: now)
    "#);
}

#[test]
fn the_help_marks_what_is_assumed() {
    insta::assert_snapshot!(help().1, @r"
    Assumptions:
          --default-status <STATUS>
              Status of a pet that is added without one (assumption: it has none)

              [possible values: available, pending, sold]

          --paging <SWITCH>
              Whether a page that more pets follow has a Link to the next one (assumption: it has)

              [default: on]
              [possible values: on, off]

          --window <KIND>
              Kind of window the quotas count in (assumption: fixed).

              Fixed windows are aligned to the clock's minute and to the UTC day; sliding ones are the
              last 60 and 86400 seconds.

              [default: fixed]
              [possible values: fixed, sliding]

          --cors <ORIGIN|*|off>
              Origin whose pages may use the service from a browser; `off` for none (assumption: all
              may)

              [default: *]

          --rate-headers <QUOTA>
              Quota the X-RateLimit headers describe (assumption: the one with the fewest requests left)

              [default: tightest]
              [possible values: tightest, minute, day]

          --ban-after <N>
              Requests sent during a Retry-After that are forgiven before a ban (assumption: 10)

              [default: 10]

          --ban-within <SECONDS>
              Seconds within which they count together (assumption: 60)

              [default: 60]

          --ban-for <SECONDS>
              Seconds a ban lasts; 0 switches bans off (assumption: 300)

              [default: 300]

    Limits:
          --max-connections <N>
              Connections served at once; those beyond are answered 503

              [default: 4096]

          --max-admin-body <BYTES>
              Bytes a body may have that is sent to the mock's administration, then it is answered 413

              [default: 268435456]

          --head-timeout <SECONDS>
              Seconds the head of a request may take, then it is answered 408; 0 for any time

              [default: 10]

          --body-timeout <SECONDS>
              Seconds the body of a request may take, then it is answered 408; 0 for any time

              [default: 30]

          --idle-timeout <SECONDS>
              Seconds a connection may be idle, then it is closed; 0 for any time

              [default: 120]

          --write-timeout <SECONDS>
              Seconds a client may take nothing of its answer, then it is cut; 0 for any time

              [default: 30]

          --grace <SECONDS>
              Seconds requests at hand may take when the server stops; a second signal ends that wait

              [default: 5]

    Report:
          --report <FILE>
              File to write the compliance report on the client to, when the server stops.

              Its name says in which format: .txt, .json, .xml (JUnit) or .md.

          --report-format <FORMAT>
              Format of that file, whatever its name

              [possible values: text, json, junit, markdown]

          --rule <NAME=SEVERITY>
              Severity of a rule: off, notice, warning or violation (repeatable).

              Rules: told-to-wait, back-off, repeated-post, key-in-url (violations), retry-after,
              steady-retry, repeated-error, key-scheme (warnings), quota-ignored, deprecated,
              keep-alive, user-agent (notices). A notice never fails a run.

          --fail-on <SEVERITY>
              End with 3 if the report has violations; with `warnings`, also if it has warnings

              [possible values: violations, warnings]
    ");
}
