#![doc = include_str!("../README.md")]

mod printable;
mod real_time;

mod changes;
mod clock;
mod model;
mod openapi;
mod operation;
mod plan;

mod ban;
mod cors;
mod fault;
mod quota;

mod exchange;

mod pattern;
mod report;

mod journal;

mod state;
mod verify;

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
        About, Evidence, Finding, JudgedRequest, ParseRuleError, ParseSeverityError, Report,
        ReportedClient, Role, Rule, Severity,
    },
    server::{Builder, Limits, MockServer, StartError},
    state::{ChangeError, Seed, SeedError, SeedPet},
    state::{KeyError, KeyUsage, QuotaUsage, Snapshot},
    verify::{Expectation, Times},
};
