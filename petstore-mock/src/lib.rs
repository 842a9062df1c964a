//! [compliance]: guide::compliance
//! [connections]: guide::connections
//! [data]: guide::data
//! [specification]: guide::specification
#![doc = include_str!("../README.md")]

mod lock;
mod text;

mod changes;
mod clock;
mod model;
mod openapi;
mod operation;
mod plan;

mod cors;
mod exchange;
mod fault;
mod routes;

mod report;

mod journal;

mod state;

mod handle;
mod http;

mod server;

#[cfg(feature = "cli")]
pub mod cli;
pub mod guide;
#[cfg(test)]
mod properties;

pub use crate::{
    clock::Clock,
    exchange::{Admission, Exchange, KeyLabel},
    fault::{
        Delay, Effect, Fault, FaultBuilder, FaultGuard, FaultStatus, Faults, RateFault, RetryAfter,
    },
    handle::{Key, Keys, Orders, Pets},
    http::ErrorCode,
    journal::Times,
    model::{Pet, PetStatus, SeedPet},
    openapi::OpenApi,
    operation::{Operation, Target},
    plan::{ParsePlanError, Plan},
    report::{Finding, JudgedRequest, Report, Role, Rule, Severity},
    routes::{RouteError, RouteResponse},
    server::{Builder, MockServer, StartError},
    state::{
        BanPolicy, ChangeError, DataError, KeyError, KeyUsage, QuotaUsage, RateHeaders, Seed,
        SeedError, Snapshot, Window,
    },
    text::ParseNameError,
};
