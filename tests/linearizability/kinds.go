package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// kind is a way to use a key, with a model of what commands do to it. The model's state is a string, so that equal states
// are equal strings. About half of the commands read all of the state: else too many orders explain the others, and whether
// a write of unknown outcome was done shows too late for the search.
type kind struct {
	name string
	// next chooses a command; unique is a value that no other command has.
	next func(r *rand.Rand, key, unique string) []string
	// apply gives the reply to a command, as text, and the next state. It may look at a command's words, but not its keys,
	// except at the suffixes of two keys.
	apply func(state string, args []string) (reply, next string)
}

// absent is the state of a key that is not there; values never look like it.
const absent = ""

var kinds = []kind{
	{"register", registerNext, registerApply},
	{"counter", counterNext, counterApply},
	{"lock", lockNext, registerApply},
	{"queue", queueNext, queueApply},
	{"zqueue", zqueueNext, zqueueApply},
	{"hash", hashNext, hashApply},
	{"renamed", renamedNext, renamedApply},
	{"expiring", expiringNext, expiringApply},
}

func selectKinds(names string) ([]kind, error) {
	if names == "" {
		return kinds, nil
	}
	var out []kind
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no kind %q", name)
		}
		out = append(out, kinds[i])
	}
	return out, nil
}

func choose(r *rand.Rand, commands ...[]string) []string {
	return commands[r.IntN(len(commands))]
}

func orNil(value string) string {
	if value == absent {
		return "nil"
	}
	return value
}

func oneIf(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}

func registerNext(r *rand.Rand, key, unique string) []string {
	return choose(r,
		[]string{"GET", key}, []string{"GET", key}, []string{"GET", key}, []string{"SET", key, unique},
		[]string{"GETSET", key, unique}, []string{"GETSET", key, unique}, []string{"GETDEL", key})
}

func lockNext(r *rand.Rand, key, unique string) []string {
	return choose(r,
		[]string{"SET", key, unique, "NX"}, []string{"SETNX", key, unique}, []string{"DEL", key}, []string{"GET", key})
}

func registerApply(state string, args []string) (string, string) {
	switch args[0] {
	case "GET":
		return orNil(state), state
	case "SETNX":
		if state != absent {
			return "0", state
		}
		return "1", args[2]
	case "SET":
		if len(args) == 4 && state != absent {
			return "nil", state
		}
		return "OK", args[2]
	case "GETSET":
		return orNil(state), args[2]
	case "GETDEL":
		return orNil(state), absent
	default: // DEL
		return oneIf(state != absent), absent
	}
}

func counterNext(r *rand.Rand, key, _ string) []string {
	return choose(r, []string{"INCR", key}, []string{"INCR", key}, []string{"DECR", key}, []string{"INCRBY", key, "10"}, []string{"GET", key})
}

func counterApply(state string, args []string) (string, string) {
	n, _ := strconv.Atoi(state)
	switch args[0] {
	case "GET":
		return orNil(state), state
	case "INCR":
		n++
	case "DECR":
		n--
	default: // INCRBY
		n += 10
	}
	state = strconv.Itoa(n)
	return state, state
}

func queueNext(r *rand.Rand, key, unique string) []string {
	all := []string{"LRANGE", key, "0", "-1"}
	return choose(r,
		[]string{"LPUSH", key, unique}, []string{"RPUSH", key, unique}, []string{"RPOP", key}, []string{"RPOP", key},
		[]string{"LPOP", key}, []string{"LMOVE", key, key, "LEFT", "RIGHT"}, []string{"LLEN", key},
		all, all, all, all, all, all)
}

func fields(state string) []string {
	return strings.Fields(state)
}

func queueApply(state string, args []string) (string, string) {
	items := fields(state)
	reply := "nil"
	switch args[0] {
	case "LLEN":
		return strconv.Itoa(len(items)), state
	case "LRANGE":
		return "[" + state + "]", state
	case "LPUSH":
		items = append([]string{args[2]}, items...)
		reply = strconv.Itoa(len(items))
	case "RPUSH":
		items = append(items, args[2])
		reply = strconv.Itoa(len(items))
	case "LPOP":
		if len(items) > 0 {
			reply, items = items[0], items[1:]
		}
	case "RPOP":
		if last := len(items) - 1; last >= 0 {
			reply, items = items[last], items[:last]
		}
	default: // LMOVE
		if len(items) > 0 {
			reply = items[0]
			items = append(items[1:], reply)
		}
	}
	return reply, strings.Join(items, " ")
}

// Few members, so that adding often means moving.
func zqueueNext(r *rand.Rand, key, _ string) []string {
	score, member := strconv.Itoa(r.IntN(100)), "m"+strconv.Itoa(r.IntN(12))
	all := []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}
	return choose(r,
		[]string{"ZADD", key, score, member}, []string{"ZADD", key, score, member}, []string{"ZINCRBY", key, score, member},
		[]string{"ZPOPMIN", key}, []string{"ZPOPMIN", key}, []string{"ZREM", key, member}, []string{"ZCARD", key},
		all, all, all, all, all, all)
}

