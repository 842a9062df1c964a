//! Simulations of real limiters in virtual time, beside a service that counts, refuses and bans.
//!
//! `world` runs the processes of a case, `service` is the service, and the other files are the stories: what users
//! must see, with numbers. Each story runs with a few seeds. With many, and with all of its variants:
//! `cargo test --release -p petstore-client --lib simulator -- --ignored --nocapture`

mod rng;
mod service;
mod table;
mod world;

mod faults;
mod sharing;
mod sole;

use self::table::Size;

/// Runs all stories in full, each in its own thread.
#[test]
#[ignore = "full size"]
fn all_stories_hold_in_full() {
    let stories: [fn(Size); 15] = [
        sole::full_speed,
        sole::first_requests,
        sole::odd_services,
        sharing::file,
        sharing::redis,
        sharing::unequal,
        sharing::import_beside_commands,
        faults::stopped,
        faults::without_store,
        faults::without_store_at_the_bounds,
        faults::strangers,
        faults::near_and_far,
        faults::bursts,
        faults::whims,
        faults::hanging,
    ];
    std::thread::scope(|threads| {
        for story in stories {
            threads.spawn(move || story(Size::Full));
        }
    });
}
