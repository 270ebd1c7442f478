package mvcc

import (
	"github.com/pingcap/goleveldb/leveldb"
	"github.com/pingcap/goleveldb/leveldb/iterator"
)

// gcBatch is after how many deletions they are written.
const gcBatch = 1000

// GC removes the records that no reader at the safe point or later can see. It runs beside other requests, but not beside
// itself, and has nothing to do at a safe point that it has been at.
func (s *Store) GC(safePoint uint64) error {
	s.collecting.Lock()
	defer s.collecting.Unlock()
	if safePoint <= s.collected.Load() {
		return nil
	}
	it := s.records(Range{})
	defer it.Release()
	batch := &leveldb.Batch{}
	for ok := it.First(); ok; {
		key, _, err := splitRecordKey(it.Key())
		if err != nil {
			return err
		}
		for _, ts := range invisible(it, key, safePoint) {
			batch.Delete(recordKey(key, ts))
		}
		if batch.Len() >= gcBatch {
			if err := s.db.Write(batch, nil); err != nil {
				return err
			}
			batch.Reset()
		}
		ok = it.Seek(append(recordKey(key, 0), 0))
	}
	if err := s.db.Write(batch, nil); err != nil {
		return err
	}
	s.collected.Store(safePoint)
	return nil
}

// Collected gives the last safe point that GC has been done for since the start.
func (s *Store) Collected() uint64 {
	return s.collected.Load()
}

func invisible(it iterator.Iterator, key []byte, safePoint uint64) []uint64 {
	var dead []uint64
	kept := false
	versions(it, key, safePoint, func(ts uint64, r record) bool {
		if !kept && r.kind == put {
			kept = true
		} else {
			kept = kept || r.kind == del
			dead = append(dead, ts)
		}
		return true
	})
	return dead
}

// DestroyRange removes everything in a range, locks too, whoever might read it.
func (s *Store) DestroyRange(r Range) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := changes{store: s}
	for _, lock := range s.locksIn(r, func(*Lock) bool { return true }) {
		c.unlock(lock.Key)
	}
	it := s.records(r)
	defer it.Release()
	for it.Next() {
		c.batch.Delete(it.Key())
	}
	c.apply()
	return it.Error()
}

// Count gives how many records and locks there are.
func (s *Store) Count() (records, locks int) {
	s.mu.RLock()
	locks = s.locks.Len()
	it := s.records(Range{})
	s.mu.RUnlock()
	defer it.Release()
	for it.Next() {
		records++
	}
	return records, locks
}
