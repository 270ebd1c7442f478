package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
)

type options struct {
	addrs    []string
	clients  int
	duration time.Duration
	seed     uint64
	perKey   int
	timeout  time.Duration
	// unknownPerKey is how many commands of unknown outcome a key may have before another key takes its place.
	unknownPerKey int
	// outstanding is how many commands may be under way on a key at once.
	outstanding int
	broken      string
	kinds       []kind
}

// history is all that happened to a key.
type history struct {
	kind       kind
	key        string
	operations []porcupine.Operation
	// unknown counts the operations whose outcome nobody knows, failed those that certainly had none.
	unknown, failed int
}

// outcome is an operation's output: the reply as text, or unknown, which any reply agrees with.
type outcome struct {
	reply   string
	unknown bool
}

// hotKey gives the key of a kind that is in use, and another one when it has been used enough.
type hotKey struct {
	kind kind
	// slots holds a token for each command under way.
	slots chan struct{}

	mu                        sync.Mutex
	generation, used, unknown int
}

// begin gives the key for one more command, when there is room for it.
func (h *hotKey) begin(prefix string, perKey int) string {
	h.slots <- struct{}{}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.used == perKey {
		h.replace()
	}
	h.used++
	return h.key(prefix)
}

// end notes that a command on a key is over. After too many unknown outcomes there are too many orders to search.
func (h *hotKey) end(prefix, key string, isUnknown bool, unknownPerKey int) {
	<-h.slots
	h.mu.Lock()
	defer h.mu.Unlock()
	if !isUnknown || key != h.key(prefix) {
		return
	}
	h.unknown++
	if h.unknown == unknownPerKey {
		h.replace()
	}
}

func (h *hotKey) replace() {
	h.generation++
	h.used, h.unknown = 0, 0
}

func (h *hotKey) key(prefix string) string {
	return fmt.Sprintf("%s:%s:%d", prefix, h.kind.name, h.generation)
}

// drive lets the clients work and gives what they have seen, key by key.
func drive(o options) []*history {
	hot := make([]*hotKey, len(o.kinds))
	for i, k := range o.kinds {
		hot[i] = &hotKey{kind: k, slots: make(chan struct{}, o.outstanding)}
	}
	// Keys of an earlier run may still be there.
	prefix := strconv.FormatInt(time.Now().UnixNano(), 36)
	start := time.Now()
	recorded := make([]map[string]*history, o.clients)
	var group sync.WaitGroup
	for id := range o.clients {
		group.Add(1)
		go func() {
			defer group.Done()
			c := client{options: o, id: id, start: start, random: rand.New(rand.NewPCG(o.seed, uint64(id))), seen: map[string]*history{}, stale: map[string]string{}}
			c.connect()
			defer c.close()
			for time.Since(start) < o.duration {
				h := hot[c.random.IntN(len(hot))]
				key := h.begin(prefix, o.perKey)
				isUnknown := c.run(h.kind, key)
				h.end(prefix, key, isUnknown, o.unknownPerKey)
			}
			recorded[id] = c.seen
		}()
	}
	group.Wait()
	return merge(recorded)
}

func merge(recorded []map[string]*history) []*history {
	all := map[string]*history{}
	for _, seen := range recorded {
		for key, h := range seen {
			if whole := all[key]; whole != nil {
				whole.operations = append(whole.operations, h.operations...)
				whole.unknown += h.unknown
				whole.failed += h.failed
			} else {
				all[key] = h
			}
		}
	}
	var out []*history
	for _, h := range all {
		out = append(out, h)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].key < out[j].key })
	return out
}

// client sends one command after the other. Time is counted from start, on one monotonic clock for all clients.
type client struct {
	options
	id     int
	start  time.Time
	random *rand.Rand
	conns  []*redis.Client
	seen   map[string]*history
	sent   int
	// stale is what the client has read last, if it is to break the promise so.
	stale map[string]string
}

