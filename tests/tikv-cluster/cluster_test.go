package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tikverr "github.com/tikv/client-go/v2/error"
	"github.com/tikv/client-go/v2/kv"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/txnkv/transaction"
)

func TestEveryWayToCommit(t *testing.T) {
	c := newTestCluster(t, "b", "c")
	client := newTestClient(t, c.pd.addr)
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			put(t, client, m, "a", "1"+m.name, "b", "2"+m.name, "c", "3"+m.name)
			put(t, client, m, "alone", m.name)
			txn := begin(t, client, modes[0])
			var got, reversed []string
			it, err := txn.Iter(nil, nil)
			for ; err == nil && it.Valid(); err = it.Next() {
				got = append(got, string(it.Key())+"="+string(it.Value()))
			}
			if err != nil {
				t.Fatal(err)
			}
			it, err = txn.IterReverse([]byte("z"), nil)
			for ; err == nil && it.Valid(); err = it.Next() {
				reversed = append([]string{string(it.Key()) + "=" + string(it.Value())}, reversed...)
			}
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("[a=1%[1]s alone=%[1]s b=2%[1]s c=3%[1]s]", m.name)
			if fmt.Sprint(got) != want || fmt.Sprint(reversed) != want {
				t.Fatalf("got %v and %v, want %v", got, reversed, want)
			}
		})
	}
}

func TestOnePhaseIsOneRequest(t *testing.T) {
	c := newTestCluster(t)
	client := newTestClient(t, c.pd.addr)
	put(t, client, modes[1], "a", "1")
	c.meter.read(true)
	put(t, client, modes[1], "a", "2", "b", "2")
	counts := c.meter.read(true)
	if counts["KvPrewrite"] != 1 || counts["KvCommit"] != 0 {
		t.Fatal(counts)
	}
}

func TestWriteConflict(t *testing.T) {
	c := newTestCluster(t)
	client := newTestClient(t, c.pd.addr)
	for _, m := range modes[:3] {
		txn := begin(t, client, m)
		put(t, client, m, "k", "theirs")
		if err := txn.Set([]byte("k"), []byte("mine")); err != nil {
			t.Fatal(err)
		}
		if err := txn.Commit(context.Background()); !tikverr.IsErrWriteConflict(err) {
			t.Fatalf("%s: %v", m.name, err)
		}
		if got := get(t, client, "k"); got != "theirs" {
			t.Fatalf("%s: %q", m.name, got)
		}
	}
}

// The first request commits and its answer is lost: the client asks again and must learn that it has committed.
func TestLostAnswerOfOnePhase(t *testing.T) {
	c := newTestCluster(t)
	client := newTestClient(t, c.pd.addr)
	if _, err := c.faults.add(fault{Method: "KvPrewrite", Kind: "after", Count: 1}); err != nil {
		t.Fatal(err)
	}
	put(t, client, modes[1], "k", "v")
	if got := c.meter.read(false)["KvPrewrite"]; got != 2 {
		t.Fatalf("%d requests", got)
	}
	if got := get(t, client, "k"); got != "v" {
		t.Fatalf("%q", got)
	}
}