func zqueueApply(state string, args []string) (string, string) {
	words := fields(state)
	scores := map[string]int{}
	for i := 0; i+1 < len(words); i += 2 {
		scores[words[i]], _ = strconv.Atoi(words[i+1])
	}
	reply := ""
	switch args[0] {
	case "ZCARD":
		return strconv.Itoa(len(scores)), state
	case "ZRANGE":
		return "[" + state + "]", state
	case "ZPOPMIN":
		if len(words) == 0 {
			return "[]", state
		}
		return "[" + words[0] + " " + words[1] + "]", strings.Join(words[2:], " ")
	case "ZREM":
		_, there := scores[args[2]]
		delete(scores, args[2])
		reply = oneIf(there)
	case "ZADD":
		_, there := scores[args[3]]
		scores[args[3]], _ = strconv.Atoi(args[2])
		reply = oneIf(!there)
	default: // ZINCRBY
		by, _ := strconv.Atoi(args[2])
		scores[args[3]] += by
		reply = strconv.Itoa(scores[args[3]])
	}
	members := make([]string, 0, len(scores))
	for member := range scores {
		members = append(members, member)
	}
	sort.Slice(members, func(i, j int) bool {
		a, b := members[i], members[j]
		return scores[a] < scores[b] || scores[a] == scores[b] && a < b
	})
	for i, member := range members {
		members[i] = member + " " + strconv.Itoa(scores[member])
	}
	return reply, strings.Join(members, " ")
}

// Few fields, so that the hash becomes empty, and is not there, often.
func hashNext(r *rand.Rand, key, unique string) []string {
	field := "f" + strconv.Itoa(r.IntN(3))
	return choose(r,
		[]string{"HSET", key, field, unique}, []string{"HSETNX", key, field, unique}, []string{"HDEL", key, field},
		[]string{"HDEL", key, "f0", "f1", "f2"}, []string{"HGET", key, field}, []string{"HLEN", key}, []string{"EXISTS", key},
		[]string{"HGETALL", key}, []string{"DEL", key})
}

func hashApply(state string, args []string) (string, string) {
	words := fields(state)
	values := map[string]string{}
	for i := 0; i+1 < len(words); i += 2 {
		values[words[i]] = words[i+1]
	}
	reply := ""
	switch args[0] {
	case "HLEN":
		return strconv.Itoa(len(values)), state
	case "EXISTS":
		return oneIf(state != absent), state
	case "HGETALL":
		return "[" + state + "]", state
	case "HGET":
		return orNil(values[args[2]]), state
	case "DEL":
		return oneIf(state != absent), absent
	case "HDEL":
		removed := 0
		for _, field := range args[2:] {
			if _, there := values[field]; there {
				removed++
				delete(values, field)
			}
		}
		reply = strconv.Itoa(removed)
	default: // HSET, HSETNX
		_, there := values[args[2]]
		reply = oneIf(!there)
		if !there || args[0] == "HSET" {
			values[args[2]] = args[3]
		}
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	for i, name := range names {
		names[i] = name + " " + values[name]
	}
	return reply, strings.Join(names, " ")
}

// Two keys are one register each and change together. They are in slots of their own, so that gateways commit in two phases.
func renamedNext(r *rand.Rand, key, unique string) []string {
	a, b := key+":a", key+":b"
	return choose(r,
		[]string{"SET", a, unique}, []string{"MSET", a, unique, b, unique}, []string{"DEL", b},
		[]string{"RENAME", a, b}, []string{"RENAME", b, a}, []string{"RENAMENX", a, b},
		[]string{"COPY", a, b, "REPLACE"}, []string{"COPY", b, a, "REPLACE"},
		[]string{"MGET", a, b}, []string{"MGET", a, b}, []string{"MGET", a, b}, []string{"MGET", a, b})
}

func renamedApply(state string, args []string) (string, string) {
	values := map[string]string{}
	for i, word := range fields(state) {
		values[[]string{"a", "b"}[i]] = strings.TrimPrefix(word, "=")
	}
	key := args[1][len(args[1])-1:]
	reply := "OK"
	switch args[0] {
	case "MGET":
		return "[" + orNil(values["a"]) + " " + orNil(values["b"]) + "]", state
	case "SET":
		values[key] = args[2]
	case "MSET":
		values["a"], values["b"] = args[2], args[4]
	case "DEL":
		reply = oneIf(values[key] != absent)
		values[key] = absent
	case "COPY":
		if values[key] == absent {
			return "0", state
		}
		reply = "1"
		values[args[2][len(args[2])-1:]] = values[key]
	default: // RENAME, RENAMENX
		to := args[2][len(args[2])-1:]
		if values[key] == absent {
			return "ERR no such key", state
		}
		if args[0] == "RENAMENX" {
			if values[to] != absent {
				return "0", state
			}
			reply = "1"
		}
		values[to], values[key] = values[key], absent
	}
	return reply, "=" + values["a"] + " =" + values["b"]
}

// Either a key has no expiry, or one that never comes, or it expires at once.
func expiringNext(r *rand.Rand, key, unique string) []string {
	return choose(r,
		[]string{"SET", key, unique}, []string{"SET", key, unique, "KEEPTTL"}, []string{"SET", key, unique, "EX", "100000"},
		[]string{"EXPIRE", key, "100000"}, []string{"EXPIRE", key, "-1"}, []string{"PERSIST", key},
		[]string{"TTL", key}, []string{"TTL", key}, []string{"GET", key}, []string{"GET", key}, []string{"GET", key}, []string{"GET", key})
}

func expiringApply(state string, args []string) (string, string) {
	value, expiry, _ := strings.Cut(state, " ")
	switch args[0] {
	case "GET":
		return orNil(value), state
	case "TTL":
		switch {
		case state == absent:
			return "-2", state
		case expiry == "":
			return "-1", state
		default:
			return "later", state
		}
	case "SET":
		if len(args) == 5 {
			return "OK", args[2] + " later"
		}
		if len(args) == 4 && expiry != "" {
			return "OK", args[2] + " later"
		}
		return "OK", args[2]
	}
	if state == absent || args[0] == "PERSIST" && expiry == "" {
		return "0", state
	}
	switch {
	case args[0] == "PERSIST":
		return "1", value
	case args[2] == "-1":
		return "1", absent
	default:
		return "1", value + " later"
	}
}
