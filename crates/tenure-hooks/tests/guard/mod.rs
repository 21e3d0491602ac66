//! Guards: permissions, limits, budgets, rehearsals, schemas and the audit log.

mod audit;
mod audit_file;
mod budget;
mod call_limit;
mod dry_run;
mod emulate;
mod escapes;
mod permissions;
mod result_schema;
mod support;
