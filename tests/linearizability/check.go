package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// result is what the check of a key has found.
type result struct {
	*history
	verdict porcupine.CheckResult
	model   porcupine.Model
	info    porcupine.LinearizationInfo
}

func (k kind) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return absent },
		Step: func(state, input, output any) (bool, any) {
			reply, next := k.apply(state.(string), input.([]string))
			seen := output.(outcome)
			return seen.unknown || seen.reply == reply, next
		},
		DescribeOperation: func(input, output any) string {
			seen := output.(outcome)
			if seen.unknown {
				seen.reply = "?"
			}
			return fmt.Sprintf("%s → %s", strings.Join(input.([]string), " "), seen.reply)
		},
		DescribeState: func(state any) string { return "[" + state.(string) + "]" },
	}
}

// checkAll checks the keys, which are independent, side by side.
func checkAll(histories []*history, timeout time.Duration) []result {
	results := make([]result, len(histories))
	next := make(chan int)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range next {
				results[i] = check(histories[i], timeout)
			}
		}()
	}
	for i := range histories {
		next <- i
	}
	close(next)
	group.Wait()
	return results
}

// narrowings are parts of an operation's time, counted from its reply, in which to look for its effect first.
var narrowings = []float64{0.05, 0.2, 0.5, 0.8}

// check searches an order. An order that is found although the operations are given less time than they had is an order of
// the history itself, too, and with fewer operations at once it is found sooner; that none is found says nothing.
//
// That there is no order shows after a search through all of them only. So a history that resists is looked at from its
// beginning: where a part of it has no order, the whole has none.
func check(h *history, timeout time.Duration) result {
	r := result{history: h, model: h.kind.model(), verdict: porcupine.Ok}
	for _, part := range narrowings {
		if porcupine.CheckOperationsTimeout(r.model, narrowed(h.operations, part), timeout/10) == porcupine.Ok {
			return r
		}
	}
	for count := prefixStep; count < len(h.operations); count += prefixStep {
		beginning := prefix(h.operations, count)
		if porcupine.CheckOperationsTimeout(r.model, beginning, timeout/10) == porcupine.Illegal {
			short := *h
			short.operations = beginning
			r.history = &short
			break
		}
	}
	r.verdict, r.info = porcupine.CheckOperationsVerbose(r.model, r.operations, timeout)
	return r
}

const prefixStep = 20

// prefix gives the history until so many operations were over. Those that were not, yet, may have had any outcome.
func prefix(operations []porcupine.Operation, count int) []porcupine.Operation {
	sorted := slices.Clone(operations)
	slices.SortFunc(sorted, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	end := sorted[count-1].Return
	var out []porcupine.Operation
	for _, op := range sorted {
		if op.Return > end {
			op.Output, op.Return = outcome{unknown: true}, forever
		}
		if op.Call < end {
			out = append(out, op)
		}
	}
	return out
}

// narrowed lets operations begin later. One of unknown outcome keeps all of its time.
func narrowed(operations []porcupine.Operation, part float64) []porcupine.Operation {
	out := slices.Clone(operations)
	for i := range out {
		if op := &out[i]; op.Return != forever {
			op.Call = op.Return - int64(part*float64(op.Return-op.Call))
		}
	}
	return out
}

// summarise prints what was found, draws the violations, and gives the exit code.
func summarise(results []result, report string) int {
	type sums struct{ keys, operations, unknown, failed, violated, undecided int }
	byKind := map[string]*sums{}
	code := 0
	for _, r := range results {
		s := byKind[r.kind.name]
		if s == nil {
			s = &sums{}
			byKind[r.kind.name] = s
		}
		s.keys++
		s.operations += len(r.operations)
		s.unknown += r.unknown
		s.failed += r.failed
		switch r.verdict {
		case porcupine.Illegal:
			s.violated++
			code = exitViolated
			fmt.Printf("VIOLATION at %s: no order explains its %d commands%s\n", r.key, len(r.operations), r.draw(report))
			r.print()
		case porcupine.Unknown:
			s.undecided++
			if code == 0 {
				code = exitUndecided
			}
			fmt.Printf("UNDECIDED at %s: no order found in time for its %d commands, %d of unknown outcome\n", r.key, len(r.operations), r.unknown)
			r.print()
		}
	}
	fmt.Printf("%-10s %6s %10s %9s %9s %10s %10s\n", "kind", "keys", "commands", "unknown", "not done", "violations", "undecided")
	for _, k := range kinds {
		if s := byKind[k.name]; s != nil {
			if s.operations == s.unknown && code == 0 {
				code = exitUndecided
			}
			fmt.Printf("%-10s %6d %10d %9d %9d %10d %10d\n", k.name, s.keys, s.operations, s.unknown, s.failed, s.violated, s.undecided)
		}
	}
	return code
}

// print lists the commands by when they were sent: client, milliseconds of request and reply, command and reply.
func (r result) print() {
	operations := slices.Clone(r.operations)
	slices.SortFunc(operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, op := range operations {
		until := "?"
		if op.Return != forever {
			until = milliseconds(op.Return)
		}
		text := strings.ReplaceAll(r.model.DescribeOperation(op.Input, op.Output), r.key, "key")
		fmt.Printf("  c%-3d %10s to %10s  %s\n", op.ClientId, milliseconds(op.Call), until, text)
	}
}

func milliseconds(nanoseconds int64) string {
	return fmt.Sprintf("%.3f", float64(nanoseconds)/1e6)
}

// draw writes a page that shows how far each order gets, and says where it is.
func (r result) draw(dir string) string {
	if dir == "" {
		return " (--report draws them)"
	}
	path := filepath.Join(dir, strings.ReplaceAll(r.key, ":", "-")+".html")
	if err := porcupine.VisualizePath(r.model, r.info, path); err != nil {
		return ": " + err.Error()
	}
	return ": " + path
}
