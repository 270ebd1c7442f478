package mvcc

import (
	"context"
	"fmt"
	"testing"

	"github.com/pingcap/kvproto/pkg/kvrpcpb"
)

// testTxn starts a transaction that holds what the requests about it need.
type testTxn struct {
	*testing.T
	store   *Store
	startTS uint64
	primary []byte
}

func (s *Store) begin(t *testing.T, primary string) testTxn {
	return testTxn{T: t, store: s, startTS: s.now(), primary: []byte(primary)}
}

// prewrite puts values; change may ask for more.
func (x testTxn) prewrite(change func(*kvrpcpb.PrewriteRequest), pairs ...string) *kvrpcpb.PrewriteResponse {
	req := &kvrpcpb.PrewriteRequest{StartVersion: x.startTS, PrimaryLock: x.primary, LockTtl: 1}
	for i := 0; i < len(pairs); i += 2 {
		req.Mutations = append(req.Mutations, &kvrpcpb.Mutation{Op: kvrpcpb.Op_Put, Key: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	if change != nil {
		change(req)
	}
	return x.store.Prewrite(req)
}

func (x testTxn) commit(keys ...string) {
	x.Helper()
	req := &kvrpcpb.CommitRequest{StartVersion: x.startTS, CommitVersion: x.store.now()}
	for _, key := range keys {
		req.Keys = append(req.Keys, []byte(key))
	}
	if resp := x.store.Commit(req); resp.Error != nil {
		x.Fatal(resp.Error)
	}
}

func (x testTxn) lock(key string) *kvrpcpb.PessimisticLockResponse {
	x.Helper()
	resp, err := x.store.PessimisticLock(context.Background(), &kvrpcpb.PessimisticLockRequest{
		StartVersion: x.startTS, ForUpdateTs: x.store.now(), PrimaryLock: x.primary, LockTtl: 1, WaitTimeout: -1, ReturnValues: true,
		Mutations: []*kvrpcpb.Mutation{{Op: kvrpcpb.Op_PessimisticLock, Key: []byte(key)}},
	})
	if err != nil {
		x.Fatal(err)
	}
	return resp
}

func (s *Store) status(x testTxn) *kvrpcpb.CheckTxnStatusResponse {
	now := s.now() + 1<<40
	return s.CheckTxnStatus(&kvrpcpb.CheckTxnStatusRequest{
		PrimaryKey: x.primary, LockTs: x.startTS, CallerStartTs: now, CurrentTs: now, RollbackIfNotExist: true,
	})
}

// dump reads everything, forward and backward, which must be the same.
func (s *Store) dump(t *testing.T) string {
	t.Helper()
	req := &kvrpcpb.ScanRequest{Version: s.now(), Limit: 1000}
	forward := ourPairs(s.Scan(req, Range{}))
	req.Reverse = true
	backward := ourPairs(s.Scan(req, Range{}))
	for i, pair := range backward {
		if forward[len(forward)-1-i] != pair {
			t.Fatalf("%v and %v", forward, backward)
		}
	}
	return fmt.Sprint(forward)
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if a, b := fmt.Sprint(got), fmt.Sprint(want); a != b {
		t.Fatalf("%s: %s, not %s", what, a, b)
	}
}

func TestEmptyValuesAreValues(t *testing.T) {
	s := newTestStore(t, &clock{})
	x := s.begin(t, "a")
	x.prewrite(nil, "a", "", "b", "")
	x.commit("a", "b")
	expect(t, "scan", s.dump(t), "[a= done b= done]")
	expect(t, "not found", s.Get(&kvrpcpb.GetRequest{Key: []byte("a"), Version: s.now()}).NotFound, false)
	expect(t, "not found", s.begin(t, "a").lock("a").NotFounds, []bool{false})
}

// Another transaction commits between a pessimistic one's start and its lock: the lock sees that, so it is no conflict.
func TestPessimisticLockSeesNewerVersion(t *testing.T) {
	s := newTestStore(t, &clock{})
	slow := s.begin(t, "k")
	fast := s.begin(t, "k")
	fast.prewrite(nil, "k", "fast")
	fast.commit("k")
	resp := slow.lock("k")
	expect(t, "values", fmt.Sprintf("%s", resp.Values), "[fast]")
	got := slow.prewrite(func(r *kvrpcpb.PrewriteRequest) {
		r.PessimisticActions = []kvrpcpb.PrewriteRequest_PessimisticAction{kvrpcpb.PrewriteRequest_DO_PESSIMISTIC_CHECK}
	}, "k", "slow")
	expect(t, "errors", got.Errors, []*kvrpcpb.KeyError(nil))
	slow.commit("k")
	expect(t, "scan", s.dump(t), "[k=slow done]")
}

func TestPessimisticLockIsNotCommitted(t *testing.T) {
	s := newTestStore(t, &clock{})
	x := s.begin(t, "k")
	x.prewrite(nil, "k", "v")
	x.commit("k")
	y := s.begin(t, "k")
	y.lock("k")
	resp := s.Commit(&kvrpcpb.CommitRequest{Keys: [][]byte{[]byte("k")}, StartVersion: y.startTS, CommitVersion: s.now()})
	if resp.Error.GetAbort() == "" {
		t.Fatal(resp)
	}
	expect(t, "scan", s.dump(t), "[k=v done]")
}

func TestOnePhaseTakesOwnLocksAway(t *testing.T) {
	s := newTestStore(t, &clock{})
	x := s.begin(t, "a")
	x.lock("a")
	resp := x.prewrite(func(r *kvrpcpb.PrewriteRequest) { r.TryOnePc = true }, "a", "1", "b", "2")
	if resp.OnePcCommitTs <= x.startTS {
		t.Fatal(resp)
	}
	expect(t, "scan", s.dump(t), "[a=1 done b=2 done]")
	again := x.prewrite(func(r *kvrpcpb.PrewriteRequest) { r.TryOnePc = true }, "a", "1", "b", "2")
	expect(t, "second answer", again, resp)
}

func TestAsyncCommit(t *testing.T) {
	async := func(r *kvrpcpb.PrewriteRequest) {
		r.UseAsyncCommit, r.Secondaries = true, [][]byte{[]byte("z")}
	}
	s := newTestStore(t, &clock{})
	x := s.begin(t, "a")
	resp := x.prewrite(async, "a", "1")
	expect(t, "committed once primary is", s.status(x).LockInfo.Secondaries, [][]byte{[]byte("z")})
	secondaries := &kvrpcpb.CheckSecondaryLocksRequest{Keys: [][]byte{[]byte("z")}, StartVersion: x.startTS}

	// Somebody asks before the secondary is there: it never will be.
	expect(t, "locks", len(s.CheckSecondaryLocks(secondaries).Locks), 0)
	if late := x.prewrite(nil, "z", "1"); late.Errors[0].GetConflict().GetReason() != kvrpcpb.WriteConflict_SelfRolledBack {
		t.Fatal(late)
	}

	x = s.begin(t, "b")
	resp = x.prewrite(async, "b", "1", "y", "1")
	secondaries = &kvrpcpb.CheckSecondaryLocksRequest{Keys: [][]byte{[]byte("y")}, StartVersion: x.startTS}
	locks := s.CheckSecondaryLocks(secondaries).Locks
	expect(t, "min commit ts", locks[0].MinCommitTs, resp.MinCommitTs)
	s.ResolveLock(&kvrpcpb.ResolveLockRequest{StartVersion: x.startTS, CommitVersion: resp.MinCommitTs, Keys: [][]byte{[]byte("y")}}, Range{})
	expect(t, "commit ts", s.CheckSecondaryLocks(secondaries).CommitTs, resp.MinCommitTs)
}

func TestLocksAreFoundAndResolved(t *testing.T) {
	s := newTestStore(t, &clock{})
	done, dead := s.begin(t, "a"), s.begin(t, "b")
	done.prewrite(nil, "a", "1", "c", "1", "e", "1")
	dead.prewrite(nil, "b", "2", "d", "2")
	scan := func(r Range, region Range, limit uint32) (keys []string) {
		for _, lock := range s.ScanLock(&kvrpcpb.ScanLockRequest{
			StartKey: r.Start, EndKey: r.End, Limit: limit, MaxVersion: s.now(),
		}, region).Locks {
			keys = append(keys, string(lock.Key))
		}
		return keys
	}
	b, d := []byte("b"), []byte("d")
	expect(t, "all", scan(Range{}, Range{}, 0), "[a b c d e]")
	expect(t, "two", scan(Range{}, Range{}, 2), "[a b]")
	expect(t, "range", scan(Range{Start: b, End: d}, Range{}, 0), "[b c]")
	expect(t, "region", scan(Range{Start: b}, Range{Start: []byte("c"), End: []byte("e")}, 0), "[c d]")

	s.ResolveLock(&kvrpcpb.ResolveLockRequest{TxnInfos: []*kvrpcpb.TxnInfo{
		{Txn: done.startTS, Status: s.now()}, {Txn: dead.startTS},
	}}, Range{End: d})
	expect(t, "other region", scan(Range{}, Range{}, 0), "[d e]")
	expect(t, "scan", s.dump(t), "[a=1 done c=1 done d= locked e= locked]")
	expect(t, "committed", s.status(done).CommitVersion > 0, true)
	expect(t, "rolled back", s.status(dead), &kvrpcpb.CheckTxnStatusResponse{})
}

func TestLocksSurviveRestart(t *testing.T) {
	c := &clock{}
	s := newTestStore(t, c)
	x := s.begin(t, "a")
	x.prewrite(func(r *kvrpcpb.PrewriteRequest) { r.LockTtl = 77 }, "a", "", "b", "value")
	again, err := NewStore(s.db, c.now)
	if err != nil {
		t.Fatal(err)
	}
	x.store = again
	expect(t, "locked", again.dump(t), "[a= locked b= locked]")
	x.commit("a", "b")
	expect(t, "committed", again.dump(t), "[a= done b=value done]")
}

func TestGCKeepsWhatCanBeRead(t *testing.T) {
	s := newTestStore(t, &clock{})
	for i := range 3 {
		x := s.begin(t, "a")
		x.prewrite(nil, "a", fmt.Sprint(i), "b", fmt.Sprint(i))
		x.commit("a", "b")
	}
	x := s.begin(t, "b")
	x.prewrite(func(r *kvrpcpb.PrewriteRequest) { r.Mutations[0].Op = kvrpcpb.Op_Del }, "b", "")
	x.commit("b")
	safePoint := s.now()
	x = s.begin(t, "a")
	x.prewrite(nil, "a", "new")
	x.commit("a")
	if err := s.GC(safePoint); err != nil {
		t.Fatal(err)
	}
	records, _ := s.Count()
	expect(t, "records", records, 2)
	expect(t, "at the safe point", string(s.Get(&kvrpcpb.GetRequest{Key: []byte("a"), Version: safePoint}).Value), "2")
	expect(t, "now", s.dump(t), "[a=new done]")
}

func TestDestroyRange(t *testing.T) {
	s := newTestStore(t, &clock{})
	x := s.begin(t, "a")
	x.prewrite(nil, "a", "1", "b", "1", "c", "1")
	x.commit("a", "b", "c")
	s.begin(t, "bb").prewrite(nil, "bb", "2")
	if err := s.DestroyRange(Range{Start: []byte("b"), End: []byte("c")}); err != nil {
		t.Fatal(err)
	}
	expect(t, "scan", s.dump(t), "[a=1 done c=1 done]")
}
