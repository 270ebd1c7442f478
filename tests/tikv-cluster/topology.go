package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pingcap/goleveldb/leveldb"
	"github.com/pingcap/goleveldb/leveldb/opt"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/tikv/client-go/v2/util/codec"
)

// clusterID is what clients compare to find out whether they are still at the same cluster.
const clusterID = 7_000_000_000_000_000_001

// replicas is how many stores hold a region, if there are that many.
const replicas = 3

var (
	topologyKey = []byte("Topology")

	errNoRegion = errors.New("no such region")
	errNoStore  = errors.New("no such store")
)

// topology is what PD knows: which regions there are, and which stores hold and lead them. All of it is on disk before
// anybody is told, so that ids and epochs never go back. Which stores run is not: a restart starts all.
type topology struct {
	db *leveldb.DB

	mu    sync.RWMutex
	state state
	down  map[uint64]bool
}

type state struct {
	LastID    uint64
	SafePoint uint64
	PD        string
	Stores    []store
	// Regions are in the order of their keys and leave no gap.
	Regions   []region
	Keyspaces map[string]uint32
}

type store struct {
	ID   uint64
	Addr string
}

// region has its bounds as TiKV tells them: encoded, so that they may lie between any two versions of any two keys.
type region struct {
	ID      uint64
	Start   []byte
	End     []byte
	Version uint64
	ConfVer uint64
	Peers   []peer
	// Leader is the id of a store, or 0 while most peers are down.
	Leader uint64
}

type peer struct {
	ID    uint64
	Store uint64
}

// openTopology reads the topology, or makes one with the given stores and split keys.
func openTopology(db *leveldb.DB, stores int, splitKeys [][]byte) (*topology, error) {
	t := &topology{db: db, down: map[uint64]bool{}}
	saved, err := db.Get(topologyKey, nil)
	if err == nil {
		return t, json.Unmarshal(saved, &t.state)
	}
	if err != leveldb.ErrNotFound {
		return nil, err
	}
	t.state = state{Keyspaces: map[string]uint32{}}
	for range stores {
		t.state.Stores = append(t.state.Stores, store{ID: t.id()})
	}
	first := region{ID: t.id(), Version: 1, ConfVer: 1}
	for _, s := range t.state.Stores[:min(replicas, stores)] {
		first.Peers = append(first.Peers, peer{ID: t.id(), Store: s.ID})
	}
	first.Leader = first.Peers[0].Store
	t.state.Regions = []region{first}
	for _, key := range splitKeys {
		if err := t.splitAt(codec.EncodeBytes(nil, key)); err != nil {
			return nil, err
		}
	}
	t.spread()
	t.save()
	return t, nil
}

func (t *topology) id() uint64 {
	t.state.LastID++
	return t.state.LastID
}

// spread gives peers and leaders of new regions to all stores in turn.
func (t *topology) spread() {
	stores := t.state.Stores
	for i := range t.state.Regions {
		r := &t.state.Regions[i]
		for j := range r.Peers {
			r.Peers[j].Store = stores[(i+j)%len(stores)].ID
		}
		r.Leader = r.Peers[0].Store
	}
}

// save needs the write lock.
func (t *topology) save() {
	data, err := json.Marshal(t.state)
	if err == nil {
		err = t.db.Put(topologyKey, data, &opt.WriteOptions{Sync: true})
	}
	if err != nil {
		panic("cannot write: " + err.Error())
	}
}

// update changes the state and keeps what it has become.
func (t *topology) update(change func(*state) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := change(&t.state); err != nil {
		return err
	}
	t.save()
	return nil
}

// split cuts the region that holds a user's key before that key.
func (t *topology) split(key []byte) error {
	return t.update(func(*state) error { return t.splitAt(codec.EncodeBytes(nil, key)) })
}

// splitAt gives the left part to a new region, as TiKV does by default.
func (t *topology) splitAt(key []byte) error {
	i := t.index(key)
	right := &t.state.Regions[i]
	if bytes.Equal(right.Start, key) {
		return errors.New("a region starts there already")
	}
	right.Version++
	left := *right
	left.ID, left.End, left.Peers = t.id(), key, nil
	for _, p := range right.Peers {
		left.Peers = append(left.Peers, peer{ID: t.id(), Store: p.Store})
	}
	right.Start = key
	t.state.Regions = slices.Insert(t.state.Regions, i, left)
	return nil
}

