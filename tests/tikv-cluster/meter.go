package main

import "sync"

// meter counts requests by method. A timestamp stream counts each of its requests.
type meter struct {
	mu     sync.Mutex
	counts map[string]uint64
}

func newMeter() *meter {
	return &meter{counts: map[string]uint64{}}
}

func (m *meter) count(method string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[method]++
}

// read gives the counts so far, and starts again from zero if asked to.
func (m *meter) read(reset bool) map[string]uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := make(map[string]uint64, len(m.counts))
	for method, n := range m.counts {
		counts[method] = n
	}
	if reset {
		clear(m.counts)
	}
	return counts
}
