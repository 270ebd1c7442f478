//! The laws of [`KvBackend`], one public function a law.
//!
//! A law panics when the store breaks it. It works on keys of its own (`<tag>conformance:<law>:…`), which it deletes
//! before it begins, so a suite can be run again on a store that holds other data. Every backend runs [`run_all`];
//! one that keeps its data runs [`a_reopened_store_has_every_commit`] too.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "every function here is a test")]

mod area;
mod commits;
mod concurrency;
mod conflicts;
mod deletion;
mod isolation;
mod lifecycle;
mod model;
mod reads;
mod scans;

use std::sync::Arc;

use respgate_backend_api::KvBackend;

pub use commits::*;
pub use concurrency::*;
pub use conflicts::*;
pub use deletion::*;
pub use isolation::*;
pub use lifecycle::*;
pub use model::*;
pub use reads::*;
pub use scans::*;

/// Holds `store` to every law, and closes it at the end. Call it within a tokio runtime.
pub async fn run_all(store: Arc<dyn KvBackend>) {
    run_on_open_store(&store).await;
    a_closed_store_answers_unavailable(&*store).await;
}

async fn run_on_open_store(shared: &Arc<dyn KvBackend>) {
    let store = &**shared;
    capabilities_are_constant(store).await;
    an_open_store_is_healthy(store).await;
    statistics_tell_names_once(store).await;
    time_stands_still_in_a_snapshot_and_never_goes_back(store).await;

    a_missing_key_differs_from_an_empty_value(store).await;
    keys_and_values_are_any_bytes(store).await;
    every_tag_has_keys_of_its_own(store).await;
    multi_get_keeps_order_and_repetitions(store).await;
    large_values_are_whole(store).await;
    what_was_committed_last_is_read(store).await;

    a_scan_returns_pairs_in_the_order_asked_for(store).await;
    a_scan_keeps_to_its_bounds(store).await;
    a_scan_keeps_to_its_limit(store).await;
    a_scan_of_an_empty_range_is_empty(store).await;
    a_scan_skips_what_was_deleted(store).await;
    a_scan_returns_thousands_of_pairs(store).await;

    a_commit_is_seen_by_the_next_snapshot(store).await;
    a_commit_puts_and_deletes_together(store).await;
    a_write_needs_no_snapshot(store).await;
    an_empty_commit_succeeds(store).await;
    deleting_a_missing_key_succeeds(store).await;
    a_snapshot_that_is_dropped_writes_nothing(store).await;
    what_is_too_large_is_refused_whole(store).await;

    a_guard_on_a_changed_key_conflicts(store).await;
    a_guard_on_a_created_key_conflicts(store).await;
    a_guard_on_a_deleted_key_conflicts(store).await;
    a_guard_on_an_unchanged_key_passes(store).await;
    a_conflict_writes_nothing(store).await;
    a_commit_without_writes_checks_its_guards(store).await;

    a_snapshot_never_changes(store).await;
    a_snapshot_does_not_see_its_own_commit(store).await;
    each_snapshot_sees_its_own_moment(store).await;

    delete_range_deletes_the_range_and_nothing_else(store).await;
    delete_range_takes_ranges_of_any_size(store).await;
    keys_may_return_after_delete_range(store).await;

    a_store_is_an_ordered_map(store, 1).await;
    a_store_is_an_ordered_map(store, 2).await;

    many_tasks_do_not_disturb_each_other(shared).await;
    guarded_increments_lose_none(shared).await;
    locking_snapshots_lose_no_increments(shared).await;
    readers_never_see_half_a_commit(shared).await;
}