// merge gives a region's range to its right neighbour.
func (t *topology) merge(id uint64) error {
	return t.update(func(s *state) error {
		i := slices.IndexFunc(s.Regions, func(r region) bool { return r.ID == id })
		if i < 0 {
			return errNoRegion
		}
		if i+1 == len(s.Regions) {
			return errors.New("the last region has no right neighbour")
		}
		source, target := s.Regions[i], &s.Regions[i+1]
		target.Start = source.Start
		target.Version = max(source.Version, target.Version) + 1
		s.Regions = slices.Delete(s.Regions, i, i+1)
		return nil
	})
}

// transfer moves a region's leader to a store that holds it; store 0 means the next one that runs.
func (t *topology) transfer(id, storeID uint64) error {
	return t.update(func(s *state) error {
		i := slices.IndexFunc(s.Regions, func(r region) bool { return r.ID == id })
		if i < 0 {
			return errNoRegion
		}
		r := &s.Regions[i]
		at := slices.IndexFunc(r.Peers, func(p peer) bool { return p.Store == r.Leader })
		for j := range r.Peers {
			p := r.Peers[(at+1+j)%len(r.Peers)]
			if (storeID == 0 || p.Store == storeID) && !t.down[p.Store] {
				r.Leader = p.Store
				return nil
			}
		}
		return fmt.Errorf("store %d does not hold region %d, or does not run", storeID, id)
	})
}

// setDown notes that a store stops or starts. Regions elect another leader, or lose theirs with most of their peers; with
// elect false they keep one that does not answer.
func (t *topology) setDown(storeID uint64, down, elect bool) error {
	return t.update(func(s *state) error {
		t.down[storeID] = down
		for i := range s.Regions {
			if r := &s.Regions[i]; elect && (r.Leader == 0 || t.down[r.Leader]) {
				r.Leader = t.elect(r)
			}
		}
		return nil
	})
}

func (t *topology) elect(r *region) uint64 {
	var up []uint64
	for _, p := range r.Peers {
		if !t.down[p.Store] {
			up = append(up, p.Store)
		}
	}
	if 2*len(up) <= len(r.Peers) {
		return 0
	}
	return up[int(r.ID)%len(up)]
}

// snapshot gives a copy that nobody changes.
func (t *topology) snapshot() state {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.state
	s.Regions = slices.Clone(s.Regions)
	s.Stores = slices.Clone(s.Stores)
	return s
}

// index gives the place of the region that holds an encoded key.
func (t *topology) index(key []byte) int {
	i, exact := slices.BinarySearchFunc(t.state.Regions, key, func(r region, key []byte) int {
		return bytes.Compare(r.Start, key)
	})
	if exact {
		return i
	}
	return i - 1
}

// find gives the region that holds an encoded key.
func (t *topology) find(key []byte) region {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.state.Regions[t.index(key)]
}

func (t *topology) byID(id uint64) (region, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i := slices.IndexFunc(t.state.Regions, func(r region) bool { return r.ID == id })
	if i < 0 {
		return region{}, false
	}
	return t.state.Regions[i], true
}

func (r region) contains(encoded []byte) bool {
	return bytes.Compare(r.Start, encoded) <= 0 && (len(r.End) == 0 || bytes.Compare(encoded, r.End) < 0)
}

func (r region) epoch() *metapb.RegionEpoch {
	return &metapb.RegionEpoch{ConfVer: r.ConfVer, Version: r.Version}
}

func (r region) meta() *metapb.Region {
	m := &metapb.Region{Id: r.ID, StartKey: r.Start, EndKey: r.End, RegionEpoch: r.epoch()}
	for _, p := range r.Peers {
		m.Peers = append(m.Peers, &metapb.Peer{Id: p.ID, StoreId: p.Store})
	}
	return m
}

func (r region) leader() *metapb.Peer {
	return r.peerOn(r.Leader)
}

// peerOn gives nothing if the store does not hold the region.
func (r region) peerOn(storeID uint64) *metapb.Peer {
	for _, p := range r.Peers {
		if p.Store == storeID {
			return &metapb.Peer{Id: p.ID, StoreId: p.Store}
		}
	}
	return nil
}