// A transaction whose client died between its phases is rolled back when its time is over, or committed if its primary is.
func TestAbandonedTransactions(t *testing.T) {
	c := newTestCluster(t, "m")
	client := newTestClient(t, c.pd.addr)
	for _, test := range []struct {
		name  string
		rules []fault
		want  string
	}{
		{"between prewrites", []fault{{Method: "KvPrewrite", Kind: "delay", Count: 1}, {Method: "KvPrewrite", Kind: "hang"}}, "old"},
		{"before the primary commits", []fault{{Method: "KvCommit", Kind: "hang"}}, "old"},
		{"before the secondary commits", []fault{{Method: "KvCommit", Kind: "delay", Count: 1}, {Method: "KvCommit", Kind: "hang"}}, "new"},
	} {
		put(t, client, modes[0], "a", "old", "z", "old")
		txn := begin(t, client, modes[0])
		if err := errors.Join(txn.Set([]byte("a"), []byte("new")), txn.Set([]byte("z"), []byte("new"))); err != nil {
			t.Fatal(err)
		}
		for _, rule := range test.rules {
			if _, err := c.faults.add(rule); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := txn.Commit(ctx)
		cancel()
		if (err == nil) != (test.want == "new") {
			t.Fatalf("%s: %v", test.name, err)
		}
		c.faults.remove(0)
		other := newTestClient(t, c.pd.addr)
		if a, z := get(t, other, "a"), get(t, other, "z"); a != test.want || z != test.want {
			t.Fatalf("%s: %q and %q", test.name, a, z)
		}
	}
}

func TestDeadlock(t *testing.T) {
	c := newTestCluster(t)
	client := newTestClient(t, c.pd.addr)
	lock := func(txn *transaction.KVTxn, key string) error {
		ts, err := client.CurrentTimestamp("global")
		if err != nil {
			return err
		}
		return txn.LockKeys(context.Background(), kv.NewLockCtx(ts, kv.LockAlwaysWait, time.Now()), []byte(key))
	}
	first, second := begin(t, client, modes[3]), begin(t, client, modes[3])
	if err := errors.Join(lock(first, "a"), lock(second, "b")); err != nil {
		t.Fatal(err)
	}
	victims := make(chan int, 2)
	cross := func(txn *transaction.KVTxn, key string) {
		err := lock(txn, key)
		var deadlock *tikverr.ErrDeadlock
		if errors.As(err, &deadlock) {
			victims <- 1
		} else if err != nil {
			t.Error(err)
		}
		// The victim must give way before the other can go on.
		if err := txn.Rollback(); err != nil {
			t.Error(err)
		}
	}
	var group sync.WaitGroup
	group.Add(2)
	go func() { defer group.Done(); cross(first, "b") }()
	go func() { defer group.Done(); cross(second, "a") }()
	group.Wait()
	if len(victims) != 1 {
		t.Fatalf("%d victims", len(victims))
	}
}

const (
	accounts = 12
	balance  = 100
)

func account(i int) []byte {
	return fmt.Appendf(nil, "account%02d", i)
}

// Money moves between accounts in all regions while everything goes wrong that can; none is lost or made, at any moment.
func TestTransfersUnderFaults(t *testing.T) {
	c := newTestCluster(t, "account04", "account08")
	client := newTestClient(t, c.pd.addr)
	txn := begin(t, client, modes[0])
	for i := range accounts {
		if err := txn.Set(account(i), []byte(strconv.Itoa(balance))); err != nil {
			t.Fatal(err)
		}
	}
	if err := txn.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}

	stop := make(chan struct{})
	var group sync.WaitGroup
	done := make([]atomic.Int64, len(modes))
	for i := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			random := rand.New(rand.NewPCG(uint64(i), 7))
			for running(stop) {
				if err := transfer(client, modes[i%len(modes)], random); err == nil {
					done[i%len(modes)].Add(1)
				}
			}
		}()
	}
	group.Add(1)
	go func() {
		defer group.Done()
		for running(stop) {
			if sum, err := total(client); err == nil && sum != accounts*balance {
				t.Errorf("%d in all", sum)
			}
		}
	}()
	chaos(t, c)
	for i := range done {
		await(t, "a transfer by "+modes[i].name, func() bool { return done[i].Load() > 0 })
	}
	close(stop)
	group.Wait()

	if sum, err := total(client); err != nil || sum != accounts*balance {
		t.Errorf("%d in all, %v", sum, err)
	}
}

func running(stop chan struct{}) bool {
	select {
	case <-stop:
		return false
	default:
		return true
	}
}

