package mvcc

import (
	"bytes"
	"math"

	"github.com/pingcap/kvproto/pkg/kvrpcpb"
)

// physical gives a timestamp's milliseconds.
func physical(ts uint64) uint64 {
	return ts >> 18
}

func (l *Lock) expired(currentTS uint64) bool {
	return physical(l.LockVersion)+l.LockTtl < physical(currentTS)
}

// CheckTxnStatus tells from the primary key how a transaction ended, and ends it if its time is over.
func (s *Store) CheckTxnStatus(req *kvrpcpb.CheckTxnStatusRequest) *kvrpcpb.CheckTxnStatusResponse {
	s.mu.Lock()
	defer s.mu.Unlock()

	c := changes{store: s}
	defer c.apply()
	if lock, own := s.ownLock(req.PrimaryKey, req.LockTs); own {
		return checkLock(&c, lock, req)
	}
	it := s.records(Range{Start: req.PrimaryKey, End: after(req.PrimaryKey)})
	defer it.Release()
	end, ts, found := endOf(it, req.PrimaryKey, req.LockTs)
	switch {
	case found && end.kind == rollback:
		return &kvrpcpb.CheckTxnStatusResponse{}
	case found:
		return &kvrpcpb.CheckTxnStatusResponse{CommitVersion: ts}
	case !req.RollbackIfNotExist:
		return &kvrpcpb.CheckTxnStatusResponse{Error: txnNotFound(req.PrimaryKey, req.LockTs)}
	case req.ResolvingPessimisticLock:
		return &kvrpcpb.CheckTxnStatusResponse{Action: kvrpcpb.Action_LockNotExistDoNothing}
	}
	c.forbid(req.PrimaryKey, req.LockTs)
	return &kvrpcpb.CheckTxnStatusResponse{Action: kvrpcpb.Action_LockNotExistRollback}
}

func checkLock(c *changes, lock *Lock, req *kvrpcpb.CheckTxnStatusRequest) *kvrpcpb.CheckTxnStatusResponse {
	if req.VerifyIsPrimary && !bytes.Equal(lock.PrimaryLock, lock.Key) {
		return &kvrpcpb.CheckTxnStatusResponse{Error: &kvrpcpb.KeyError{
			PrimaryMismatch: &kvrpcpb.PrimaryMismatch{LockInfo: lock.info()},
		}}
	}
	if lock.UseAsyncCommit && !req.ForceSyncCommit {
		return &kvrpcpb.CheckTxnStatusResponse{LockTtl: lock.LockTtl, LockInfo: lock.info()}
	}
	if lock.expired(req.CurrentTs) {
		if lock.pessimistic() && req.ResolvingPessimisticLock {
			c.unlock(lock.Key)
			return &kvrpcpb.CheckTxnStatusResponse{Action: kvrpcpb.Action_TTLExpirePessimisticRollback}
		}
		c.rollBack(lock)
		return &kvrpcpb.CheckTxnStatusResponse{Action: kvrpcpb.Action_TTLExpireRollback}
	}
	action := kvrpcpb.Action_NoAction
	switch {
	case req.CallerStartTs == math.MaxUint64:
		action = kvrpcpb.Action_MinCommitTSPushed
	case lock.MinCommitTs > 0:
		action = kvrpcpb.Action_MinCommitTSPushed
		if req.CallerStartTs >= lock.MinCommitTs {
			lock = lock.with(func(l *Lock) { l.MinCommitTs = max(req.CallerStartTs+1, req.CurrentTs) })
			c.lock(lock)
		}
	}
	return &kvrpcpb.CheckTxnStatusResponse{LockTtl: lock.LockTtl, LockInfo: lock.info(), Action: action}
}

