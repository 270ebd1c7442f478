package main

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/pingcap/goleveldb/leveldb"
	"github.com/pingcap/goleveldb/leveldb/opt"
)

const (
	logicalBits = 18
	logicalMax  = 1<<logicalBits - 1
	// reserve is how far ahead of the clock timestamps are reserved on disk, as PD does, so that few need a write.
	reserve = 3 * time.Second
)

var oracleKey = []byte("Oracle")

// oracle hands out timestamps: milliseconds in the upper bits, a counter in the lower. They grow over restarts and when the
// clock goes back, too.
type oracle struct {
	db *leveldb.DB

	mu       sync.Mutex
	physical int64
	logical  int64
	reserved int64
}

func newOracle(db *leveldb.DB) (*oracle, error) {
	o := &oracle{db: db}
	saved, err := db.Get(oracleKey, nil)
	if err == leveldb.ErrNotFound {
		return o, nil
	}
	if err != nil {
		return nil, err
	}
	o.physical = int64(binary.BigEndian.Uint64(saved))
	return o, nil
}

// take gives the last of count successive timestamps.
func (o *oracle) take(count int64) (physical, logical int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now().UnixMilli(); now > o.physical {
		o.physical, o.logical = now, 0
	}
	if o.logical+count > logicalMax {
		o.physical, o.logical = o.physical+1, 0
	}
	if o.physical >= o.reserved {
		o.reserved = o.physical + reserve.Milliseconds()
		if err := o.db.Put(oracleKey, binary.BigEndian.AppendUint64(nil, uint64(o.reserved)), &opt.WriteOptions{Sync: true}); err != nil {
			panic("cannot write: " + err.Error())
		}
	}
	o.logical += count
	return o.physical, o.logical
}

func (o *oracle) now() uint64 {
	physical, logical := o.take(1)
	return uint64(physical)<<logicalBits | uint64(logical)
}
