package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/tikvpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// ask sends a request to the admin interface and gives its answer as text.
func ask(t *testing.T, c *cluster, method, target, body string) (int, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	c.admin().ServeHTTP(recorder, httptest.NewRequest(method, target, strings.NewReader(body)))
	return recorder.Code, strings.TrimSpace(recorder.Body.String())
}

func TestAdminInterface(t *testing.T) {
	c := newTestCluster(t)
	client := newTestClient(t, c.pd.addr)
	put(t, client, modes[1], "a", "1", "b", "2")

	var counts map[string]uint64
	_, text := ask(t, c, "DELETE", "/rpcs", "")
	if err := json.Unmarshal([]byte(text), &counts); err != nil || counts["KvPrewrite"] != 1 || counts["Tso"] == 0 {
		t.Fatal(text, err)
	}
	for _, step := range []struct {
		method, target, body string
		code                 int
		contains             string
	}{
		{"POST", "/split?key=62", "", 200, `"end":"62"`},
		{"POST", "/split?key=62", "", 400, "a region starts there already"},
		{"POST", "/split?key=6", "", 400, "odd length"},
		{"POST", "/merge?region=999", "", 400, "no such region"},
		{"POST", "/leader?region=999", "", 400, "no such region"},
		{"POST", "/stores/stop?id=9", "", 400, "no such store"},
		{"POST", "/stores/stop?id=1", "", 200, `"id":1,"addr":"` + c.stores[1].addr + `","running":false`},
		{"POST", "/stores/start?id=1", "", 200, `"id":1,"addr":"` + c.stores[1].addr + `","running":true`},
		{"POST", "/pd/stop", "", 200, `"pd_running":false`},
		{"POST", "/pd/start", "", 200, `"pd_running":true`},
		{"POST", "/faults", `{"kind":"odd"}`, 400, "kind is none of"},
		{"POST", "/faults", `{"kind":"delay","method":"["}`, 400, "syntax error in pattern"},
		{"POST", "/faults", `{"kind":"delay","delay_ms":1,"count":3}`, 200, `{"id":1}`},
		{"GET", "/faults", "", 200, `"delay_ms":1`},
		{"DELETE", "/faults?id=1", "", 200, `[]`},
		{"GET", "/data", "", 200, `"locks":0,"records":2`},
	} {
		code, text := ask(t, c, step.method, step.target, step.body)
		if code != step.code || !strings.Contains(text, step.contains) {
			t.Errorf("%s %s: %d %s", step.method, step.target, code, text)
		}
	}
	regions := c.regions()
	if len(regions) != 2 {
		t.Fatal(regions)
	}
	if code, text := ask(t, c, "POST", fmt.Sprintf("/merge?region=%d", regions[0].ID), ""); code != 200 {
		t.Error(text)
	}
	if got := get(t, client, "a") + get(t, client, "b"); got != "12" {
		t.Error(got)
	}
}

