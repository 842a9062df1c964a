#![doc = include_str!("../README.md")]

mod changes;
mod printable;
mod real_time;

mod clock;
mod model;
mod openapi;
mod operation;

mod ban;
mod cors;
mod fault;
mod plan;
mod quota;
mod state;

mod exchange;

mod pattern;
mod report;

mod journal;

mod verify;

mod seed;
mod settings;

mod world;

mod handle;
mod http;

mod server;

#[cfg(feature = "cli")]
pub mod cli;

#[cfg(feature = "data")]
pub use crate::state::DataError;
pub use crate::{
    ban::BanPolicy,
    clock::Clock,
    cors::{Cors, ParseCorsError},
    exchange::{Admission, Exchange, KeyLabel},
    fault::{
        Delay, Effect, Fault, FaultBuilder, FaultGuard, FaultStatus, Faults, RateFault, RetryAfter,
    },
    handle::{Key, Keys, Orders, Pets, Scope},
    http::ErrorCode,
    model::{ParsePetStatusError, Pet, PetStatus},
    openapi::OpenApi,
    operation::{Operation, ParseOperationError},
    pattern::Pattern,
    plan::{ParsePlanError, Plan},
    quota::{RateHeaders, Window},
    report::{
        About, Evidence, EvidenceRequest, Finding, ParseRuleError, ParseSeverityError, Report,
        ReportedClient, Role, Rule, Severity,
    },
    seed::{Seed, SeedError, SeedPet},
    server::{Builder, Limits, MockServer, StartError},
    state::ChangeError,
    verify::{Expectation, Times},
    world::{KeyError, KeyUsage, QuotaUsage, Snapshot},
};
