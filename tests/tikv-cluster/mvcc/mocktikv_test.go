package mvcc

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pingcap/goleveldb/leveldb"
	"github.com/pingcap/goleveldb/leveldb/storage"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/tikv/client-go/v2/testutils"
)

// clock hands out timestamps a millisecond apart.
type clock struct {
	ts uint64
}

func (c *clock) now() uint64 {
	c.ts += 1 << 18
	return c.ts
}

func newTestStore(t *testing.T, c *clock) *Store {
	t.Helper()
	db, err := leveldb.Open(storage.NewMemStorage(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStore(db, c.now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pair is this package's store beside client-go's mocktikv, which others wrote: the same requests go to both.
type pair struct {
	*testing.T
	ours   *Store
	theirs testutils.MVCCStore
	clock  clock
	random *rand.Rand
	keys   [][]byte
	txns   []txn
}

type txn struct {
	startTS uint64
	keys    [][]byte
}

func (p *pair) same(what string, ours, theirs any) {
	p.Helper()
	if a, b := fmt.Sprint(ours), fmt.Sprint(theirs); a != b {
		p.Fatalf("%s: ours %s, theirs %s", what, a, b)
	}
}

// outcome leaves of an error what a client acts on.
func outcome(errs ...error) string {
	locked := false
	for _, err := range errs {
		if _, ok := err.(*testutils.ErrLocked); ok {
			locked = true
		} else if err != nil {
			return "refused"
		}
	}
	if locked {
		return "locked"
	}
	return "done"
}

func ourOutcome(errs ...*kvrpcpb.KeyError) string {
	locked := false
	for _, err := range errs {
		if err.GetLocked() != nil {
			locked = true
		} else if err != nil {
			return "refused"
		}
	}
	if locked {
		return "locked"
	}
	return "done"
}

func (p *pair) some() [][]byte {
	var keys [][]byte
	for _, key := range p.keys {
		if p.random.IntN(3) == 0 {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		keys = append(keys, p.keys[p.random.IntN(len(p.keys))])
	}
	return keys
}

func (p *pair) prewrite(t txn) {
	req := &kvrpcpb.PrewriteRequest{
		Context: &kvrpcpb.Context{}, PrimaryLock: t.keys[0], StartVersion: t.startTS, LockTtl: uint64(p.random.IntN(30)),
	}
	for i, key := range t.keys {
		op := []kvrpcpb.Op{kvrpcpb.Op_Put, kvrpcpb.Op_Put, kvrpcpb.Op_Del, kvrpcpb.Op_Lock}[p.random.IntN(4)]
		m := &kvrpcpb.Mutation{Op: op, Key: key}
		if op == kvrpcpb.Op_Put {
			m.Value = fmt.Appendf(nil, "%d-%d", t.startTS, i)
		}
		req.Mutations = append(req.Mutations, m)
	}
	p.same("prewrite", ourOutcome(p.ours.Prewrite(req).Errors...), outcome(p.theirs.Prewrite(req)...))
}

func (p *pair) check(t txn) {
	current := p.clock.ts
	ttl, commitTS, action, err := p.theirs.CheckTxnStatus(t.keys[0], t.startTS, current, current, true, false)
	ours := p.ours.CheckTxnStatus(&kvrpcpb.CheckTxnStatusRequest{
		PrimaryKey: t.keys[0], LockTs: t.startTS, CallerStartTs: current, CurrentTs: current, RollbackIfNotExist: true,
	})
	p.same("status", fmt.Sprint(ours.LockTtl, ours.CommitVersion, ours.Action, ourOutcome(ours.Error)),
		fmt.Sprint(ttl, commitTS, action, outcome(err)))
}

func (p *pair) resolve(t txn, commitTS uint64) {
	ours := p.ours.ResolveLock(&kvrpcpb.ResolveLockRequest{StartVersion: t.startTS, CommitVersion: commitTS}, Range{})
	p.same("resolve", ourOutcome(ours.Error), outcome(p.theirs.ResolveLock(nil, nil, t.startTS, commitTS)))
}

func (p *pair) read() {
	ts := p.clock.ts - uint64(p.random.IntN(20))<<18
	var ours, theirs []string
	for _, key := range p.keys {
		got := p.ours.Get(&kvrpcpb.GetRequest{Key: key, Version: ts})
		ours = append(ours, fmt.Sprintf("%s %s", got.Value, ourOutcome(got.Error)))
		value, err := p.theirs.Get(key, ts, kvrpcpb.IsolationLevel_SI, nil)
		theirs = append(theirs, fmt.Sprintf("%s %s", value, outcome(err)))
		if (value == nil && err == nil) != got.NotFound {
			p.Fatalf("%s: not found %v, value %q", key, got.NotFound, value)
		}
	}
	p.same("get", ours, theirs)

	r := Range{Start: p.keys[p.random.IntN(len(p.keys))]}
	if p.random.IntN(2) == 0 {
		r.End = p.keys[p.random.IntN(len(p.keys))]
	}
	if string(r.End) <= string(r.Start) {
		r.End = nil
	}
	limit := 1 + p.random.IntN(len(p.keys))
	scan := &kvrpcpb.ScanRequest{StartKey: r.Start, EndKey: r.End, Limit: uint32(limit), Version: ts}
	p.same("scan", ourPairs(p.ours.Scan(scan, Range{})),
		theirPairs(p.theirs.Scan(r.Start, r.End, limit, ts, kvrpcpb.IsolationLevel_SI, nil)))
	back := &kvrpcpb.ScanRequest{StartKey: r.End, EndKey: r.Start, Limit: uint32(limit), Version: ts, Reverse: true}
	p.same("reverse scan", ourPairs(p.ours.Scan(back, Range{})),
		theirPairs(p.theirs.ReverseScan(r.Start, r.End, limit, ts, kvrpcpb.IsolationLevel_SI, nil)))
}

func ourPairs(resp *kvrpcpb.ScanResponse) []string {
	var out []string
	for _, pair := range resp.Pairs {
		out = append(out, fmt.Sprintf("%s=%s %s", pair.Key, pair.Value, ourOutcome(pair.Error)))
	}
	return out
}

func theirPairs(pairs []testutils.MVCCPair) []string {
	var out []string
	for _, pair := range pairs {
		out = append(out, fmt.Sprintf("%s=%s %s", pair.Key, pair.Value, outcome(pair.Err)))
	}
	return out
}

func (p *pair) step() {
	if len(p.txns) == 0 || p.random.IntN(4) == 0 {
		p.txns = append(p.txns, txn{startTS: p.clock.now(), keys: p.some()})
	}
	recent := p.txns[max(0, len(p.txns)-6):]
	t := recent[p.random.IntN(len(recent))]
	switch p.random.IntN(8) {
	case 0, 1, 2:
		p.prewrite(t)
	case 3, 4:
		commitTS := p.clock.now()
		ours := p.ours.Commit(&kvrpcpb.CommitRequest{Keys: t.keys, StartVersion: t.startTS, CommitVersion: commitTS})
		p.same("commit", ourOutcome(ours.Error), outcome(p.theirs.Commit(t.keys, t.startTS, commitTS)))
	case 5:
		ours := p.ours.BatchRollback(&kvrpcpb.BatchRollbackRequest{Keys: t.keys, StartVersion: t.startTS})
		p.same("rollback", ourOutcome(ours.Error), outcome(p.theirs.Rollback(t.keys, t.startTS)))
	case 6:
		p.check(t)
		if status := p.ours.CheckTxnStatus(&kvrpcpb.CheckTxnStatusRequest{PrimaryKey: t.keys[0], LockTs: t.startTS}); status.LockInfo == nil {
			p.resolve(t, status.CommitVersion)
		}
	case 7:
		p.read()
	}
}

// Pessimistic transactions and empty values are left out, because mocktikv gets them wrong; see README.md.
func TestAgreesWithMocktikv(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			client, _, pd, err := testutils.NewMockTiKV("", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer pd.Close()
			p := &pair{T: t, theirs: client.MvccStore, random: rand.New(rand.NewPCG(seed, 1)), clock: clock{ts: 1000 << 18}}
			p.ours = newTestStore(t, &p.clock)
			for i := range 8 {
				p.keys = append(p.keys, fmt.Appendf(nil, "key%d", i))
			}
			for range 400 {
				p.step()
			}
		})
	}
}
