package mvcc

import "sync"

// waitGraph knows which transaction waits for which.
type waitGraph struct {
	mu *sync.Mutex
	// edges counts the requests of a transaction that wait for another one.
	edges map[uint64]map[uint64]int
}

func newWaitGraph() waitGraph {
	return waitGraph{mu: &sync.Mutex{}, edges: map[uint64]map[uint64]int{}}
}

// begin says no if waiting would close a circle; else the caller waits, and calls done afterwards.
func (g waitGraph) begin(waiter, holder uint64) (done func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reaches(holder, waiter) {
		return nil, false
	}
	if g.edges[waiter] == nil {
		g.edges[waiter] = map[uint64]int{}
	}
	g.edges[waiter][holder]++
	return func() { g.end(waiter, holder) }, true
}

func (g waitGraph) end(waiter, holder uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	holders := g.edges[waiter]
	if holders[holder]--; holders[holder] == 0 {
		delete(holders, holder)
	}
	if len(holders) == 0 {
		delete(g.edges, waiter)
	}
}

// reaches ends because the graph has no circle.
func (g waitGraph) reaches(from, to uint64) bool {
	if from == to {
		return true
	}
	for next := range g.edges[from] {
		if g.reaches(next, to) {
			return true
		}
	}
	return false
}