// CheckSecondaryLocks tells how an async commit stands, and keeps what is not yet prewritten from ever being.
func (s *Store) CheckSecondaryLocks(req *kvrpcpb.CheckSecondaryLocksRequest) *kvrpcpb.CheckSecondaryLocksResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.records(Range{})
	defer it.Release()

	c := changes{store: s}
	defer c.apply()
	resp := &kvrpcpb.CheckSecondaryLocksResponse{}
	for _, key := range req.Keys {
		lock, own := s.ownLock(key, req.StartVersion)
		if own && !lock.pessimistic() {
			resp.Locks = append(resp.Locks, lock.info())
			continue
		}
		if own {
			c.rollBack(lock)
			return &kvrpcpb.CheckSecondaryLocksResponse{}
		}
		end, ts, found := endOf(it, key, req.StartVersion)
		if !found {
			c.forbid(key, req.StartVersion)
		} else if end.kind != rollback {
			return &kvrpcpb.CheckSecondaryLocksResponse{CommitTs: ts}
		}
		return &kvrpcpb.CheckSecondaryLocksResponse{}
	}
	return resp
}

// TxnHeartBeat lengthens the life of a transaction's primary lock.
func (s *Store) TxnHeartBeat(req *kvrpcpb.TxnHeartBeatRequest) *kvrpcpb.TxnHeartBeatResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	lock, own := s.ownLock(req.PrimaryLock, req.StartVersion)
	if !own {
		return &kvrpcpb.TxnHeartBeatResponse{Error: txnNotFound(req.PrimaryLock, req.StartVersion)}
	}
	if req.AdviseLockTtl > lock.LockTtl {
		lock = lock.with(func(l *Lock) { l.LockTtl = req.AdviseLockTtl })
		c := changes{store: s}
		c.lock(lock)
		c.apply()
	}
	return &kvrpcpb.TxnHeartBeatResponse{LockTtl: lock.LockTtl}
}

// ScanLock lists locks that are not newer than a timestamp, within the request's range and its region.
func (s *Store) ScanLock(req *kvrpcpb.ScanLockRequest, region Range) *kvrpcpb.ScanLockResponse {
	s.mu.RLock()
	defer s.mu.RUnlock()
	resp := &kvrpcpb.ScanLockResponse{}
	for _, lock := range s.locksIn(Range{Start: req.StartKey, End: req.EndKey}.within(region), func(lock *Lock) bool {
		return lock.LockVersion <= req.MaxVersion
	}) {
		if req.Limit > 0 && len(resp.Locks) == int(req.Limit) {
			break
		}
		resp.Locks = append(resp.Locks, lock.info())
	}
	return resp
}

// ResolveLock commits or rolls back the locks of transactions whose end is known: at the keys that the request names, else
// in the whole region.
func (s *Store) ResolveLock(req *kvrpcpb.ResolveLockRequest, region Range) *kvrpcpb.ResolveLockResponse {
	ends := map[uint64]uint64{}
	if len(req.TxnInfos) == 0 {
		ends[req.StartVersion] = req.CommitVersion
	}
	for _, info := range req.TxnInfos {
		ends[info.Txn] = info.Status
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	var locks []*Lock
	if len(req.Keys) > 0 {
		for _, key := range req.Keys {
			if lock, own := s.ownLock(key, req.StartVersion); own {
				locks = append(locks, lock)
			}
		}
	} else {
		locks = s.locksIn(region, func(lock *Lock) bool {
			_, known := ends[lock.LockVersion]
			return known
		})
	}

	c := changes{store: s}
	for _, lock := range locks {
		commitTS := ends[lock.LockVersion]
		switch {
		case lock.pessimistic():
			c.unlock(lock.Key)
		case commitTS > 0:
			c.commit(lock, commitTS)
		default:
			c.rollBack(lock)
		}
	}
	c.apply()
	return &kvrpcpb.ResolveLockResponse{}
}

func txnNotFound(primary []byte, startTS uint64) *kvrpcpb.KeyError {
	return &kvrpcpb.KeyError{TxnNotFound: &kvrpcpb.TxnNotFound{StartTs: startTS, PrimaryKey: primary}}
}
