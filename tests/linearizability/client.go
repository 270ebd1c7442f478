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
	"sync/atomic"
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
	broken   string
	kinds    []kind
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
	used atomic.Int64
}

func (h *hotKey) current(prefix string, perKey int) string {
	return fmt.Sprintf("{%s:%s:%d}", prefix, h.kind.name, (h.used.Add(1)-1)/int64(perKey))
}

// drive lets the clients work and gives what they have seen, key by key.
func drive(o options) []*history {
	hot := make([]*hotKey, len(o.kinds))
	for i, k := range o.kinds {
		hot[i] = &hotKey{kind: k}
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
				c.run(h.kind, h.current(prefix, o.perKey))
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

func (c *client) run(k kind, key string) {
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
	case neverSent(err) || reads(args[0]):
		h.failed++
		c.pause()
	default:
		// It may take effect at any later time, or never, which is the same as at the very end.
		op.Output, op.Return = outcome{unknown: true}, forever
		h.operations = append(h.operations, op)
		h.unknown++
		c.pause()
	}
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

// neverSent says whether an error is certain to mean that nothing was done: there was no connection.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
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
