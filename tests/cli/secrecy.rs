//! The key is in nothing that any command writes.

use petstore_mock::{MockServer, Plan};

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
