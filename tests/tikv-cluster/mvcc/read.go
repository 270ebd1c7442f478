package mvcc

import (
	"bytes"
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

	if req.Reverse {
		slices.Reverse(locks)
	}
	scan := scan{it: it, ts: req.Version, limit: int(req.Limit), locks: locks, keysOnly: req.KeyOnly, reverse: req.Reverse}
	scan.run()
	return &kvrpcpb.ScanResponse{Pairs: scan.pairs}
}

func (s *Store) blocked(lock *Lock, ts uint64, ctx *kvrpcpb.Context) bool {
	return ctx.GetIsolationLevel() == kvrpcpb.IsolationLevel_SI && lock.blocks(ts, ctx.GetResolvedLocks())
}

// scan merges the records of a range with the locks that block it, both in the order of the scan.
type scan struct {
	it       iterator.Iterator
	ts       uint64
	limit    int
	locks    []*Lock
	keysOnly bool
	reverse  bool
	pairs    []*kvrpcpb.KvPair
}

// run walks all versions of the keys. To seek from key to key would take longer: most keys have one.
func (s *scan) run() {
	first, step := s.it.First, s.it.Next
	if s.reverse {
		first, step = s.it.Last, s.it.Prev
	}
	for ok := first(); ok && !s.full(); {
		key, _, err := splitRecordKey(s.it.Key())
		if err != nil {
			return
		}
		prefix := recordPrefix(key)
		var last record
		for ; ok && bytes.HasPrefix(s.it.Key(), prefix); ok = step() {
			// Forward the newest version comes first, backward it comes last.
			if last.kind != 0 && !s.reverse || timestamp(s.it.Key()) > s.ts {
				continue
			}
			if k := kind(s.it.Value()[0]); k == put || k == del {
				last = decodeRecord(s.it.Value())
			}
		}
		s.meet(key, last)
	}
	s.rest()
}

// meet adds the locks that come before a key, and then the key.
func (s *scan) meet(key []byte, last record) {
	for len(s.locks) > 0 && !s.full() && (bytes.Compare(s.locks[0].Key, key) < 0) != s.reverse && !bytes.Equal(s.locks[0].Key, key) {
		s.addLock()
	}
	switch {
	case s.full():
	case len(s.locks) > 0 && bytes.Equal(s.locks[0].Key, key):
		s.addLock()
	case last.kind == put && s.keysOnly:
		s.pairs = append(s.pairs, &kvrpcpb.KvPair{Key: key})
	case last.kind == put:
		s.pairs = append(s.pairs, &kvrpcpb.KvPair{Key: key, Value: last.value})
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
