//! Opening a directory, with one clear line when that cannot be done.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use respgate_backend_api::{Access, Error, Result};
use rocksdb::{Cache, DB, IteratorMode, Options};

use crate::error;
use crate::family::Family;
use crate::options::RocksdbOptions;
use crate::reaper::Reaping;
use crate::tuning;

/// The key of the format record: `u32` big-endian, the number of the format. No tag begins with a zero byte, so no
/// record of Respgate meets it.
const FORMAT_KEY: &[u8] = b"\0format";

/// The format of the directory as a whole: its families and what is routed to them. Raised when an older release
/// would misread a directory.
const FORMAT: u32 = 1;

/// The file of RocksDB that names the list of all others.
const CURRENT: &str = "CURRENT";

/// How often opening a database that another process is writing is tried.
const READ_ATTEMPTS: usize = 50;

/// Opens the database of `options`, creating it if it is not there and may be.
pub(crate) fn database(options: &RocksdbOptions, cache: &Cache, reaping: Option<&Arc<Reaping>>) -> Result<DB> {
    let path = &*options.path;
    if options.access != Access::Create && !path.join(CURRENT).exists() {
        return Err(cannot_open(path, "there is no database in it"));
    }
    if options.access == Access::Read {
        return read_only(options, cache);
    }
    prepare_directory(path)?;
    refuse_unknown_families(path)?;
    let families = tuning::families(options, cache, reaping);
    let db = DB::open_cf_descriptors(&tuning::database(options), path, families).map_err(|e| explain(path, e))?;
    if !has_format(path, &db)? {
        db.put_opt(FORMAT_KEY, FORMAT.to_be_bytes(), &tuning::durable_write()).map_err(|e| explain(path, e))?;
    }
    Ok(db)
}

/// Opens the database as it is now.
///
/// RocksDB reads its list of files and then its logs, while the process that writes them may move records from the logs
/// to new files and delete the logs: what the list did not name yet would be missing. So the logs must all stay while
/// the database is opened; they are deleted in the order in which they were begun.
fn read_only(options: &RocksdbOptions, cache: &Cache) -> Result<DB> {
    let path = &*options.path;
    refuse_unknown_families(path)?;
    let mut attempts = 1;
    loop {
        let logs_before = logs(path)?;
        let families = tuning::families(options, cache, None);
        let opened = DB::open_cf_descriptors_read_only(&tuning::read_only(options), path, families, false);
        let is_complete = logs_before.is_subset(&logs(path)?);
        match opened {
            Ok(db) if is_complete => return has_format(path, &db).map(|_| db),
            // A file that the list names may have been deleted as well.
            _ if attempts < READ_ATTEMPTS => attempts += 1,
            Err(error) => return Err(explain(path, error)),
            Ok(_) => return Err(cannot_open(path, "the process that is using it writes too much at present")),
        }
    }
}

/// The names of the logs.
fn logs(path: &Path) -> Result<BTreeSet<OsString>> {
    let entries = fs::read_dir(path).map_err(|error| cannot_open(path, error))?;
    let names = entries.flatten().map(|entry| entry.file_name());
    Ok(names.filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "log")).collect())
}

/// Makes sure that `path` is a directory into which files can be written.
fn prepare_directory(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => return Err(cannot_open(path, "it is not a directory")),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => create(path)?,
        Err(error) => return Err(cannot_open(path, error)),
    }
    probe(&path.join("respgate.probe")).map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => cannot_open(path, "the disk is full"),
        _ => cannot_open(path, format_args!("no files can be written to it ({error})")),
    })
}

/// Creates the last part of `path` only: a missing parent is more likely a typing error or a disk that is not mounted.
fn create(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return Err(cannot_open(path, format_args!("{} is not an existing directory", parent.display())));
    }
    fs::create_dir(path).map_err(|error| cannot_open(path, format_args!("it cannot be created ({error})")))
}

fn probe(file: &Path) -> io::Result<()> {
    let written = fs::File::create(file).and_then(|mut file| file.write_all(&[0; 4_096]));
    let removed = fs::remove_file(file);
    written.and(removed)
}

/// RocksDB refuses families that it is not told of, but its message does not say what that means.
fn refuse_unknown_families(path: &Path) -> Result<()> {
    if !path.join(CURRENT).exists() {
        return Ok(());
    }
    let stored = DB::list_cf(&Options::default(), path).map_err(|e| explain(path, e))?;
    match stored.iter().find(|name| Family::ALL.iter().all(|family| family.name() != **name)) {
        Some(unknown) => {
            let reason = format_args!("it holds the column family {unknown}, which this release does not know");
            Err(cannot_open(path, reason))
        }
        None => Ok(()),
    }
}

