//! `petstore pets …` and `petstore store …`, against the embedded mock.

use std::time::Duration;

use insta::assert_snapshot;
use petstore_mock::{Clock, MockServer, Operation, Seed, SeedPet};

use super::harness::{Petstore, answering, noon};
use super::shop::{Paging, Shop};

#[tokio::test]
async fn lists_all_pages_without_a_note() {
    // There are 25 pets, so the last page of ten is not full, and the last page of five is.
    for size in [10, 5] {
        let ran = Petstore::bare()
            .run(&format!("--mock pets list --all --limit {size}"))
            .await;
        assert_eq!(ran.stdout.lines().count(), 25);
        ran.said("", 0);
    }
}

#[tokio::test]
async fn fields_that_the_service_sends_besides_are_shown() {
    let pet = |id| serde_json::json!({ "id": id, "name": "Rex", "categoryId": 7, "owner": { "name": "Ada" } });
    let page = wiremock::ResponseTemplate::new(200).set_body_json([pet(1), pet(2)]);
    let service = answering(page).await;
    let run = async |line: &str| {
        Petstore::with(&service.uri(), "k")
            .terminal()
            .run(line)
            .await
            .stdout
    };
    let plain = "--color never";
    assert_snapshot!(run(&format!("pets list {plain}")).await, @r#"
    ID  NAME  CATEGORY ID  STATUS  OWNER
    1   Rex   7            –       {"name":"Ada"}
    2   Rex   7            –       {"name":"Ada"}
    "#);
    assert_snapshot!(run(&format!("pets list -o csv {plain}")).await, @r#"
    id,name,categoryId,status,owner
    1,Rex,7,,"{""name"":""Ada""}"
    2,Rex,7,,"{""name"":""Ada""}"
    "#);
    assert_snapshot!(run(&format!("pets export {plain}")).await, @r#"
    {"id":1,"name":"Rex","categoryId":7,"status":null,"owner":{"name":"Ada"}}
    {"id":2,"name":"Rex","categoryId":7,"status":null,"owner":{"name":"Ada"}}
    "#);
    assert_snapshot!(run(&format!("pets list --fields id,owner.name {plain}")).await, @"
    ID  OWNER.NAME
    1   Ada
    2   Ada
    ");
}

#[tokio::test]
async fn max_limits_a_list_over_several_pages() {
    for (line, count) in [("--max 3", 3), ("--max 30", 25), ("--max 12 --limit 5", 12)] {
        let ran = Petstore::bare()
            .run(&format!("--mock pets list --fields id {line}"))
            .await;
        assert_eq!((ran.stdout.lines().count(), ran.code), (count, 0), "{line}");
        let more = ran.stderr.contains("there are more pets");
        assert_eq!(more, count < 25, "{line}: {}", ran.stderr);
    }
}

#[tokio::test]
async fn numbers_are_shown_with_all_their_digits() {
    let pet = r#"{"id":1,"name":"Rex","categoryId":7,"status":null,"price":1.10,"chip":90071992547409931234}"#;
    let response = wiremock::ResponseTemplate::new(200).set_body_raw(pet, "application/json");
    let service = answering(response).await;
    let run = async |line: &str| Petstore::with(&service.uri(), "k").run(line).await.stdout;
    assert_eq!(run("pets get 1 -o ndjson").await, format!("{pet}\n"));
    assert_eq!(run("api /pets/1 --jq .").await, format!("{pet}\n"));
    assert_eq!(
        run("pets get 1 --fields price,chip").await,
        "1.10\t90071992547409931234\n"
    );
}

#[tokio::test]
async fn a_created_pet_that_cannot_be_shown_as_asked_is_named() {
    let server = petstore_mock::MockServer::start().await;
    let words = "pets create Rex --category-id 7 --jq .name.x";
    let ran = Petstore::at(&server, "pro-key").run(words).await;
    assert!(
        ran.stderr.ends_with("; pet 26 was created\n"),
        "{}",
        ran.stderr
    );
    assert_eq!((ran.code, server.pets().len()), (8, 26));
}

#[tokio::test]
async fn a_success_without_a_pet_may_have_created_one() {
    let created = wiremock::ResponseTemplate::new(201);
    let service = answering(created).await;
    let ran = Petstore::with(&service.uri(), "k")
        .run("pets create Rex --category-id 7")
        .await;
    let said = "error: the response 201 could not be read: its body is empty where JSON was expected\n\
                hint: the pet may have been created: look in `petstore pets list --all` before you try again\n";
    ran.said(said, 5);
}

#[tokio::test]
async fn pets_are_found_by_their_ids_on_any_page() {
    let server = petstore_mock::MockServer::builder()
        .key("k", petstore_mock::Plan::Business)
        .seed(pets(250))
        .start()
        .await
        .unwrap();
    let run = async |line: &str| Petstore::at(&server, "k").run(line).await;
    let ran = run("pets list --id 7 --fields id").await;
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str(), ran.code),
        ("7\n", "", 0)
    );
    let ran = run("pets list --id 240,7 --id 130 --fields id").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    7
    130
    240
    --- stderr
    note: searching all pages of pets for pets 130, 240
    --- exit 0
    ");
    let said = "note: searching all pages of pets for pet 999\n\
                error: no pet 999; searched all 250 pets\n";
    run("pets list --id 999 --fields id").await.said(said, 9);
    let ran = run("pets list --id 7,9 --status sold --fields id").await;
    let error = "error: pet 7 has no status; pet 9 has no status\n";
    assert_eq!((&*ran.stdout, &*ran.stderr, ran.code), ("", error, 9));
}

#[tokio::test]
async fn a_pet_beyond_a_list_without_pages_may_exist() {
    let server = petstore_mock::MockServer::builder()
        .key("k", petstore_mock::Plan::Business)
        .seed(pets(250))
        .paging(false)
        .start()
        .await
        .unwrap();
    let ran = Petstore::at(&server, "k").run("pets list --id 999").await;
    let said = "error: no pet 999 among the 100 pets that the service lists\n\
                hint: there may be more; the service does not say how to list them\n";
    ran.said(said, 8);
}

/// A seed of pets with the ids from 1.
fn pets(count: i64) -> petstore_mock::Seed {
    (1..=count).fold(petstore_mock::Seed::none(), |seed, id| {
        seed.pet(petstore_mock::SeedPet::new(format!("pet {id}"), id))
    })
}

#[tokio::test]
async fn an_export_into_a_file_says_what_it_wrote() {
    let server = MockServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let wrote = "note: wrote 25 pets\n";
    for (name, options, said, code) in [
        ("pets.csv", "", wrote, 0),
        ("pets.json", "", wrote, 0),
        ("pets.txt", "--jq .[].name -o tsv", wrote, 0),
        (
            "pets.ndjson.gz",
            "",
            "error: no format has the extension `.gz`\n\
             hint: `petstore pets export | gzip > FILE` compresses\n",
            2,
        ),
        (
            "pets.xlsx",
            "",
            "error: no format has the extension `.xlsx`\nhint: `-o FORMAT` sets the format\n",
            2,
        ),
        (
            "",
            "",
            "error: HOME/ is not a file\nhint: name a file in it\n",
            2,
        ),
        (
            "nodir/x",
            "",
            "error: cannot write HOME/nodir/x: there is no folder HOME/nodir\n",
            2,
        ),
    ] {
        let petstore = Petstore::at(&server, "pro-key").home(folder.path());
        let line = format!("pets export {} {options}", path(name));
        petstore.run(&line).await.said(said, code);
    }
    let pets = std::fs::read_to_string(path("pets.csv")).unwrap();
    assert_eq!(pets.lines().count(), 26);
    assert!(
        pets.starts_with("id,name,categoryId,status\n1,Bramble,1,"),
        "{pets}"
    );
    let left = std::fs::read_dir(folder.path()).unwrap();
    let left = left.filter(|file| file.as_ref().unwrap().path().is_file());
    assert_eq!(left.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_shows_how_far_an_export_is() {
    let many = (0..300).fold(Seed::new(), |seed, row| seed.pet(SeedPet::new("x", row)));
    let server = MockServer::builder()
        .seed(many)
        .clock(Clock::runtime(noon()))
        .start()
        .await
        .unwrap();
    let _slow = server
        .faults()
        .on(Operation::ListPets)
        .delay(Duration::from_secs(2));
    let petstore = Petstore::at(&server, "pro-key").stderr_terminal();
    let ran = petstore.run("pets export").await;
    ran.says(" exporting pets: 200 so far");
    assert!(ran.stderr.ends_with("\r\u{1b}[K"), "{}", ran.stderr);
    assert_eq!((ran.stdout.lines().count(), ran.code), (300, 0));
}

#[tokio::test]
async fn an_export_notices_pages_that_overlap() {
    let shop = Shop::start();
    let names: Vec<_> = (0..230).map(|pet| format!("pet {pet}")).collect();
    shop.add(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for (paging, said, code) in [
        (Paging::Linked, "", 0),
        (
            Paging::Overlapping,
            "error: pet 51 came twice: the pages overlap, and pets may be missing\n",
            8,
        ),
    ] {
        shop.state().paging = paging;
        let ran = Petstore::with(&shop.url(), "k").run("pets export").await;
        ran.said(said, code);
        assert_eq!(ran.stdout.lines().count(), 230);
    }
}
