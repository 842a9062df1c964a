//! `petstore pets …` and `petstore store …`, against the embedded mock.

use petstore_mock::{MockServer, Plan, Seed, SeedPet};

use super::harness::{Petstore, answering, stocked};

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
    let pets = r#"[{"id":1,"name":"Rex","categoryId":7,"owner":{"name":"Ada"}}]"#;
    let page = wiremock::ResponseTemplate::new(200).set_body_raw(pets, "application/json");
    let service = answering(page).await;
    for (line, shown) in [
        ("pets list -o table", "OWNER\n"),
        ("pets list -o table", "{\"name\":\"Ada\"}\n"),
        ("pets list -o csv", ",owner\n"),
        ("pets list -o csv", ",\"{\"\"name\"\":\"\"Ada\"\"}\"\n"),
        ("pets export", ",\"owner\":{\"name\":\"Ada\"}}\n"),
        ("pets list --fields id,owner", "1\t{\"name\":\"Ada\"}\n"),
    ] {
        let petstore = Petstore::with(&service.uri(), "k");
        petstore.run(line).await.shows(shown);
    }
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
    let numbers = r#""price":1.10,"chip":90071992547409931234}"#;
    let pet = format!(r#"{{"id":1,"name":"Rex","categoryId":7,{numbers}"#);
    let response = wiremock::ResponseTemplate::new(200).set_body_raw(pet, "application/json");
    let service = answering(response).await;
    let run = async |line: &str| Petstore::with(&service.uri(), "k").run(line).await;
    run("pets get 1 -o ndjson").await.shows(numbers);
    run("api /pets/1 --jq .").await.shows(numbers);
    let cells = run("pets get 1 --fields price,chip").await;
    cells.printed("1.10\t90071992547409931234\n");
}

#[tokio::test]
async fn a_success_without_a_pet_may_have_created_one() {
    let service = answering(wiremock::ResponseTemplate::new(201)).await;
    let create = "pets create Rex --category-id 7";
    let ran = Petstore::with(&service.uri(), "k").run(create).await;
    let said = "error: the response 201 could not be read: its body is empty where JSON was expected\n\
                hint: the pet may have been created: look in `petstore pets list --all` before you try again\n";
    ran.said(said, 5);
}

#[tokio::test]
async fn pets_are_found_by_their_ids_on_any_page() {
    let server = stocked(pets(250)).await;
    let run = async |line: &str| Petstore::at(&server, "k").run(line).await;
    let ran = run("pets list --id 7 --fields id").await;
    ran.printed("7\n");
    ran.said("", 0);
    let ran = run("pets list --id 240,7 --id 130 --fields id").await;
    ran.printed("7\n130\n240\n");
    ran.says("note: searching all pages of pets for pets 130, 240\n");
    let said = "note: searching all pages of pets for pet 999\n\
                error: no pet 999; searched all pages: 250 pets\n";
    run("pets list --id 999 --fields id").await.said(said, 9);
    let ran = run("pets list --id 7,9 --status sold --fields id").await;
    ran.said("error: pet 7 has no status; pet 9 has no status\n", 9);
    assert_eq!(ran.stdout, "");
}

#[tokio::test]
async fn a_pet_beyond_a_list_without_pages_may_exist() {
    let builder = MockServer::builder().key("k", Plan::Business);
    let builder = builder.seed(pets(250)).paging(false);
    let server = builder.start().await.unwrap();
    let ran = Petstore::at(&server, "k").run("pets list --id 999").await;
    let said = "error: no pet 999 among the 100 pets that the service lists\n\
                hint: there may be more; the service does not say how to list them\n";
    ran.said(said, 8);
}

/// A seed of pets with the ids from 1.
fn pets(count: i64) -> Seed {
    (1..=count).fold(Seed::none(), |seed, id| {
        seed.pet(SeedPet::new(format!("pet {id}"), id))
    })
}
