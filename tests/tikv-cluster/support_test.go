package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/pingcap/log"
	"github.com/tikv/client-go/v2/config"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/txnkv/transaction"
	"go.uber.org/zap/zapcore"
)

// asProgram makes the test's own binary behave as the program, so that a test can kill it.
const asProgram = "TIKV_CLUSTER_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	log.SetLevel(zapcore.FatalLevel)
	// The stores answer single requests only.
	config.UpdateGlobal(func(c *config.Config) { c.TiKVClient.MaxBatchSize = 0 })
	os.Exit(m.Run())
}

func newTestCluster(t *testing.T, splitKeys ...string) *cluster {
	t.Helper()
	o := options{dir: t.TempDir(), pd: "127.0.0.1:0", stores: 3}
	for _, key := range splitKeys {
		o.splitKeys = append(o.splitKeys, []byte(key))
	}
	c, err := openCluster(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// newTestClient connects the official Go client. It asks etcd for nothing: there is none.
func newTestClient(t *testing.T, pdAddr string) *tikv.KVStore {
	t.Helper()
	pdClient, err := tikv.NewPDClient([]string{pdAddr})
	if err != nil {
		t.Fatal(err)
	}
	// PD's client may open two timestamp streams at first and cancel the one that it has used already.
	await(t, "a timestamp", func() bool {
		_, _, err := pdClient.GetTS(context.Background())
		return err == nil
	})
	codec := tikv.NewCodecPDClient(tikv.ModeTxn, pdClient)
	client, err := tikv.NewKVStore("test", codec, tikv.NewMockSafePointKV(), tikv.NewRPCClient(tikv.WithCodec(codec.GetCodec())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// mode is a way to commit.
type mode struct {
	name  string
	apply func(*transaction.KVTxn)
}

var modes = []mode{
	{"two phases", func(txn *transaction.KVTxn) {
		txn.SetEnableAsyncCommit(false)
		txn.SetEnable1PC(false)
	}},
	{"one phase", func(txn *transaction.KVTxn) { txn.SetEnable1PC(true) }},
	{"async", func(txn *transaction.KVTxn) { txn.SetEnableAsyncCommit(true) }},
	{"pessimistic", func(txn *transaction.KVTxn) { txn.SetPessimistic(true) }},
}

func begin(t *testing.T, client *tikv.KVStore, m mode) *transaction.KVTxn {
	t.Helper()
	txn, err := client.Begin()
	if err != nil {
		t.Fatal(err)
	}
	m.apply(txn)
	return txn
}

func put(t *testing.T, client *tikv.KVStore, m mode, pairs ...string) {
	t.Helper()
	txn := begin(t, client, m)
	for i := 0; i < len(pairs); i += 2 {
		if err := txn.Set([]byte(pairs[i]), []byte(pairs[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := txn.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, client *tikv.KVStore, key string) string {
	t.Helper()
	value, err := begin(t, client, modes[0]).Get(context.Background(), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return string(value)
}

// program is the program in a process of its own.
type program struct {
	cmd   *exec.Cmd
	stdin io.Closer
	addressInfo
}

func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(os.Args[0], append(args, "--until-stdin-closes")...)}
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(line, &p.addressInfo); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *program) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

func (p *program) regions(t *testing.T) []regionInfo {
	t.Helper()
	resp, err := http.Get("http://" + p.Admin + "/regions")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out []regionInfo
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// await polls until something has come true.
func await(t *testing.T, what string, come func() bool) {
	t.Helper()
	for ctx := deadline(t, 30*time.Second); !come(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("%s did not come", what)
		}
	}
}

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}
