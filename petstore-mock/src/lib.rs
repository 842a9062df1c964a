//! [compliance]: guide::compliance
//! [connections]: guide::connections
//! [data]: guide::data
//! [specification]: guide::specification
#![doc = include_str!("../README.md")]

mod changes;
mod clock;
mod model;
mod openapi;
mod operation;
mod plan;
mod text;

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
    cors::{Cors, ParseCorsError},
    exchange::{Admission, Exchange, KeyLabel},
    fault::{
        Delay, Effect, Fault, FaultBuilder, FaultGuard, FaultStatus, Faults, HeaderField,
        RateFault, RetryAfter, StatusEffect,
    },
    handle::{Key, Keys, Orders, Pets},
    http::ErrorCode,
    journal::Times,
    model::{ParsePetStatusError, Pet, PetStatus, SeedPet},
    openapi::OpenApi,
    operation::{Operation, ParseOperationError, Target},
    plan::{ParsePlanError, Plan},
    report::{
        About, Finding, JudgedRequest, ParseRuleError, ParseSeverityError, Report, Role, Rule,
        Severity,
    },
    routes::{RouteError, RouteResponse},
    server::{Builder, MockServer, StartError},
    state::{
        BanPolicy, ChangeError, DataError, KeyError, KeyUsage, ParseRateHeadersError,
        ParseWindowError, QuotaUsage, RateHeaders, Seed, SeedError, Snapshot, Window,
    },
};
