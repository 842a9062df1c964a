//! `petstore pets …` and `petstore store …`, against the embedded mock.

use insta::assert_snapshot;

use super::harness::Petstore;

#[tokio::test]
async fn lists_pets_as_a_table_on_a_terminal() {
    let ran = Petstore::bare().terminal().run("--mock pets list --limit 7").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    ␛[1mID  NAME           CATEGORY ID  STATUS␛[0m
    1   Bramble        1            available
    2   Miso           2            available
    3   Captain Plume  3            pending
    4   Biscuit        1            sold
    5   Zoë            2            available
    6   Thistle        4
    7   Mango          3            available
    --- stderr
    note: there are more pets; `--all` lists them all
    --- exit 0
    ");
}

#[tokio::test]
async fn lists_pets_separated_by_tabs_in_a_pipe() {
    let ran = Petstore::bare().run("--mock pets list --status sold").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    4	Biscuit	1	sold
    10	Luna	2	sold
    17	Marlin	6	sold
    22	Ziggy	5	sold
    --- exit 0
    ");
}

#[tokio::test]
async fn lists_pets_as_json() {
    let ran = Petstore::bare().run("--mock pets list --limit 1 --status pending -o json").await;
    assert_snapshot!(ran.transcript(), @r#"
    --- stdout
    [
      {
        "id": 3,
        "name": "Captain Plume",
        "categoryId": 3,
        "status": "pending"
      }
    ]
    --- stderr
    note: there are more pets; `--all` lists them all
    --- exit 0
    "#);
}

#[tokio::test]
async fn lists_all_pages_without_a_note() {
    let ran = Petstore::bare().run("--mock pets list --all --limit 10").await;
    assert_eq!(ran.stdout.lines().count(), 25);
    assert_eq!((ran.stderr.as_str(), ran.code), ("", 0));
}

#[tokio::test]
async fn adds_a_pet_from_its_arguments() {
    let ran = Petstore::bare()
        .terminal()
        .run("--mock pets create Rex --category-id -7 --status pending")
        .await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    ␛[1mID  NAME  CATEGORY ID  STATUS␛[0m
    26  Rex   -7           pending
    --- exit 0
    ");
}

#[tokio::test]
async fn adds_a_pet_from_standard_input() {
    let pet = r#"{"name":"Rex","categoryId":7,"nickname":"R"}"#;
    let ran = Petstore::bare().stdin(pet).run("--mock pets create --file - -o json").await;
    assert_snapshot!(ran.transcript(), @r#"
    --- stdout
    {
      "id": 26,
      "name": "Rex",
      "categoryId": 7
    }
    --- stderr
    note: `nickname` is no field of a new pet, and is left out
    --- exit 0
    "#);
}

#[tokio::test]
async fn says_where_the_input_is_no_pet() {
    let ran = Petstore::bare().stdin("{\"name\":\n 7}").run("--mock pets create --file -").await;
    assert_snapshot!(ran.transcript(), @r#"
    --- stderr
    error: standard input holds no pet: invalid type: integer `7`, expected a string at line 2 column 2
    hint: a pet looks like {"name":"Rex","categoryId":7,"status":"available"}
    --- exit 2
    "#);
}

#[tokio::test]
async fn an_array_is_no_pet() {
    let ran = Petstore::bare().stdin(r#"["Rex",7]"#).run("--mock pets create --file -").await;
    assert_snapshot!(ran.transcript(), @r#"
    --- stderr
    error: standard input holds no pet: invalid type: sequence, expected a pet, a JSON object at line 1 column 0
    hint: a pet looks like {"name":"Rex","categoryId":7,"status":"available"}
    --- exit 2
    "#);
}

#[tokio::test]
async fn gets_a_pet_and_warns_of_the_removal() {
    let ran = Petstore::bare().run("--mock pets get 3").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    3	Captain Plume	3	pending
    --- stderr
    warning: getPet is deprecated and will be removed on 2030-12-05 (1474 days left); use `petstore pets list --status …`
    --- exit 0
    ");
}

#[tokio::test]
async fn tells_that_there_is_no_such_pet() {
    let ran = Petstore::bare().run("--mock pets get 999").await;
    assert_snapshot!(ran.transcript(), @"
    --- stderr
    warning: getPet is deprecated and will be removed on 2030-12-05 (1474 days left); use `petstore pets list --status …`
    error: getPet failed: the service answered 404 Not Found (pet_not_found): no pet has the id 999; GET /v1/pets lists those there are
    --- exit 9
    ");
}

#[tokio::test]
async fn shows_no_orders_as_an_empty_document() {
    let ran = Petstore::bare().run("--mock store orders -o json").await;
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    []
    --- exit 0
    ");
}

#[tokio::test]
async fn tells_what_a_call_went_through_where_asked() {
    let ran = Petstore::bare().run("--mock pets create Rex --category-id 7 -v").await;
    let told = ran.stderr.split("; ").next().unwrap();
    assert!(told.starts_with("createPet: 201 Created in 0.") && told.ends_with(" s"), "{told}");
}
