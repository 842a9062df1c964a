//! The key is in nothing that any command writes.

use petstore_mock::{MockServer, Plan};
use wiremock::matchers::any;
use wiremock::{Mock, ResponseTemplate};

use super::harness::Petstore;

const KEY: &str = "sentinel-5f1c";

const COMMANDS: [&str; 14] = [
    "pets list",
    "pets list --all -o json -v",
    "pets list -o table -v",
    "pets get 1 -v",
    "pets get 999 -v",
    "pets create Rex --category-id 7 -v",
    "store orders -v",
    "limits -v",
    "api /pets -i -v",
    "api /nope -i -v",
    "api /pets -X DELETE -v",
    "pets list --limit 0",
    "--help",
    "pets",
];

#[tokio::test]
async fn the_key_is_in_nothing_that_is_written() {
    let server = MockServer::builder().key(KEY, Plan::Free).start().await.unwrap();
    let refusing = MockServer::builder().key("another", Plan::Free).start().await.unwrap();
    let spent = MockServer::builder().key(KEY, Plan::enterprise(0, 0)).start().await.unwrap();
    for target in [&server, &refusing, &spent] {
        for line in COMMANDS {
            let ran = Petstore::at(target, KEY).run(&format!("--max-wait 0 {line}")).await;
            assert!(!(ran.stdout + &ran.stderr).contains(KEY), "{line}");
        }
    }
}

#[tokio::test]
async fn a_service_that_repeats_the_key_does_not_bring_it_to_light() {
    let said = format!("bad key: Bearer {KEY}");
    let odd_json = format!(r#"[{{"id":"{KEY}","{KEY}":1}}]"#);
    let answers = [
        ResponseTemplate::new(500).set_body_string(said.clone()),
        ResponseTemplate::new(401)
            .set_body_json(serde_json::json!({ "code": KEY, "message": said })),
        ResponseTemplate::new(302).insert_header("location", format!("/login?key={KEY}")),
        ResponseTemplate::new(200).set_body_string(said.clone()),
        ResponseTemplate::new(200).set_body_string(odd_json),
        ResponseTemplate::new(200)
            .set_body_string("[]")
            .insert_header("link", format!("<http://127.0.0.1:9/{KEY}>; rel=next")),
    ];
    for answer in answers {
        let server = wiremock::MockServer::start().await;
        Mock::given(any()).respond_with(answer).mount(&server).await;
        for line in ["pets list --all -v", "pets create Rex --category-id 7", "api /x -X POST -i"] {
            let petstore = Petstore::bare()
                .var("PETSTORE_BASE_URL", &server.uri())
                .var("PETSTORE_API_KEY", KEY);
            let ran = petstore.run(line).await;
            // What a raw request returns with success is data, and shown as it is.
            let shown = if ran.code == 0 { ran.stderr } else { ran.stdout + &ran.stderr };
            assert!(!shown.contains(KEY), "{line}: {shown}");
        }
    }
}
