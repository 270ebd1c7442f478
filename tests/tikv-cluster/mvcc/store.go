// Package mvcc holds the multi-version records and the locks of a cluster, and answers the transactional requests of TiKV
// as TiKV does. All stores of the cluster share one Store: what is tested is the protocol and its failures, not replication.
package mvcc

import (
	"sync"
	"sync/atomic"

	"github.com/google/btree"
	"github.com/pingcap/goleveldb/leveldb"
	"github.com/pingcap/goleveldb/leveldb/iterator"
	"github.com/pingcap/goleveldb/leveldb/util"
)

// Range is the keys from Start to before End; an empty End has no bound.
type Range struct {
	Start, End []byte
}

// Store keeps records in LevelDB and locks in LevelDB and memory. A request that changes something holds mu from its first
// read to its write; one that reads holds it only while it looks at locks and takes a snapshot.
type Store struct {
	db *leveldb.DB
	// now gives a timestamp that nobody else has or will have.
	now func() uint64

	mu    sync.RWMutex
	locks *btree.BTreeG[*Lock]
	// released is closed, and replaced, whenever locks go away.
	released chan struct{}
	waiting  waitGraph

	collecting sync.Mutex
	collected  atomic.Uint64
}

// NewStore reads the locks that db holds. The oracle must go on from where it was when they were written.
func NewStore(db *leveldb.DB, now func() uint64) (*Store, error) {
	s := &Store{db: db, now: now, locks: newLocks(), released: make(chan struct{}), waiting: newWaitGraph()}
	it := db.NewIterator(util.BytesPrefix([]byte{lockTag}), nil)
	defer it.Release()
	for it.Next() {
		lock, err := decodeLock(it.Value())
		if err != nil {
			return nil, err
		}
		s.locks.ReplaceOrInsert(lock)
	}
	return s, it.Error()
}

// records gives an iterator over what is committed now.
func (s *Store) records(r Range) iterator.Iterator {
	return s.db.NewIterator(recordRange(r), nil)
}

// changes collects what a request writes, so that all of it becomes visible and durable at once.
type changes struct {
	store    *Store
	batch    leveldb.Batch
	locked   []*Lock
	unlocked [][]byte
}

func (c *changes) lock(lock *Lock) {
	c.batch.Put(lockKey(lock.Key), lock.encode())
	c.locked = append(c.locked, lock)
}

func (c *changes) unlock(key []byte) {
	c.batch.Delete(lockKey(key))
	c.unlocked = append(c.unlocked, key)
}

func (c *changes) record(key []byte, ts uint64, r record) {
	c.batch.Put(recordKey(key, ts), r.encode())
}

// apply needs the store's lock. LevelDB's log is written but not synced: that survives the end of the process, not of the
// machine. A store that cannot write could only give wrong answers from then on, so it ends the program.
func (c *changes) apply() {
	if err := c.store.db.Write(&c.batch, nil); err != nil {
		panic("cannot write: " + err.Error())
	}
	for _, lock := range c.locked {
		c.store.locks.ReplaceOrInsert(lock)
	}
	for _, key := range c.unlocked {
		c.store.locks.Delete(lockAt(key))
	}
	if len(c.unlocked) > 0 {
		close(c.store.released)
		c.store.released = make(chan struct{})
	}
}
