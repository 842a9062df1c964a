//! Tests that no command writes the key.

use petstore_mock::Plan;
use wiremock::ResponseTemplate;

use super::harness::{Petstore, answering, serve};

const KEY: &str = "sentinel-5f1c";

const COMMANDS: [&str; 21] = [
    "pets list",
    "pets list --all -o json",
    "pets list -o table",
    "pets get 1",
    "pets get 999",
    "pets create Rex --category-id 7",
    "store orders",
    "limits",
    "pets list --jq env",
    "api /pets -i",
    "api /nope -i",
    "api /pets -X DELETE",
    "pets list --limit 0",
    "pets export",
    "pets import",
    "api /pets -d {} --dry-run",
    "auth status",
    "config list",
    "doctor",
    "--help",
    "pets",
];

#[tokio::test]
async fn no_output_contains_the_key() {
    let server = serve(KEY, Plan::Business).await;
    let refusing = serve("another", Plan::Free).await;
    let spent = serve(KEY, Plan::enterprise(0, 0)).await;
    for target in [&server, &refusing, &spent] {
        for line in COMMANDS {
            for told in ["-q", "-vvv --error-format json"] {
                let home = tempfile::tempdir().unwrap();
                let petstore = Petstore::at(target, KEY).home(home.path());
                let petstore = petstore.stdin("name,categoryId\nRex,7\n");
                let line = format!("--max-wait 0 {told} {line}");
                let ran = petstore.run(&line).await;
                assert!(!(ran.stdout + &ran.stderr).contains(KEY), "{line}");
            }
        }
    }
}

#[tokio::test]
async fn a_service_that_repeats_the_key_does_not_bring_it_to_light() {
    let problem = serde_json::json!({ "code": KEY, "message": format!("bad key: {KEY}") });
    let next = format!("<http://127.0.0.1:9/{KEY}>; rel=next");
    for answer in [
        ResponseTemplate::new(401).set_body_json(problem),
        ResponseTemplate::new(200).set_body_string(format!("[{KEY}]")),
        ResponseTemplate::new(200).insert_header("link", next),
    ] {
        let server = answering(answer).await;
        for line in [
            "pets list --all",
            "pets create Rex --category-id 7",
            "api /x -X POST -i",
        ] {
            let ran = Petstore::with(&server.uri(), KEY).run(line).await;
            // The successful response of a raw request is data, and shown unchanged.
            let is_data = ran.code == 0;
            assert!(is_data || !ran.stdout.contains(KEY), "{}", ran.stdout);
            ran.never_says(KEY);
        }
    }
}

#[tokio::test]
async fn headers_that_may_hold_a_secret_are_hidden() {
    let answer = ResponseTemplate::new(200).set_body_string("[]");
    let answer = answer
        .insert_header("set-cookie", "id=hush")
        .insert_header("x-request-id", "42");
    let server = answering(answer).await;
    let words = ["api", "/x", "-H", "X-Token: hush", "-vvv"];
    let ran = Petstore::with(&server.uri(), KEY).run_words(&words).await;
    ran.says("\n< x-request-id: 42\n");
    ran.never_says("hush");
}

#[tokio::test]
async fn no_output_contains_a_password_from_any_setting() {
    const PASSWORD: &str = "sentinel-7d2e/x%";
    const LINES: [&str; 9] = [
        "config list -o json",
        "config get limits_store",
        "pets list -vvv",
        "doctor",
        "auth status",
        "limits",
        "--mock limits --jq env",
        "api /pets --dry-run",
        "pets import rows.csv --unknown check",
    ];
    let listed = Petstore::bare().run("config list --fields setting").await;
    let settings: Vec<_> = listed.stdout.lines().collect();
    assert!(settings.contains(&"limits_store"), "{settings:?}");
    let urls = [
        format!("redis://me:{PASSWORD}@127.0.0.1:1/x"),
        format!("https://me:{PASSWORD}@127.0.0.1:1/v1"),
        format!("redi://me:{PASSWORD}@cache"),
        format!("me:{PASSWORD}@cache"),
    ];
    let proxies = ["https_proxy", "ALL_PROXY"].map(str::to_owned);
    for url in &urls {
        let check = |ran: super::harness::Ran, what: &str| {
            let output = format!("{}{}", ran.stdout, ran.stderr);
            let decoded = PASSWORD.trim_end_matches('%');
            assert!(!output.contains(decoded), "{what}: {output}");
        };
        let home = tempfile::tempdir().unwrap();
        let petstore = || {
            let petstore = Petstore::bare().var("PETSTORE_API_KEY", KEY);
            petstore.home(home.path()).var("PETSTORE_TIMEOUT", "1")
        };
        for setting in &settings {
            if ["profile", "api_key"].contains(setting) {
                continue;
            }
            let set = format!("config set {setting} {url}");
            check(petstore().run(&set).await, setting);
            let flag = format!("--{}={url}", setting.replace('_', "-"));
            for line in ["pets list --limit 1 -q", "nope", "pets list --nope"] {
                for json in ["", "--error-format json"] {
                    let line = format!("{line} {flag} {json}");
                    check(petstore().run(&line).await, &flag);
                }
            }
            // A file with the setting, valid or not.
            let config = format!("[profiles.default]\n{setting} = \"{url}\"\n");
            let file = super::harness::home_with(&config);
            for line in ["config list", "doctor"] {
                check(petstore().home(file.path()).run(line).await, setting);
            }
        }
        let settings = settings.iter().filter(|setting| **setting != "api_key");
        let variables = settings.map(|setting| format!("PETSTORE_{}", setting.to_uppercase()));
        for name in variables.chain(proxies.clone()) {
            for line in LINES {
                check(petstore().var(&name, url).run(line).await, &name);
            }
        }
    }
}
