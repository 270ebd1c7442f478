// linearizability drives gateways that share one store with many clients on few keys, records who was told what when, and
// checks that some order of the commands explains all of it: each command taking effect at one moment between its request
// and its reply.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Exit codes, beside 1 for anything else that goes wrong.
const (
	exitViolated  = 2
	exitUndecided = 3
)

func main() {
	var o options
	addrs := flag.String("addrs", "127.0.0.1:6379", "gateways, separated by commas; each command goes to one at random")
	flag.IntVar(&o.clients, "clients", 64, "clients at once")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "how long to send commands")
	flag.Uint64Var(&o.seed, "seed", rand.Uint64(), "seed of the choice of commands")
	flag.IntVar(&o.perKey, "per-key", 200, "commands on a key before another key takes its place: the check's cost grows faster than they do")
	flag.IntVar(&o.unknownPerKey, "unknown-per-key", 4, "commands of unknown outcome on a key before another key takes its place")
	flag.IntVar(&o.outstanding, "outstanding", 8, "commands at once on a key")
	flag.DurationVar(&o.timeout, "timeout", 5*time.Second, "how long to wait for a reply")
	flag.StringVar(&o.broken, "break", "", "break the promise on purpose, to see it noticed: lost, twice or stale")
	kinds := flag.String("kinds", "", "only these kinds of keys, separated by commas")
	checkTimeout := flag.Duration("check-timeout", time.Minute, "how long to search for an order for one key")
	report := flag.String("report", "", "directory for a picture of each violation")
	flag.Parse()
	o.addrs = strings.Split(*addrs, ",")

	var err error
	if o.kinds, err = selectKinds(*kinds); err != nil {
		log.Fatal(err)
	}
	if o.broken != "" && !breakable(o.broken) {
		log.Fatalf("--break %s: there is lost, twice and stale", o.broken)
	}
	fmt.Printf("seed %d: %d clients, %v, on %s\n", o.seed, o.clients, o.duration, *addrs)
	// Gateways that are away are no news.
	redis.SetLogger(quiet{})
	histories := drive(o)
	results := checkAll(histories, *checkTimeout)
	os.Exit(summarise(results, *report))
}

// quiet is a logger that says nothing.
type quiet struct{}

// Printf is part of the client library's logger.
func (quiet) Printf(context.Context, string, ...any) {}
