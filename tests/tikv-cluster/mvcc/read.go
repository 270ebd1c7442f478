package mvcc

import (
	"bytes"
	"math"
	"slices"

	"github.com/pingcap/goleveldb/leveldb/iterator"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
)

// Get reads one key.
func (s *Store) Get(req *kvrpcpb.GetRequest) *kvrpcpb.GetResponse {
	s.mu.RLock()
	lock, locked := s.lockOf(req.Key)
	it := s.records(Range{Start: req.Key, End: after(req.Key)})
	s.mu.RUnlock()
	defer it.Release()

	if locked && s.blocked(lock, req.Version, req.GetContext()) {
		return &kvrpcpb.GetResponse{Error: lock.keyError()}
	}
	value, found := visible(it, req.Key, req.Version)
	return &kvrpcpb.GetResponse{Value: value, NotFound: !found}
}

// BatchGet reads keys at one moment; keys that are not there are left out.
func (s *Store) BatchGet(req *kvrpcpb.BatchGetRequest) *kvrpcpb.BatchGetResponse {
	s.mu.RLock()
	locks := make([]*Lock, len(req.Keys))
	for i, key := range req.Keys {
		locks[i], _ = s.lockOf(key)
	}
	it := s.records(Range{})
	s.mu.RUnlock()
	defer it.Release()

	resp := &kvrpcpb.BatchGetResponse{}
	for i, key := range req.Keys {
		if lock := locks[i]; lock != nil && s.blocked(lock, req.Version, req.GetContext()) {
			resp.Pairs = append(resp.Pairs, lockedPair(lock))
		} else if value, found := visible(it, key, req.Version); found {
			resp.Pairs = append(resp.Pairs, &kvrpcpb.KvPair{Key: key, Value: value})
		}
	}
	return resp
}

// Scan reads the pairs of a request that lie within its region. A reverse request names the range's end first.
func (s *Store) Scan(req *kvrpcpb.ScanRequest, region Range) *kvrpcpb.ScanResponse {
	r := Range{Start: req.StartKey, End: req.EndKey}
	if req.Reverse {
		r = Range{Start: req.EndKey, End: req.StartKey}
	}
	r = r.within(region)

	s.mu.RLock()
	locks := s.locksIn(r, func(lock *Lock) bool { return s.blocked(lock, req.Version, req.GetContext()) })
	it := s.records(r)
	s.mu.RUnlock()
	defer it.Release()

	scan := scan{it: it, ts: req.Version, limit: int(req.Limit), locks: locks, keysOnly: req.KeyOnly}
	if req.Reverse {
		slices.Reverse(scan.locks)
		scan.backward()
	} else {
		scan.forward()
	}
	return &kvrpcpb.ScanResponse{Pairs: scan.pairs}
}

func (s *Store) blocked(lock *Lock, ts uint64, ctx *kvrpcpb.Context) bool {
	return ctx.GetIsolationLevel() == kvrpcpb.IsolationLevel_SI && lock.blocks(ts, ctx.GetResolvedLocks())
}

// scan merges the records of a range with the locks that block it.
type scan struct {
	it       iterator.Iterator
	ts       uint64
	limit    int
	locks    []*Lock
	keysOnly bool
	pairs    []*kvrpcpb.KvPair
}

func (s *scan) forward() {
	for ok := s.it.First(); ok && !s.full(); {
		key, _, err := splitRecordKey(s.it.Key())
		if err != nil {
			return
		}
		s.meet(key, func(lock *Lock) bool { return bytes.Compare(lock.Key, key) < 0 })
		ok = s.it.Seek(append(recordKey(key, 0), 0))
	}
	s.rest()
}

func (s *scan) backward() {
	for ok := s.it.Last(); ok && !s.full(); {
		key, _, err := splitRecordKey(s.it.Key())
		if err != nil {
			return
		}
		s.meet(key, func(lock *Lock) bool { return bytes.Compare(lock.Key, key) > 0 })
		ok = s.it.Seek(recordKey(key, math.MaxUint64)) && s.it.Prev()
	}
	s.rest()
}

// meet adds the locks that come before a key, and then the key.
func (s *scan) meet(key []byte, before func(*Lock) bool) {
	for len(s.locks) > 0 && !s.full() && before(s.locks[0]) {
		s.addLock()
	}
	if s.full() {
		return
	}
	if len(s.locks) > 0 && bytes.Equal(s.locks[0].Key, key) {
		s.addLock()
		return
	}
	if value, found := visible(s.it, key, s.ts); found {
		if s.keysOnly {
			value = nil
		}
		s.pairs = append(s.pairs, &kvrpcpb.KvPair{Key: key, Value: value})
	}
}

// rest adds the locks that come after all records.
func (s *scan) rest() {
	for len(s.locks) > 0 && !s.full() {
		s.addLock()
	}
}

func (s *scan) addLock() {
	s.pairs = append(s.pairs, lockedPair(s.locks[0]))
	s.locks = s.locks[1:]
}

func (s *scan) full() bool {
	return len(s.pairs) >= s.limit
}

func lockedPair(lock *Lock) *kvrpcpb.KvPair {
	return &kvrpcpb.KvPair{Key: lock.Key, Error: lock.keyError()}
}

// after gives the smallest key that is greater.
func after(key []byte) []byte {
	return append(append(make([]byte, 0, len(key)+1), key...), 0)
}

func (r Range) within(outer Range) Range {
	if bytes.Compare(r.Start, outer.Start) < 0 {
		r.Start = outer.Start
	}
	if len(r.End) == 0 || (len(outer.End) > 0 && bytes.Compare(outer.End, r.End) < 0) {
		r.End = outer.End
	}
	return r
}
