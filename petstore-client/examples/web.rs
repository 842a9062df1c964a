//! Uses the client in an axum service, and turns its errors into responses.
//!
//! `cargo run -p petstore-client --example web`
//!
//! In a program of your own: `cargo add axum reqwest serde_json`.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use petstore_client::{Client, Error, NewPet, Page, Pet, PetStatus};
use petstore_mock::{MockServer, Plan};

struct Failure(Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self(error) = self;
        if let Some(wait) = error.retry_after() {
            let seconds = HeaderValue::from(wait.as_secs() + 1);
            return (
                StatusCode::SERVICE_UNAVAILABLE,
                [(header::RETRY_AFTER, seconds)],
            )
                .into_response();
        }
        if error.is_not_found() {
            return StatusCode::NOT_FOUND.into_response();
        }
        (StatusCode::BAD_GATEWAY, error.to_string()).into_response()
    }
}

async fn sold(State(client): State<Client>) -> Result<Json<Page<Pet>>, Failure> {
    Ok(Json(client.pets().list().status(PetStatus::Sold).await?))
}

async fn add(
    State(client): State<Client>,
    Json(new): Json<NewPet>,
) -> Result<(StatusCode, Json<Pet>), Failure> {
    let pet = client.pets().create(&new).await?;
    Ok((StatusCode::CREATED, Json(pet)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = MockServer::builder()
        .key("key", Plan::Business)
        .start()
        .await?;
    let client = Client::new(server.url(), "key")?;
    let app = Router::new()
        .route("/pets", get(sold).post(add))
        .with_state(client);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/pets", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });

    // Sends two requests to the service.
    let http = reqwest::Client::new();
    let rex = NewPet::new("Rex", 7).with_status(PetStatus::Sold);
    let json = serde_json::to_vec(&rex)?;
    let added = http
        .post(&url)
        .header("content-type", "application/json")
        .body(json)
        .send()
        .await?;
    println!("{}: {}", added.status(), added.text().await?);
    let sold: Vec<Pet> = serde_json::from_str(&http.get(&url).send().await?.text().await?)?;
    println!("{} sold", sold.len());
    Ok(())
}