/// Compares the format record with what this release writes. False if the database is new and has none.
fn has_format(path: &Path, db: &DB) -> Result<bool> {
    let stored = db.get_pinned(FORMAT_KEY).map_err(|e| explain(path, e))?;
    let Some(stored) = stored else {
        if !is_empty(db) {
            return Err(cannot_open(path, "it holds a database that is not Respgate's"));
        }
        return Ok(false);
    };
    let Ok(bytes) = <[u8; 4]>::try_from(&*stored) else {
        return Err(Error::Corrupt(format!("{}: the format record has {} bytes", path.display(), stored.len())));
    };
    match u32::from_be_bytes(bytes) {
        FORMAT => Ok(true),
        newer => {
            let reason = format_args!("it was written in format {newer}, and this release knows format {FORMAT}");
            Err(cannot_open(path, reason))
        }
    }
}

fn is_empty(db: &DB) -> bool {
    let handles = Family::ALL.iter().filter_map(|family| db.cf_handle(family.name()));
    handles.into_iter().all(|handle| db.iterator_cf(handle, IteratorMode::Start).next().is_none())
}

/// Why RocksDB did not open `path`.
fn explain(path: &Path, error: rocksdb::Error) -> Error {
    let corrupt = error.kind() == rocksdb::ErrorKind::Corruption;
    let message = error::one_line(error);
    if message.contains("While lock file") || message.contains("lock hold by current process") {
        return cannot_open(path, "another process is using it");
    }
    if message.contains("No space left on device") {
        return cannot_open(path, "the disk is full");
    }
    if corrupt {
        return Error::Corrupt(format!("{}: {message}", path.display()));
    }
    cannot_open(path, message)
}

fn cannot_open(path: &Path, reason: impl fmt::Display) -> Error {
    Error::CannotOpen(format!("cannot open the data directory {}: {reason}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(path: &Path) -> String {
        let options = RocksdbOptions::new(path);
        match database(&options, &Cache::new_lru_cache(1 << 20), None) {
            Ok(_) => panic!("{} could be opened", path.display()),
            Err(Error::CannotOpen(reason)) => {
                assert!(reason.contains(&*path.to_string_lossy()) && !reason.contains('\n'), "{reason}");
                reason
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    fn open(path: &Path) -> DB {
        database(&RocksdbOptions::new(path), &Cache::new_lru_cache(1 << 20), None).unwrap()
    }

    #[test]
    fn a_missing_directory_is_created_but_not_its_parent() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(&dir.path().join("data")));
        assert!(reason(&dir.path().join("no/data")).ends_with("no is not an existing directory"));
        assert!(!dir.path().join("no").exists());
    }

    #[test]
    fn a_file_is_not_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(reason(&file).ends_with("it is not a directory"));
        assert!(reason(&file.join("data")).contains("Not a directory"));
    }

    #[test]
    fn a_directory_that_takes_no_files_is_named() {
        // Not even root creates files or directories here.
        assert!(reason(Path::new("/proc/self")).contains("no files can be written to it"));
        assert!(reason(Path::new("/proc/data")).contains("it cannot be created"));
    }

    #[test]
    fn a_directory_in_use_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let _open = open(dir.path());
        assert!(reason(dir.path()).ends_with("another process is using it"));
    }

    #[test]
    fn a_newer_format_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path());
        assert_eq!(db.get(FORMAT_KEY).unwrap().unwrap(), [0, 0, 0, 1]);
        db.put(FORMAT_KEY, 2_u32.to_be_bytes()).unwrap();
        drop(db);
        for _ in 0..2 {
            assert!(reason(dir.path()).ends_with("it was written in format 2, and this release knows format 1"));
        }
    }

    #[test]
    fn a_damaged_format_record_is_corruption() {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path());
        db.put(FORMAT_KEY, "1").unwrap();
        drop(db);
        let opened = database(&RocksdbOptions::new(dir.path()), &Cache::new_lru_cache(1 << 20), None);
        assert!(matches!(opened, Err(Error::Corrupt(_))));
    }

    #[test]
    fn an_unknown_family_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = open(dir.path());
        db.create_cf("streams", &Options::default()).unwrap();
        drop(db);
        assert!(reason(dir.path()).ends_with("it holds the column family streams, which this release does not know"));
    }

    #[test]
    fn a_database_of_others_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let db = DB::open_default(dir.path()).unwrap();
        db.put("k", "v").unwrap();
        drop(db);
        assert!(reason(dir.path()).ends_with("it holds a database that is not Respgate's"));
    }

    #[test]
    fn a_damaged_manifest_is_corruption() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path()));
        fs::write(dir.path().join("CURRENT"), "nonsense").unwrap();
        let opened = database(&RocksdbOptions::new(dir.path()), &Cache::new_lru_cache(1 << 20), None);
        assert!(matches!(opened, Err(Error::Corrupt(_))), "{:?}", opened.err());
    }
}
