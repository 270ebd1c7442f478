package main

import (
	"crypto/tls"
	"fmt"
	"path/filepath"

	"github.com/pingcap/goleveldb/leveldb"
	"github.com/pingcap/goleveldb/leveldb/filter"
	"github.com/pingcap/goleveldb/leveldb/opt"
	"github.com/pingcap/goleveldb/leveldb/storage"
	"github.com/pingcap/kvproto/pkg/keyspacepb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/pingcap/kvproto/pkg/tikvpb"
	"google.golang.org/grpc"

	"respgate.test/tikv-cluster/mvcc"
)

// options say what cluster to start. All but dir matter only to one that does not exist yet, or whose port is taken.
type options struct {
	// dir holds the data; empty keeps it in memory.
	dir       string
	pd        string
	stores    int
	splitKeys [][]byte
	// tlsDir is where clients find their certificates; empty for plain connections.
	tlsDir string
}

// cluster is a placement driver and some stores over one set of data.
type cluster struct {
	db       *leveldb.DB
	topology *topology
	data     *mvcc.Store
	faults   faults
	meter    *meter
	pd       *endpoint
	stores   map[uint64]*endpoint
}

// openCluster starts everything that the data directory knows of, at the same addresses if they are free.
func openCluster(o options) (*cluster, error) {
	db, err := openDB(o.dir)
	if err != nil {
		return nil, err
	}
	oracle, err := newOracle(db)
	if err != nil {
		return nil, err
	}
	topology, err := openTopology(db, o.stores, o.splitKeys)
	if err != nil {
		return nil, err
	}
	data, err := mvcc.NewStore(db, oracle.now)
	if err != nil {
		return nil, err
	}
	var security *tls.Config
	if o.tlsDir != "" {
		if security, err = makeTLS(o.tlsDir); err != nil {
			return nil, err
		}
	}
	c := &cluster{db: db, topology: topology, data: data, meter: newMeter(), stores: map[uint64]*endpoint{}}
	c.pd = &endpoint{tls: security, interceptor: c.unary(nil), register: func(server *grpc.Server) {
		service := &pdService{topology: topology, oracle: oracle, data: data, tso: c.tso, isSecure: security != nil}
		pdpb.RegisterPDServer(server, service)
		keyspacepb.RegisterKeyspaceServer(server, service)
	}}
	for _, s := range topology.snapshot().Stores {
		service := &storeService{id: s.ID, topology: topology, data: data}
		c.stores[s.ID] = &endpoint{tls: security, interceptor: c.unary(service), register: func(server *grpc.Server) {
			tikvpb.RegisterTikvServer(server, service)
		}}
	}
	return c, c.listen(o.pd)
}

func openDB(dir string) (*leveldb.DB, error) {
	options := &opt.Options{Filter: filter.NewBloomFilter(10), WriteBuffer: 32 << 20, BlockCacheCapacity: 64 << 20}
	if dir == "" {
		return leveldb.Open(storage.NewMemStorage(), options)
	}
	return leveldb.OpenFile(filepath.Join(dir, "data"), options)
}

// listen starts the stores first, so that PD never names one that does not answer, and keeps the addresses.
func (c *cluster) listen(pdAddr string) error {
	return c.topology.update(func(s *state) error {
		for i := range s.Stores {
			e := c.stores[s.Stores[i].ID]
			if err := e.listen(s.Stores[i].Addr, "127.0.0.1:0"); err != nil {
				return err
			}
			s.Stores[i].Addr = e.addr
		}
		before := s.PD
		if pdAddr != "127.0.0.1:0" {
			before = ""
		}
		s.PD = pdAddr
		for i := range s.Regions {
			if r := &s.Regions[i]; r.Leader == 0 {
				r.Leader = r.Peers[0].Store
			}
		}
		if err := c.pd.listen(before, pdAddr); err != nil {
			return err
		}
		s.PD = c.pd.addr
		return nil
	})
}

// stopStore lets the store's regions elect other leaders, unless elect is false: then they are out of reach.
func (c *cluster) stopStore(id uint64, elect bool) error {
	e, known := c.stores[id]
	if !known {
		return errNoStore
	}
	e.stop()
	return c.topology.setDown(id, true, elect)
}

func (c *cluster) startStore(id uint64) error {
	e, known := c.stores[id]
	if !known {
		return errNoStore
	}
	if err := e.start(); err != nil {
		return fmt.Errorf("store %d: %w", id, err)
	}
	return c.topology.setDown(id, false, true)
}

func (c *cluster) close() error {
	c.pd.stop()
	for _, e := range c.stores {
		e.stop()
	}
	return c.db.Close()
}
