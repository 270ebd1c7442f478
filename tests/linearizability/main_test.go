package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
)

// startRedis gives the address of a Redis of the test's own.
func startRedis(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed")
	}
	socket := filepath.Join(t.TempDir(), "socket")
	cmd := exec.Command(program, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", filepath.Dir(socket))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	conn := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, MaxRetries: -1})
	defer conn.Close()
	for end := time.Now().Add(10 * time.Second); conn.Ping(t.Context()).Err() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("redis-server does not answer")
		}
	}
	return socket
}

// startProxy passes commands on to a Unix socket. Once in a while it drops the connection: after a request, of which nobody
// knows then whether it was done, or before.
func startProxy(t *testing.T, socket string, cuts bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", socket)
			if err != nil {
				_ = client.Close()
				continue
			}
			go pass(client, server, cuts)
		}
	}()
	return listener.Addr().String()
}

func pass(client, server net.Conn, cuts bool) {
	defer client.Close()
	defer server.Close()
	go func() { _, _ = io.Copy(client, server) }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		cut := cuts && rand.IntN(200) == 0
		if err != nil || cut && rand.IntN(2) == 0 {
			return
		}
		if cut {
			_ = client.Close()
		}
		if _, err := server.Write(buffer[:n]); err != nil || cut {
			return
		}
	}
}

func run(t *testing.T, addr, broken string) (code, unknown int) {
	t.Helper()
	results := checkAll(drive(options{
		addrs: []string{addr}, clients: 16, duration: time.Second, seed: 1, perKey: 1000, timeout: 5 * time.Second,
		unknownPerKey: 4, outstanding: 16, broken: broken, kinds: kinds,
	}), time.Minute)
	for _, r := range results {
		unknown += r.unknown
	}
	return summarise(results, t.TempDir()), unknown
}

func TestRedisIsLinearizable(t *testing.T) {
	if code, unknown := run(t, startProxy(t, startRedis(t), false), ""); code != 0 || unknown != 0 {
		t.Fatal(code, unknown)
	}
}

func TestLostRepliesAreNoViolation(t *testing.T) {
	if code, unknown := run(t, startProxy(t, startRedis(t), true), ""); code != 0 || unknown == 0 {
		t.Fatal(code, unknown)
	}
}

func TestBrokenPromisesAreNoticed(t *testing.T) {
	addr := startProxy(t, startRedis(t), false)
	for _, how := range []string{"lost", "twice", "stale"} {
		if code, _ := run(t, addr, how); code != exitViolated {
			t.Errorf("%s: %d", how, code)
		}
	}
}

func TestUnknownOutcome(t *testing.T) {
	register := kinds[0]
	write := porcupine.Operation{ClientId: 1, Input: []string{"SET", "k", "v1"}, Call: 0, Output: outcome{unknown: true}, Return: forever}
	read := func(client int, call int64, reply string) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Input: []string{"GET", "k"}, Call: call, Output: outcome{reply: reply}, Return: call + 1}
	}
	for _, test := range []struct {
		replies []string
		want    porcupine.CheckResult
	}{
		{[]string{"nil", "nil"}, porcupine.Ok},
		{[]string{"nil", "v1"}, porcupine.Ok},
		{[]string{"v1", "v1"}, porcupine.Ok},
		{[]string{"v1", "nil"}, porcupine.Illegal},
		{[]string{"v2"}, porcupine.Illegal},
	} {
		h := &history{kind: register, operations: []porcupine.Operation{write}}
		for i, reply := range test.replies {
			h.operations = append(h.operations, read(i+2, int64(10*(i+1)), reply))
		}
		if got := check(h, time.Second).verdict; got != test.want {
			t.Errorf("%v: %v", test.replies, got)
		}
	}
}

func TestTheBeginningOfAViolationIsEnough(t *testing.T) {
	h := &history{kind: kinds[0]}
	add := func(call int64, reply string, args ...string) {
		h.operations = append(h.operations, porcupine.Operation{Input: args, Call: call, Output: outcome{reply: reply}, Return: call + 1})
	}
	for i := range int64(1000) {
		add(2*i, "OK", "SET", "k", "v")
	}
	add(81, "w", "GET", "k")
	r := check(h, time.Second)
	if r.verdict != porcupine.Illegal || len(r.operations) > 60 {
		t.Fatal(r.verdict, len(r.operations))
	}
	if code := summarise([]result{r}, t.TempDir()); code != exitViolated {
		t.Fatal(code)
	}
}

func TestKeysAreReplaced(t *testing.T) {
	h := &hotKey{kind: kinds[0], slots: make(chan struct{}, 1)}
	var seen []string
	for _, isUnknown := range []bool{false, false, false, true, true, false} {
		key := h.begin("p", 3)
		h.end("p", key, isUnknown, 2)
		seen = append(seen, key)
	}
	want := []string{"p:register:0", "p:register:0", "p:register:0", "p:register:1", "p:register:1", "p:register:2"}
	if !slices.Equal(seen, want) {
		t.Fatal(seen)
	}
}

func TestNothingAnsweredIsNothingShown(t *testing.T) {
	h := &history{kind: kinds[0], unknown: 1, operations: []porcupine.Operation{
		{Input: []string{"SET", "k", "v"}, Output: outcome{unknown: true}, Return: forever},
	}}
	if code := summarise([]result{check(h, time.Second)}, t.TempDir()); code != exitUndecided {
		t.Fatal(code)
	}
}

func TestNoConnectionIsNoOperation(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c := client{options: options{addrs: []string{addr}, timeout: time.Second}, random: rand.New(rand.NewPCG(1, 1))}
	c.connect()
	defer c.close()
	if _, err := c.send([]string{"SET", "k", "v"}); !notDone(err) {
		t.Fatal(err)
	}
	if notDone(errors.New("i/o timeout")) {
		t.Fatal("a reply that did not come is not a request that was not sent")
	}
}
