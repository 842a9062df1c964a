#![doc = include_str!("../README.md")]

mod alarm;
mod changes;

mod clock;
mod limits;
mod model;
mod openapi;
mod operation;
mod printable;
mod target;

mod ban;
mod cors;
mod cursor;
mod fault;
mod plan;
mod quota;
mod store;
mod tls;

mod exchange;

mod pattern;
mod report;

mod journal;

mod verify;

mod data;
mod seed;
mod settings;

mod world;

mod error;
mod handle;
mod host;
mod stamp;

mod extract;

mod routes;

mod admin;
mod inject;

mod router;

mod accept;

mod server;

mod builder;

#[cfg(feature = "cli")]
pub mod cli;

#[cfg(feature = "data")]
pub use crate::data::DataError;
pub use crate::{
    ban::BanPolicy,
    builder::{Builder, StartError},
    clock::Clock,
    cors::{Cors, ParseCorsError},
    error::ErrorCode,
    exchange::{Admission, Exchange, KeyLabel},
    fault::{
        Delay, Effect, Fault, FaultBuilder, FaultGuard, FaultStatus, Faults, RateFault, RetryAfter,
    },
    handle::{Key, Keys, Orders, Pets, Scope},
    limits::Limits,
    model::{ParsePetStatusError, Pet, PetStatus},
    openapi::OpenApi,
    operation::{Operation, ParseOperationError},
    pattern::Pattern,
    plan::{ParsePlanError, Plan},
    quota::{RateHeaders, Window},
    report::{
        Evidence, EvidenceRequest, Finding, ParseRuleError, ParseSeverityError, Report,
        ReportedClient, Role, Rule, Severity,
    },
    seed::{Seed, SeedError, SeedPet},
    server::MockServer,
    store::ChangeError,
    verify::{Expectation, Times},
    world::{KeyError, KeyUsage, QuotaUsage, Snapshot},
};
