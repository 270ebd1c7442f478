package mvcc

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pingcap/goleveldb/leveldb/iterator"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
)

// defaultWait is TiKV's `pessimistic-txn.wait-for-lock-timeout`.
const defaultWait = time.Second

// PessimisticLock locks keys before they are written, and waits for others' locks as long as the request allows.
func (s *Store) PessimisticLock(ctx context.Context, req *kvrpcpb.PessimisticLockRequest) (*kvrpcpb.PessimisticLockResponse, error) {
	wait := defaultWait
	if req.WaitTimeout > 0 {
		wait = min(wait, time.Duration(req.WaitTimeout)*time.Millisecond)
	}
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		resp, blocker, released := s.tryPessimisticLock(req)
		if blocker == nil {
			return resp, nil
		}
		locked := &kvrpcpb.PessimisticLockResponse{Errors: []*kvrpcpb.KeyError{blocker.keyError()}}
		if req.WaitTimeout < 0 {
			return locked, nil
		}
		done, ok := s.waiting.begin(req.StartVersion, blocker.LockVersion)
		if !ok {
			return &kvrpcpb.PessimisticLockResponse{Errors: []*kvrpcpb.KeyError{{Deadlock: &kvrpcpb.Deadlock{
				LockTs: blocker.LockVersion, LockKey: blocker.Key,
			}}}}, nil
		}
		select {
		case <-released:
			done()
		case <-timeout.C:
			done()
			return locked, nil
		case <-ctx.Done():
			done()
			return nil, ctx.Err()
		}
	}
}

// tryPessimisticLock locks all keys or none. If somebody else's lock is in the way, it gives that and what to wait for.
func (s *Store) tryPessimisticLock(req *kvrpcpb.PessimisticLockRequest) (*kvrpcpb.PessimisticLockResponse, *Lock, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.records(Range{})
	defer it.Release()

	resp := &kvrpcpb.PessimisticLockResponse{}
	c := changes{store: s}
	for _, m := range req.Mutations {
		old, locked := s.lockOf(m.Key)
		if locked && old.LockVersion != req.StartVersion {
			return nil, old, s.released
		}
		if err := checkPessimisticLock(it, m.Key, req); err != nil {
			return &kvrpcpb.PessimisticLockResponse{Errors: []*kvrpcpb.KeyError{err}}, nil, nil
		}
		value, exists := visible(it, m.Key, math.MaxUint64)
		if exists && m.Assertion == kvrpcpb.Assertion_NotExist {
			return &kvrpcpb.PessimisticLockResponse{Errors: []*kvrpcpb.KeyError{
				{AlreadyExist: &kvrpcpb.AlreadyExist{Key: m.Key}},
			}}, nil, nil
		}
		if req.ReturnValues {
			resp.Values = append(resp.Values, value)
		}
		if req.ReturnValues || req.CheckExistence {
			resp.NotFounds = append(resp.NotFounds, !exists)
		}
		if locked && (!old.pessimistic() || old.LockForUpdateTs >= req.ForUpdateTs) || req.LockOnlyIfExists && !exists {
			continue
		}
		c.lock(&Lock{LockInfo: kvrpcpb.LockInfo{
			PrimaryLock:     req.PrimaryLock,
			LockVersion:     req.StartVersion,
			Key:             m.Key,
			LockTtl:         req.LockTtl,
			LockType:        kvrpcpb.Op_PessimisticLock,
			LockForUpdateTs: req.ForUpdateTs,
			MinCommitTs:     req.MinCommitTs,
		}})
	}
	c.apply()
	return resp, nil, nil
}

func checkPessimisticLock(it iterator.Iterator, key []byte, req *kvrpcpb.PessimisticLockRequest) *kvrpcpb.KeyError {
	if end, _, found := endOf(it, key, req.StartVersion); found && end.kind == rollback {
		return abort(fmt.Sprintf("PessimisticLockRolledBack { start_ts: %d, key: %x }", req.StartVersion, key))
	}
	last, ts, found := newest(it, key)
	if !found || ts <= req.ForUpdateTs {
		return nil
	}
	return &kvrpcpb.KeyError{Conflict: &kvrpcpb.WriteConflict{
		StartTs:          req.StartVersion,
		ConflictTs:       last.startTS,
		ConflictCommitTs: ts,
		Key:              key,
		Primary:          req.PrimaryLock,
		Reason:           kvrpcpb.WriteConflict_PessimisticRetry,
	}}
}

// PessimisticRollback takes pessimistic locks away: those of the keys, else all of the transaction in the region.
func (s *Store) PessimisticRollback(req *kvrpcpb.PessimisticRollbackRequest, region Range) *kvrpcpb.PessimisticRollbackResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := func(lock *Lock) bool {
		return lock.LockVersion == req.StartVersion && lock.pessimistic() && lock.LockForUpdateTs <= req.ForUpdateTs
	}
	var locks []*Lock
	if len(req.Keys) == 0 {
		locks = s.locksIn(region, mine)
	}
	for _, key := range req.Keys {
		if lock, locked := s.lockOf(key); locked && mine(lock) {
			locks = append(locks, lock)
		}
	}
	c := changes{store: s}
	for _, lock := range locks {
		c.unlock(lock.Key)
	}
	c.apply()
	return &kvrpcpb.PessimisticRollbackResponse{}
}
