//! RocksDB's options. Each that differs from RocksDB's default says why.

use std::sync::Arc;

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DBCompressionType, DataBlockIndexType, Env, Options, ReadOptions,
    ReadTier, WriteBufferManager, WriteOptions,
};

use crate::family::Family;
use crate::options::{Compression, RocksdbOptions};
use crate::reaper::{Filters, Reaping};

/// Bits of Bloom filter per key: one lookup in a hundred reads a block in vain.
const BLOOM_BITS_PER_KEY: f64 = 10.0;

/// The write buffers of one family.
struct WriteBuffers {
    /// The part of the budget that one takes.
    divisor: usize,
    /// How many are flushed together, so that the files of level 0 do not become small with the buffers.
    merged: i32,
    /// How many there are before writers wait: one family alone stays within the budget.
    most: i32,
}

impl WriteBuffers {
    /// The processor's cache holds the skip list of a small buffer, which takes writes a third faster than one of a
    /// quarter of the budget. Metadata, most of it read from the gateway's own cache, gains most by that; scans, which
    /// look into every buffer, lose by many, and elements are scanned more.
    fn of(family: Family) -> Self {
        match family {
            Family::Metadata => Self { divisor: 32, merged: 8, most: 24 },
            _ => Self { divisor: 16, merged: 4, most: 12 },
        }
    }
}

/// The most deleted keys that a scan in memory walks over between two that are there: some ten microseconds of work.
pub(crate) const INLINE_SKIPS_MAX: u64 = 256;

/// The options of the whole database.
pub(crate) fn database(options: &RocksdbOptions) -> Options {
    let mut database = Options::default();
    database.create_if_missing(true);
    database.create_missing_column_families(true);

    // One budget for the write buffers of all families. It starts flushes and never makes writers wait: its stall
    // does not end when the disk is full, whereas the families' own limits (see below) then fail with an error.
    let allow_stall = false;
    database.set_write_buffer_manager(&WriteBufferManager::new_write_buffer_manager(
        options.write_buffer_bytes,
        allow_stall,
    ));
    // A log file lives until every family has flushed what it holds of it. The bound makes families that are rarely
    // written flush too, and with it the time to recover after a crash.
    database.set_max_total_wal_size(4 * options.write_buffer_bytes as u64);

    // Compactions take what time of the processor clients leave; where they fall behind, RocksDB makes writers wait.
    // Flushes do not stand back: without them commits would soon wait.
    if let Ok(mut environment) = Env::new() {
        environment.lower_thread_pool_cpu_priority();
        database.set_env(&environment);
    }
    database.set_max_background_jobs(to_c_int(options.background_jobs).max(2));
    database.set_max_open_files(to_c_int(options.open_files_max));
    // Write back steadily instead of in one burst, for which commits would wait.
    database.set_bytes_per_sync(1 << 20);
    database.set_wal_bytes_per_sync(1 << 20);
    // An iterator that holds the last reference to old files must not delete them on the thread that drops it.
    database.set_avoid_unnecessary_blocking_io(true);
    // Opening does not read every file's properties.
    database.set_skip_stats_update_on_db_open(true);
    // RocksDB's own log, beside the data, is bounded.
    database.set_max_log_file_size(16 << 20);
    database.set_keep_log_file_num(4);
    database
}

/// The options of a database that is only read, while another process may be writing it.
pub(crate) fn read_only(options: &RocksdbOptions) -> Options {
    let mut database = database(options);
    database.create_if_missing(false);
    database.create_missing_column_families(false);
    // All files are opened at once, so that they can be read although the other process deletes them.
    database.set_max_open_files(-1);
    database
}

/// The families of the database with their options. All share `cache`, and those that can hold dead records `reaping`.
pub(crate) fn families(
    options: &RocksdbOptions,
    cache: &Cache,
    reaping: Option<&Arc<Reaping>>,
) -> Vec<ColumnFamilyDescriptor> {
    let family = |family: Family| {
        let mut tuned = family_options(family, options, cache);
        if let Some(reaping) = reaping.filter(|_| family != Family::System) {
            tuned.set_compaction_filter_factory(Filters(Arc::clone(reaping)));
        }
        ColumnFamilyDescriptor::new(family.name(), tuned)
    };
    Family::ALL.map(family).into()
}