func transfer(client *tikv.KVStore, m mode, random *rand.Rand) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	txn, err := client.Begin()
	if err != nil {
		return err
	}
	m.apply(txn)
	from, to := account(random.IntN(accounts)), account(random.IntN(accounts))
	if string(from) == string(to) {
		return txn.Rollback()
	}
	if txn.IsPessimistic() {
		ts, err := client.CurrentTimestamp("global")
		if err != nil {
			return err
		}
		lock := kv.NewLockCtx(ts, 500, time.Now())
		lock.InitReturnValues(2)
		if err := txn.LockKeys(ctx, lock, from, to); err != nil {
			return errors.Join(err, txn.Rollback())
		}
		return move(ctx, txn, from, to, string(lock.Values[string(from)].Value), string(lock.Values[string(to)].Value))
	}
	values, err := txn.BatchGet(ctx, [][]byte{from, to})
	if err != nil {
		return err
	}
	return move(ctx, txn, from, to, string(values[string(from)]), string(values[string(to)]))
}

func move(ctx context.Context, txn *transaction.KVTxn, from, to []byte, rich, poor string) error {
	a, errA := strconv.Atoi(rich)
	b, errB := strconv.Atoi(poor)
	if err := errors.Join(errA, errB, txn.Set(from, []byte(strconv.Itoa(a-1))), txn.Set(to, []byte(strconv.Itoa(b+1)))); err != nil {
		return err
	}
	return txn.Commit(ctx)
}

func total(client *tikv.KVStore) (int, error) {
	txn, err := client.Begin()
	if err != nil {
		return 0, err
	}
	sum := 0
	it, err := txn.Iter([]byte("account"), []byte("accounu"))
	for ; err == nil && it.Valid(); err = it.Next() {
		n, err := strconv.Atoi(string(it.Value()))
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, err
}

// chaos does each kind of harm a few times, and leaves the cluster whole.
func chaos(t *testing.T, c *cluster) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, kind := range []string{"before", "after", "busy", "leaderless", "delay"} {
		_, err := c.faults.add(fault{Method: "Kv*", Kind: kind, Chance: 0.02, DelayMS: 5})
		must(err)
	}
	for i := range 6 {
		before := c.meter.read(false)["KvPrewrite"]
		must(c.topology.split(fmt.Appendf(nil, "account%02d%d", random.IntN(accounts), i)))
		regions := c.topology.snapshot().Regions
		must(c.topology.transfer(regions[random.IntN(len(regions))].ID, 0))
		must(c.topology.merge(regions[random.IntN(len(regions)-1)].ID))
		down := uint64(1 + random.IntN(3))
		must(c.stopStore(down, true))
		await(t, "progress", func() bool { return c.meter.read(false)["KvPrewrite"] >= before+20 })
		must(c.startStore(down))
	}
	c.faults.remove(0)
}

func TestRestartAfterKill(t *testing.T) {
	dir := t.TempDir()
	p := startProgram(t, "--data", dir, "--split-keys", "62,63")
	first := p
	var lastTS uint64
	for round := range 5 {
		client := newTestClient(t, p.PD)
		ts, err := client.CurrentTimestamp("global")
		if err != nil {
			t.Fatal(err)
		}
		if ts <= lastTS {
			t.Fatalf("timestamp %d after %d", ts, lastTS)
		}
		for i := range round {
			if got := get(t, client, fmt.Sprintf("b%d", i)); got != strings.Repeat("x", i+1) {
				t.Fatalf("b%d is %q", i, got)
			}
		}
		put(t, client, modes[round%len(modes)], "a", "1", fmt.Sprintf("b%d", round), strings.Repeat("x", round+1), "c", "1")
		if lastTS, err = client.CurrentTimestamp("global"); err != nil {
			t.Fatal(err)
		}
		p.kill()
		before := p
		p = startProgram(t, "--data", dir)
		if p.PD != first.PD || fmt.Sprint(p.Stores) != fmt.Sprint(first.Stores) {
			t.Fatalf("%v after %v", p.addressInfo, before.addressInfo)
		}
	}
	if regions := p.regions(t); len(regions) != 3 || regions[1].Start != "62" {
		t.Fatal(regions)
	}
}
