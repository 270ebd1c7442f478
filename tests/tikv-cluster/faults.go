package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/errorpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fault is a rule by which requests go wrong.
type fault struct {
	ID uint64 `json:"id"`
	// Method is a pattern such as `KvCommit`, `Kv*` or `Tso`; empty means all.
	Method string `json:"method"`
	// Store is the id of a store, 0 for any. PD counts as store 0, and is meant only by its methods' names.
	Store uint64 `json:"store"`
	// Kind is `before` (the request fails and is not done), `after` (it is done, and its answer is lost), `busy`
	// (ServerIsBusy), `leaderless` (NotLeader, without saying who is), `hang` (no answer before the caller gives up) or
	// `delay` alone.
	Kind string `json:"kind"`
	// DelayMS is waited first, by any kind.
	DelayMS int64 `json:"delay_ms"`
	// Chance is between 0 and 1; 0 means always.
	Chance float64 `json:"chance"`
	// Count is how many requests it may still hit; 0 means no end.
	Count int64 `json:"count"`
	// Hits is how many it has hit.
	Hits int64 `json:"hits"`
}

var faultKinds = []string{"before", "after", "busy", "leaderless", "hang", "delay"}

// faults holds the rules; the first one that fits a request is taken.
type faults struct {
	mu     sync.Mutex
	lastID uint64
	rules  []*fault
}

func (f *faults) add(rule fault) (uint64, error) {
	if !slices.Contains(faultKinds, rule.Kind) {
		return 0, fmt.Errorf("kind is none of %v", faultKinds)
	}
	if _, err := path.Match(rule.Method, ""); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastID++
	rule.ID, rule.Hits = f.lastID, 0
	f.rules = append(f.rules, &rule)
	return rule.ID, nil
}

// remove takes one rule away, or all for id 0.
func (f *faults) remove(id uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = slices.DeleteFunc(f.rules, func(r *fault) bool { return id == 0 || r.ID == id })
}

func (f *faults) list() []fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []fault{}
	for _, r := range f.rules {
		out = append(out, *r)
	}
	return out
}

// take finds the rule for a request and counts the hit.
func (f *faults) take(store uint64, method string) (fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		if r.Store != 0 && r.Store != store || r.Count > 0 && r.Hits >= r.Count || r.Chance > 0 && rand.Float64() >= r.Chance {
			continue
		}
		if fits, _ := path.Match(r.Method, method); fits || r.Method == "" {
			r.Hits++
			return *r, true
		}
	}
	return fault{}, false
}

// strike does what comes before a request. It gives a region error instead of an error where the rule wants one.
func (f fault) strike(ctx context.Context) (*errorpb.Error, error) {
	if err := sleep(ctx, time.Duration(f.DelayMS)*time.Millisecond); err != nil {
		return nil, err
	}
	switch f.Kind {
	case "before":
		return nil, status.Error(codes.Unavailable, "fault: refused")
	case "hang":
		<-ctx.Done()
		return nil, ctx.Err()
	case "busy":
		return &errorpb.Error{Message: "server is busy", ServerIsBusy: &errorpb.ServerIsBusy{Reason: "fault"}}, nil
	case "leaderless":
		return &errorpb.Error{Message: "no leader", NotLeader: &errorpb.NotLeader{}}, nil
	default:
		return nil, nil
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errLost = status.Error(codes.Unavailable, "fault: the answer is lost")

// unary puts counts, faults and the store's checks around every request. There is no store around PD.
func (c *cluster) unary(t *storeService) grpc.UnaryServerInterceptor {
	var storeID uint64
	if t != nil {
		storeID = t.id
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		method := path.Base(info.FullMethod)
		c.meter.count(method)
		rule, hit := c.faults.take(storeID, method)
		if hit {
			regionErr, err := rule.strike(ctx)
			if err != nil {
				return nil, err
			}
			if resp, ok := withRegionError(info, method, regionErr); ok {
				return resp, nil
			}
		}
		if forRegion, ok := req.(regionRequest); ok && t != nil && method != "UnsafeDestroyRange" {
			inRegion, regionErr := t.check(ctx, forRegion)
			if resp, ok := withRegionError(info, method, regionErr); ok {
				return resp, nil
			}
			ctx = inRegion
		}
		resp, err := handler(ctx, req)
		if hit && rule.Kind == "after" {
			return nil, errLost
		}
		return resp, err
	}
}

// withRegionError makes the method's response around a region error, if there is one and the response has room for it.
func withRegionError(info *grpc.UnaryServerInfo, method string, regionErr *errorpb.Error) (any, bool) {
	if regionErr == nil {
		return nil, false
	}
	m, ok := reflect.TypeOf(info.Server).MethodByName(method)
	if !ok {
		return nil, false
	}
	resp := reflect.New(m.Type.Out(0).Elem())
	field := resp.Elem().FieldByName("RegionError")
	if !field.IsValid() {
		return nil, false
	}
	field.Set(reflect.ValueOf(regionErr))
	return resp.Interface(), true
}

// tso counts a request of a timestamp stream and lets it go wrong.
func (c *cluster) tso(ctx context.Context) error {
	c.meter.count("Tso")
	rule, hit := c.faults.take(0, "Tso")
	if !hit {
		return nil
	}
	if _, err := rule.strike(ctx); err != nil {
		return err
	}
	if rule.Kind == "after" {
		return errLost
	}
	return nil
}
