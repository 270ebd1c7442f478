package main

import (
	"slices"

	"github.com/redis/go-redis/v9"
)

func breakable(how string) bool {
	return slices.Contains([]string{"lost", "twice", "stale"}, how)
}

// sendBroken does to a command what a broken gateway might: a write that is answered and lost, one that is done
// twice, or a read of what the client has read before.
func (c *client) sendBroken(conn *redis.Client, args []string) (string, error) {
	switch {
	case c.broken == "lost" && args[0] == "SET" && len(args) == 3:
		return "OK", nil
	case c.broken == "twice" && (args[0] == "LPUSH" || args[0] == "INCR"):
		if _, err := send(conn, args); err != nil {
			return "", err
		}
		return send(conn, args)
	case c.broken == "stale" && args[0] == "GET":
		if old, known := c.stale[args[1]]; known {
			return old, nil
		}
		return send(conn, args)
	default:
		return send(conn, args)
	}
}