fn family_options(family: Family, options: &RocksdbOptions, cache: &Cache) -> Options {
    let mut tuned = Options::default();
    let WriteBuffers { divisor, merged, most } = WriteBuffers::of(family);
    tuned.set_write_buffer_size(options.write_buffer_bytes / divisor);
    tuned.set_min_write_buffer_number_to_merge(merged);
    tuned.set_max_write_buffer_number(most);
    // The size of a level follows from the size of the data, so that most of it lies in the bottommost level and
    // dead versions take a tenth of the space, not half.
    tuned.set_level_compaction_dynamic_level_bytes(true);
    compress(&mut tuned, options.compression);
    // Queues and sorted sets delete at one end what they put at the other. A file in which half of some 1,024
    // neighbouring entries are deletions is compacted at once, so that scans do not walk them.
    tuned.add_compact_on_deletion_collector_factory(1_024, 512, 0.5);
    if looks_up_single_keys(family) {
        // Most lookups of a key that is not in a write buffer end here, without a search in its skip list.
        tuned.set_memtable_prefix_bloom_ratio(0.05);
        tuned.set_memtable_whole_key_filtering(true);
    }
    tuned.set_block_based_table_factory(&table_options(family, cache));
    tuned
}

fn table_options(family: Family, cache: &Cache) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    // Indexes and filters count against the cache's budget instead of growing with the data beside it; those of
    // level 0, which every lookup consults, stay.
    table.set_cache_index_and_filter_blocks(true);
    table.set_cache_index_and_filter_blocks_with_high_priority(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    if looks_up_single_keys(family) {
        let block_based = false;
        table.set_bloom_filter(BLOOM_BITS_PER_KEY, block_based);
        table.set_optimize_filters_for_memory(true);
        // A hash table in each block instead of a binary search.
        table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    }
    if family != Family::Metadata {
        // Runs of neighbours are read together: larger blocks compress better and make smaller indexes.
        table.set_block_size(16 << 10);
    }
    table
}

/// True for families whose records are also read one at a time; the others are scanned, which filters do not help.
fn looks_up_single_keys(family: Family) -> bool {
    matches!(family, Family::Metadata | Family::Elements)
}

fn compress(tuned: &mut Options, compression: Compression) {
    match compression {
        Compression::None => tuned.set_compression_type(DBCompressionType::None),
        Compression::Lz4 => tuned.set_compression_type(DBCompressionType::Lz4),
        Compression::Lz4Zstd => {
            tuned.set_compression_type(DBCompressionType::Lz4);
            tuned.set_bottommost_compression_type(DBCompressionType::Zstd);
            // Level 1: close to the default in size at less than half of the time, which compactions have to spare
            // from the requests.
            let (default_window_bits, level, default_strategy, no_dictionary) = (-14, 1, 0, 0);
            tuned.set_bottommost_compression_options(default_window_bits, level, default_strategy, no_dictionary, true);
        }
    }
}

/// Where a read may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Write buffers and block cache. The read ends with `Incomplete` where they do not tell the answer, or not soon.
    Memory,
    /// Files too: the read may wait for a disk.
    Disk,
}

/// The options of a read with this reach.
pub(crate) fn read(reach: Reach) -> ReadOptions {
    let mut options = ReadOptions::default();
    if reach == Reach::Memory {
        options.set_read_tier(ReadTier::BlockCache);
    }
    options
}

/// The options of a scan with this reach, which sees the snapshot and the bounds that are added to them.
///
/// RocksDB reads ahead by itself once a scan has read two blocks in a row, and not beyond the upper bound: short
/// scans pay nothing for it.
pub(crate) fn scan(reach: Reach) -> ReadOptions {
    let mut options = read(reach);
    if reach == Reach::Memory {
        options.set_max_skippable_internal_keys(INLINE_SKIPS_MAX);
    }
    options
}

/// The options of a commit that returns once the disk has it.
pub(crate) fn durable_write() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(true);
    options
}

/// The options of a commit that fails with `Incomplete` where RocksDB would make it wait for a flush or compaction.
pub(crate) fn impatient_write() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_no_slowdown(true);
    options
}

fn to_c_int(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
