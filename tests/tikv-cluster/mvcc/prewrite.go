package mvcc

import (
	"bytes"
	"fmt"

	"github.com/pingcap/goleveldb/leveldb/iterator"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
)

// maxKeySize is TiKV's default for `storage.max-key-size`; it counts the key as TiKV encodes it, 9 bytes for each 8.
const maxKeySize = 8 << 10

// Prewrite locks the keys of a transaction and leaves its values with the locks. It commits at once if the client asks for
// one phase, which it does only if the request is all of the transaction.
func (s *Store) Prewrite(req *kvrpcpb.PrewriteRequest) *kvrpcpb.PrewriteResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.records(Range{})
	defer it.Release()

	p := prewrite{Store: s, req: req, it: it}
	var locks []*Lock
	var blockers []*kvrpcpb.KeyError
	for i, m := range req.Mutations {
		lock, err := p.key(m, i < len(req.PessimisticActions) && req.PessimisticActions[i] == kvrpcpb.PrewriteRequest_DO_PESSIMISTIC_CHECK)
		switch {
		case err == nil && lock != nil:
			locks = append(locks, lock)
		case err == nil:
		case err.Locked != nil:
			blockers = append(blockers, err)
		default:
			if resp, ok := p.alreadyCommitted(m.Key); ok {
				return resp
			}
			return &kvrpcpb.PrewriteResponse{Errors: []*kvrpcpb.KeyError{err}}
		}
	}
	if len(blockers) > 0 {
		return &kvrpcpb.PrewriteResponse{Errors: blockers}
	}
	return p.write(locks)
}

type prewrite struct {
	*Store
	req *kvrpcpb.PrewriteRequest
	it  iterator.Iterator
}

// key gives the lock that a mutation wants, or none if the mutation only checks, or nothing is left to do.
func (p *prewrite) key(m *kvrpcpb.Mutation, wantsLock bool) (*Lock, *kvrpcpb.KeyError) {
	if size := (len(m.Key)/8 + 1) * 9; size > maxKeySize {
		return nil, abort(fmt.Sprintf("KeyTooLarge { size: %d, limit: %d }", size, maxKeySize))
	}
	old, locked := p.lockOf(m.Key)
	switch {
	case locked && old.LockVersion == p.req.StartVersion && old.pessimistic():
		return p.lock(m, old), nil
	case locked && old.LockVersion == p.req.StartVersion:
		return old, nil
	case wantsLock:
		return nil, pessimisticLockNotFound(m.Key, p.req.StartVersion)
	case locked:
		return nil, old.keyError()
	}
	if last, ts, found := newest(p.it, m.Key); found {
		if last.kind == rollback && last.startTS == p.req.StartVersion {
			return nil, p.conflict(m.Key, last, ts, kvrpcpb.WriteConflict_SelfRolledBack)
		}
		if ts > p.req.StartVersion {
			return nil, p.conflict(m.Key, last, ts, kvrpcpb.WriteConflict_Optimistic)
		}
	}
	if m.Op == kvrpcpb.Op_Insert || m.Op == kvrpcpb.Op_CheckNotExists {
		if _, exists := visible(p.it, m.Key, p.req.StartVersion); exists {
			return nil, &kvrpcpb.KeyError{AlreadyExist: &kvrpcpb.AlreadyExist{Key: m.Key}}
		}
	}
	if m.Op == kvrpcpb.Op_CheckNotExists {
		return nil, nil
	}
	return p.lock(m, nil), nil
}

// lock makes the lock of a mutation; old is the pessimistic one that it takes the place of.
func (p *prewrite) lock(m *kvrpcpb.Mutation, old *Lock) *Lock {
	lock := &Lock{value: m.Value, LockInfo: kvrpcpb.LockInfo{
		PrimaryLock:     p.req.PrimaryLock,
		LockVersion:     p.req.StartVersion,
		Key:             m.Key,
		LockTtl:         p.req.LockTtl,
		TxnSize:         p.req.TxnSize,
		LockType:        m.Op,
		LockForUpdateTs: p.req.ForUpdateTs,
		MinCommitTs:     p.req.MinCommitTs,
	}}
	if m.Op == kvrpcpb.Op_Insert {
		lock.LockType = kvrpcpb.Op_Put
	}
	if old != nil {
		lock.LockTtl = max(lock.LockTtl, old.LockTtl)
		lock.MinCommitTs = max(lock.MinCommitTs, old.MinCommitTs)
	}
	if p.req.UseAsyncCommit {
		lock.UseAsyncCommit = true
		if bytes.Equal(m.Key, p.req.PrimaryLock) {
			lock.Secondaries = p.req.Secondaries
		}
	}
	return lock
}

// write takes the commit timestamp of one phase, and the least one of async commit, while nobody else can read or write:
// whoever has a later timestamp sees the locks or the values.
func (p *prewrite) write(locks []*Lock) *kvrpcpb.PrewriteResponse {
	c := changes{store: p.Store}
	defer c.apply()
	resp := &kvrpcpb.PrewriteResponse{}
	if !p.req.TryOnePc && !p.req.UseAsyncCommit {
		for _, lock := range locks {
			c.lock(lock)
		}
		return resp
	}

	ts := p.now()
	late := p.req.MaxCommitTs > 0 && ts > p.req.MaxCommitTs
	for _, lock := range locks {
		switch {
		case late:
			c.lock(lock.with(func(l *Lock) { l.UseAsyncCommit, l.Secondaries = false, nil }))
		case p.req.TryOnePc:
			c.record(lock.Key, ts, record{kind: kindOf(lock.LockType), startTS: lock.LockVersion, value: lock.value})
			if _, locked := p.lockOf(lock.Key); locked {
				c.unlock(lock.Key)
			}
			resp.OnePcCommitTs = ts
		default:
			lock = lock.with(func(l *Lock) { l.MinCommitTs = max(l.MinCommitTs, ts) })
			c.lock(lock)
			resp.MinCommitTs = max(resp.MinCommitTs, lock.MinCommitTs)
		}
	}
	return resp
}

// alreadyCommitted answers a request that comes again because its first answer was lost, after it had committed.
func (p *prewrite) alreadyCommitted(key []byte) (*kvrpcpb.PrewriteResponse, bool) {
	end, ts, found := endOf(p.it, key, p.req.StartVersion)
	if !found || end.kind == rollback {
		return nil, false
	}
	switch {
	case p.req.TryOnePc:
		return &kvrpcpb.PrewriteResponse{OnePcCommitTs: ts}, true
	case p.req.UseAsyncCommit:
		return &kvrpcpb.PrewriteResponse{MinCommitTs: ts}, true
	default:
		return nil, false
	}
}

func (p *prewrite) conflict(key []byte, with record, ts uint64, reason kvrpcpb.WriteConflict_Reason) *kvrpcpb.KeyError {
	return &kvrpcpb.KeyError{Conflict: &kvrpcpb.WriteConflict{
		StartTs:          p.req.StartVersion,
		ConflictTs:       with.startTS,
		ConflictCommitTs: ts,
		Key:              key,
		Primary:          p.req.PrimaryLock,
		Reason:           reason,
	}}
}

func abort(message string) *kvrpcpb.KeyError {
	return &kvrpcpb.KeyError{Abort: message}
}

func pessimisticLockNotFound(key []byte, startTS uint64) *kvrpcpb.KeyError {
	return abort(fmt.Sprintf("PessimisticLockNotFound { start_ts: %d, key: %x }", startTS, key))
}