// dial connects to a store without a client that would mend what the store refuses.
func dial(t *testing.T, c *cluster, storeID uint64) tikvpb.TikvClient {
	t.Helper()
	conn, err := grpc.NewClient(c.stores[storeID].addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(protoCodec{}), grpc.MaxCallSendMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return tikvpb.NewTikvClient(conn)
}

func contextFor(r region) *kvrpcpb.Context {
	return &kvrpcpb.Context{RegionId: r.ID, RegionEpoch: r.epoch(), Peer: r.leader()}
}

func TestRegionErrors(t *testing.T) {
	c := newTestCluster(t)
	whole := c.topology.find(nil)
	if err := c.topology.split([]byte("m")); err != nil {
		t.Fatal(err)
	}
	left := c.topology.find(nil)
	leader, follower := left.Peers[0].Store, left.Peers[1].Store
	for _, test := range []struct {
		name  string
		store uint64
		key   string
		ctx   func(*kvrpcpb.Context)
		want  func(*errorpb.Error) bool
	}{
		{"fits", leader, "a", func(*kvrpcpb.Context) {}, func(e *errorpb.Error) bool { return e == nil }},
		{"wrong store", follower, "a", func(*kvrpcpb.Context) {},
			func(e *errorpb.Error) bool { return e.GetStoreNotMatch().GetActualStoreId() == follower }},
		{"not leader", follower, "a", func(ctx *kvrpcpb.Context) { ctx.Peer = left.peerOn(follower) },
			func(e *errorpb.Error) bool { return e.GetNotLeader().GetLeader().GetStoreId() == leader }},
		{"no such region", leader, "a", func(ctx *kvrpcpb.Context) { ctx.RegionId = 999 },
			func(e *errorpb.Error) bool { return e.GetRegionNotFound().GetRegionId() == 999 }},
		{"before the split", leader, "a", func(ctx *kvrpcpb.Context) { ctx.RegionId, ctx.RegionEpoch = whole.ID, whole.epoch() },
			func(e *errorpb.Error) bool { return len(e.GetEpochNotMatch().GetCurrentRegions()) == 2 }},
		{"another region's key", leader, "z", func(*kvrpcpb.Context) {},
			func(e *errorpb.Error) bool { return string(e.GetKeyNotInRegion().GetKey()) == "z" }},
	} {
		ctx := contextFor(left)
		test.ctx(ctx)
		resp, err := dial(t, c, test.store).KvGet(deadline(t, time.Second), &kvrpcpb.GetRequest{
			Context: ctx, Key: []byte(test.key), Version: 1,
		})
		if err != nil || !test.want(resp.RegionError) {
			t.Errorf("%s: %v, %v", test.name, resp, err)
		}
	}
}

func TestFaults(t *testing.T) {
	c := newTestCluster(t)
	r := c.topology.find(nil)
	store := dial(t, c, r.Leader)
	for kind, want := range map[string]func(*kvrpcpb.GetResponse, error) bool{
		"before":     func(_ *kvrpcpb.GetResponse, err error) bool { return status.Code(err) == codes.Unavailable },
		"after":      func(_ *kvrpcpb.GetResponse, err error) bool { return status.Code(err) == codes.Unavailable },
		"hang":       func(_ *kvrpcpb.GetResponse, err error) bool { return status.Code(err) == codes.DeadlineExceeded },
		"busy":       func(r *kvrpcpb.GetResponse, _ error) bool { return r.GetRegionError().GetServerIsBusy() != nil },
		"leaderless": func(r *kvrpcpb.GetResponse, _ error) bool { return r.GetRegionError().GetNotLeader() != nil },
		"delay":      func(r *kvrpcpb.GetResponse, err error) bool { return err == nil && r.NotFound },
	} {
		id, err := c.faults.add(fault{Method: "KvGet", Kind: kind, Count: 1, Store: r.Leader})
		if err != nil {
			t.Fatal(err)
		}
		for hit, want := range []func(*kvrpcpb.GetResponse, error) bool{want, func(r *kvrpcpb.GetResponse, err error) bool { return err == nil && r.NotFound }} {
			resp, err := store.KvGet(deadline(t, 300*time.Millisecond), &kvrpcpb.GetRequest{Context: contextFor(r), Key: []byte("k"), Version: 1})
			if !want(resp, err) {
				t.Errorf("%s, request %d: %v, %v", kind, hit+1, resp, err)
			}
		}
		c.faults.remove(id)
	}
}

func TestQuorum(t *testing.T) {
	c := newTestCluster(t)
	r := c.topology.find(nil)
	if err := c.stopStore(r.Leader, true); err != nil {
		t.Fatal(err)
	}
	second := c.topology.find(nil)
	if second.Leader == 0 || second.Leader == r.Leader {
		t.Fatalf("leader %d after %d", second.Leader, r.Leader)
	}
	if err := c.stopStore(second.Leader, true); err != nil {
		t.Fatal(err)
	}
	if leader := c.topology.find(nil).Leader; leader != 0 {
		t.Fatalf("store %d leads alone", leader)
	}
	if err := c.startStore(r.Leader); err != nil {
		t.Fatal(err)
	}
	if leader := c.topology.find(nil).Leader; leader == 0 || leader == second.Leader {
		t.Fatalf("leader %d", leader)
	}
}

func TestLimits(t *testing.T) {
	c := newTestCluster(t)
	r := c.topology.find(nil)
	store := dial(t, c, r.Leader)
	prewrite := func(keySize, valueSize int) (*kvrpcpb.PrewriteResponse, error) {
		key := make([]byte, keySize)
		return store.KvPrewrite(context.Background(), &kvrpcpb.PrewriteRequest{
			Context: contextFor(r), PrimaryLock: key, StartVersion: 1, TryOnePc: true,
			Mutations: []*kvrpcpb.Mutation{{Op: kvrpcpb.Op_Put, Key: key, Value: make([]byte, valueSize)}},
		})
	}
	if resp, err := prewrite(4000, 7<<20); err != nil || resp.RegionError != nil || resp.OnePcCommitTs == 0 {
		t.Errorf("%v, %v", resp, err)
	}
	if resp, err := prewrite(1, 8<<20); err != nil || resp.GetRegionError().GetRaftEntryTooLarge() == nil {
		t.Errorf("%v, %v", resp, err)
	}
	if resp, err := prewrite(8<<10, 1); err != nil || len(resp.Errors) != 1 || !strings.Contains(resp.Errors[0].Abort, "KeyTooLarge") {
		t.Errorf("%v, %v", resp, err)
	}
	if _, err := store.KvScan(context.Background(), &kvrpcpb.ScanRequest{
		Context: contextFor(r), Limit: 1<<32 - 1, Version: 1,
	}); status.Code(err) != codes.Internal {
		t.Error(err)
	}
}
