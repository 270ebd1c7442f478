package mvcc

import (
	"fmt"

	"github.com/pingcap/goleveldb/leveldb/iterator"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
)

// Commit makes what is prewritten under the keys visible from the commit timestamp on. Committing again is no error.
func (s *Store) Commit(req *kvrpcpb.CommitRequest) *kvrpcpb.CommitResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.records(Range{})
	defer it.Release()

	c := changes{store: s}
	for _, key := range req.Keys {
		if err := s.commitKey(&c, it, key, req.StartVersion, req.CommitVersion); err != nil {
			return &kvrpcpb.CommitResponse{Error: err}
		}
	}
	c.apply()
	return &kvrpcpb.CommitResponse{CommitVersion: req.CommitVersion}
}

func (s *Store) commitKey(c *changes, it iterator.Iterator, key []byte, startTS, commitTS uint64) *kvrpcpb.KeyError {
	lock, own := s.ownLock(key, startTS)
	switch {
	case !own:
		if end, _, found := endOf(it, key, startTS); found && end.kind != rollback {
			return nil
		}
		return lockNotFound(key, startTS)
	case lock.pessimistic():
		return pessimisticLockNotFound(key, startTS)
	case commitTS < lock.MinCommitTs:
		return &kvrpcpb.KeyError{CommitTsExpired: &kvrpcpb.CommitTsExpired{
			StartTs: startTS, AttemptedCommitTs: commitTS, Key: key, MinCommitTs: lock.MinCommitTs,
		}}
	}
	c.commit(lock, commitTS)
	return nil
}

func (c *changes) commit(lock *Lock, ts uint64) {
	c.record(lock.Key, ts, record{kind: kindOf(lock.LockType), startTS: lock.LockVersion, value: lock.value})
	c.unlock(lock.Key)
}

// forbid writes that the transaction of startTS is rolled back, so that a late request of it cannot succeed.
func (c *changes) forbid(key []byte, startTS uint64) {
	c.record(key, startTS, record{kind: rollback, startTS: startTS})
}

func (c *changes) rollBack(lock *Lock) {
	c.forbid(lock.Key, lock.LockVersion)
	c.unlock(lock.Key)
}

// BatchRollback undoes what a transaction prewrote, and forbids what it has yet to prewrite.
func (s *Store) BatchRollback(req *kvrpcpb.BatchRollbackRequest) *kvrpcpb.BatchRollbackResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.records(Range{})
	defer it.Release()

	c := changes{store: s}
	for _, key := range req.Keys {
		if _, err := s.rollBackKey(&c, it, key, req.StartVersion); err != nil {
			return &kvrpcpb.BatchRollbackResponse{Error: err}
		}
	}
	c.apply()
	return &kvrpcpb.BatchRollbackResponse{}
}

// rollBackKey gives the commit timestamp with its error if it comes too late.
func (s *Store) rollBackKey(c *changes, it iterator.Iterator, key []byte, startTS uint64) (uint64, *kvrpcpb.KeyError) {
	if lock, own := s.ownLock(key, startTS); own {
		c.rollBack(lock)
		return 0, nil
	}
	end, ts, found := endOf(it, key, startTS)
	if !found {
		c.forbid(key, startTS)
	} else if end.kind != rollback {
		return ts, abort(fmt.Sprintf("Committed { start_ts: %d, commit_ts: %d, key: %x }", startTS, ts, key))
	}
	return 0, nil
}

// Cleanup rolls back one key if its lock has expired, or at once if the request has no current time.
func (s *Store) Cleanup(req *kvrpcpb.CleanupRequest) *kvrpcpb.CleanupResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.records(Range{})
	defer it.Release()

	if lock, own := s.ownLock(req.Key, req.StartVersion); own && req.CurrentTs > 0 && !lock.expired(req.CurrentTs) {
		return &kvrpcpb.CleanupResponse{Error: lock.keyError()}
	}
	c := changes{store: s}
	commitTS, err := s.rollBackKey(&c, it, req.Key, req.StartVersion)
	if commitTS > 0 {
		return &kvrpcpb.CleanupResponse{CommitVersion: commitTS}
	}
	c.apply()
	return &kvrpcpb.CleanupResponse{Error: err}
}

func lockNotFound(key []byte, startTS uint64) *kvrpcpb.KeyError {
	return &kvrpcpb.KeyError{
		Retryable:       fmt.Sprintf("TxnLockNotFound { start_ts: %d, key: %x }", startTS, key),
		TxnLockNotFound: &kvrpcpb.TxnLockNotFound{Key: key},
	}
}
