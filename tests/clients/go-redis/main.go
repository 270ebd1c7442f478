// A day's work with go-redis and its defaults, on the server at $RESPGATE_ADDR.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

// check ends the program unless an answer is the one expected.
func check[T comparable](what string, got T, err error, want T) {
	if err != nil || got != want {
		fmt.Fprintf(os.Stderr, "%s: got %v, %v; want %v\n", what, got, err, want)
		os.Exit(1)
	}
}

func stringsOf(r *redis.Client) {
	set, err := r.Set(ctx, "go:text", "héllo", 0).Result()
	check("SET", set, err, "OK")
	get, err := r.Get(ctx, "go:text").Result()
	check("GET", get, err, "héllo")
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	r.Set(ctx, "go:binary", every, 0)
	get, err = r.Get(ctx, "go:binary").Result()
	check("binary", get, err, string(every))
	n, err := r.IncrBy(ctx, "go:n", 10).Result()
	check("INCRBY", n, err, 10)
	n, err = r.Append(ctx, "go:text", "!").Result()
	check("APPEND", n, err, 7)
	set, err = r.MSet(ctx, "go:a", 1, "go:b", 2).Result()
	check("MSET", set, err, "OK")
	values, err := r.MGet(ctx, "go:a", "go:none", "go:b").Result()
	check("MGET", fmt.Sprint(values), err, "[1 <nil> 2]")
	_, err = r.Get(ctx, "go:none").Result()
	check("nil", errors.Is(err, redis.Nil), nil, true)
	fresh, err := r.SetNX(ctx, "go:a", 3, 0).Result()
	check("SETNX", fresh, err, false)
	get, err = r.GetDel(ctx, "go:a").Result()
	check("GETDEL", get, err, "1")
}

func expiry(r *redis.Client) {
	r.Set(ctx, "go:short", "x", 1000*time.Second)
	left, err := r.TTL(ctx, "go:short").Result()
	check("TTL", left > 0 && left <= 1000*time.Second, err, true)
	kept, err := r.Persist(ctx, "go:short").Result()
	check("PERSIST", kept, err, true)
	past, err := r.ExpireAt(ctx, "go:short", time.Unix(1, 0)).Result()
	check("EXPIREAT", past, err, true)
	n, err := r.Exists(ctx, "go:short").Result()
	check("EXISTS", n, err, 0)
}

func pipelines(r *redis.Client) {
	pipe := r.Pipeline()
	for i := range 1000 {
		pipe.Set(ctx, fmt.Sprint("go:p:", i), i, 0)
		pipe.Get(ctx, fmt.Sprint("go:p:", i))
	}
	replies, err := pipe.Exec(ctx)
	check("pipeline", len(replies), err, 2000)
	for i := range 1000 {
		got, err := replies[2*i+1].(*redis.StringCmd).Int()
		check("pipelined GET", got, err, i)
	}
}

func transactions(r *redis.Client) {
	var incremented *redis.IntCmd
	_, err := r.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "go:t", 1, 0)
		incremented = pipe.Incr(ctx, "go:t")
		return nil
	})
	check("MULTI", incremented.Val(), err, 2)

	for tries := 0; ; tries++ {
		err := r.Watch(ctx, func(tx *redis.Tx) error {
			value, err := tx.Get(ctx, "go:t").Int()
			if err != nil {
				return err
			}
			if tries == 0 {
				r.Set(ctx, "go:t", 21, 0)
			}
			_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.Set(ctx, "go:t", value*2, 0)
				return nil
			})
			return err
		}, "go:t")
		if errors.Is(err, redis.TxFailedErr) {
			continue
		}
		check("tries", tries, err, 1)
		break
	}
	get, err := r.Get(ctx, "go:t").Int()
	check("WATCH", get, err, 42)
}

func scanning(r *redis.Client) {
	for i := range 1000 {
		r.Set(ctx, fmt.Sprint("go:s:", i), i, 0)
	}
	found := map[string]bool{}
	keys := r.Scan(ctx, 0, "go:s:*", 50).Iterator()
	for keys.Next(ctx) {
		found[keys.Val()] = true
	}
	check("SCAN", len(found), keys.Err(), 1000)
}

func wrong(r *redis.Client) {
	err := r.Do(ctx, "SET", "only-a-key").Err()
	check("arity", strings.Contains(err.Error(), "wrong number of arguments for 'set' command"), nil, true)
}

func day(r *redis.Client) {
	pong, err := r.Ping(ctx).Result()
	check("PING", pong, err, "PONG")
	for _, work := range []func(*redis.Client){stringsOf, expiry, pipelines, transactions, scanning, wrong} {
		check("FLUSHDB", "OK", r.FlushDB(ctx).Err(), "OK")
		work(r)
	}
	r.FlushDB(ctx)
	check("close", true, r.Close(), true)
}

func main() {
	addr := os.Getenv("RESPGATE_ADDR")
	for _, options := range []redis.Options{{}, {Protocol: 2}, {Protocol: 3, DB: 3, ClientName: "day"}} {
		options.Addr = addr
		fmt.Printf("go-redis %s protocol %d\n", redis.Version(), options.Protocol)
		day(redis.NewClient(&options))
	}
}