// connect takes one connection to each gateway. A command is never sent twice, since it could have been done the first
// time; and replies have the shape of RESP2, which is the simpler one.
func (c *client) connect() {
	for _, addr := range c.addrs {
		c.conns = append(c.conns, redis.NewClient(&redis.Options{
			Addr: addr, Protocol: 2, MaxRetries: -1, PoolSize: 1,
			DialTimeout: time.Second, ReadTimeout: c.timeout, WriteTimeout: c.timeout, DisableIdentity: true,
			DialerRetries: 1,
		}))
	}
}

func (c *client) close() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// run sends one command and records it. It says whether nobody knows if the command was done.
func (c *client) run(k kind, key string) (isUnknown bool) {
	h := c.seen[key]
	if h == nil {
		h = &history{kind: k, key: key}
		c.seen[key] = h
	}
	c.sent++
	args := k.next(c.random, key, fmt.Sprintf("v%d.%d", c.id, c.sent))
	call := time.Since(c.start).Nanoseconds()
	reply, err := c.send(args)
	done := time.Since(c.start).Nanoseconds()

	op := porcupine.Operation{ClientId: c.id, Input: args, Call: call, Output: outcome{reply: reply}, Return: done}
	switch {
	case err == nil:
		h.operations = append(h.operations, op)
	case notDone(err) || reads(args[0]):
		h.failed++
		c.pause()
	default:
		// It may take effect at any later time, or never, which is the same as at the very end.
		op.Output, op.Return = outcome{unknown: true}, forever
		h.operations = append(h.operations, op)
		h.unknown++
		c.pause()
		return true
	}
	return false
}

// forever is after everything else.
const forever = int64(1) << 62

// pause keeps a client from asking a gateway that is down a hundred thousand times a second.
func (c *client) pause() {
	time.Sleep(time.Duration(c.random.IntN(20)) * time.Millisecond)
}

var readers = []string{"GET", "MGET", "LLEN", "LRANGE", "ZCARD", "ZRANGE", "HGET", "HLEN", "HGETALL", "EXISTS", "TTL"}

func reads(command string) bool {
	return slices.Contains(readers, command)
}

// refusals begin errors that promise that nothing was done.
var refusals = []string{"LOADING", "TRYAGAIN", "ERR store unavailable"}

// notDone says whether an error is certain to mean that nothing was done: there was no connection, or the gateway says so.
func notDone(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	return slices.ContainsFunc(refusals, func(start string) bool { return strings.HasPrefix(err.Error(), start) })
}

// send gives the reply as text; an error that is a reply of Redis by the model's words is a reply, too.
func (c *client) send(args []string) (string, error) {
	conn := c.conns[c.random.IntN(len(c.conns))]
	if c.broken != "" && c.random.IntN(100) == 0 {
		return c.sendBroken(conn, args)
	}
	reply, err := send(conn, args)
	if err == nil && c.broken == "stale" && args[0] == "GET" {
		c.stale[args[1]] = reply
	}
	return reply, err
}

func send(conn *redis.Client, args []string) (string, error) {
	words := make([]any, len(args))
	for i, arg := range args {
		words[i] = arg
	}
	reply, err := conn.Do(context.Background(), words...).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "nil", nil
	case err != nil && err.Error() == "ERR no such key":
		return err.Error(), nil
	case err != nil:
		return "", err
	}
	return text(args[0], reply), nil
}

// text writes a reply as the models do: fields in order, and a time to live without its number.
func text(command string, reply any) string {
	switch reply := reply.(type) {
	case nil:
		return "nil"
	case int64:
		if command == "TTL" && reply >= 0 {
			return "later"
		}
		return strconv.FormatInt(reply, 10)
	case []any:
		words := make([]string, len(reply))
		for i, word := range reply {
			words[i] = text("", word)
		}
		if command == "HGETALL" {
			words = inOrder(words)
		}
		return "[" + strings.Join(words, " ") + "]"
	default:
		return fmt.Sprint(reply)
	}
}

func inOrder(words []string) []string {
	var pairs []string
	for i := 0; i+1 < len(words); i += 2 {
		pairs = append(pairs, words[i]+" "+words[i+1])
	}
	sort.Strings(pairs)
	return pairs
}
