package mvcc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/google/btree"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
)

// Lock is what the protocol tells of a lock, and the value that waits to be committed. It is never changed, only replaced.
type Lock struct {
	kvrpcpb.LockInfo
	value []byte
}

func newLocks() *btree.BTreeG[*Lock] {
	return btree.NewG(32, func(a, b *Lock) bool { return bytes.Compare(a.Key, b.Key) < 0 })
}

// lockAt is the lock to look for at a key.
func lockAt(key []byte) *Lock {
	return &Lock{LockInfo: kvrpcpb.LockInfo{Key: key}}
}

func (l *Lock) encode() []byte {
	info, err := l.LockInfo.Marshal()
	if err != nil {
		panic("a lock that cannot be encoded: " + err.Error())
	}
	out := binary.AppendUvarint(nil, uint64(len(info)))
	return append(append(out, info...), l.value...)
}

func decodeLock(data []byte) (*Lock, error) {
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return nil, errors.New("a lock is damaged")
	}
	lock := &Lock{value: append([]byte{}, data[n+int(size):]...)}
	return lock, lock.LockInfo.Unmarshal(data[n : n+int(size)])
}

// pessimistic says whether the lock only keeps others away, without anything prewritten.
func (l *Lock) pessimistic() bool {
	return l.LockType == kvrpcpb.Op_PessimisticLock
}

// blocks says whether a reader at ts must know first how the lock's transaction ends.
func (l *Lock) blocks(ts uint64, resolved []uint64) bool {
	if l.LockVersion > ts || l.MinCommitTs > ts || slices.Contains(resolved, l.LockVersion) {
		return false
	}
	// Who wants the last version need not wait for a primary: as long as it is locked, nothing has been committed.
	if ts == math.MaxUint64 && bytes.Equal(l.Key, l.PrimaryLock) && !l.UseAsyncCommit {
		return false
	}
	return l.LockType == kvrpcpb.Op_Put || l.LockType == kvrpcpb.Op_Del
}

// with gives a changed copy.
func (l *Lock) with(change func(*Lock)) *Lock {
	changed := *l
	change(&changed)
	return &changed
}

// info gives a copy that may leave the store.
func (l *Lock) info() *kvrpcpb.LockInfo {
	info := l.LockInfo
	return &info
}

func (l *Lock) keyError() *kvrpcpb.KeyError {
	return &kvrpcpb.KeyError{Locked: l.info()}
}

func (s *Store) lockOf(key []byte) (*Lock, bool) {
	return s.locks.Get(lockAt(key))
}

// ownLock gives the key's lock if the transaction of startTS holds it.
func (s *Store) ownLock(key []byte, startTS uint64) (*Lock, bool) {
	lock, ok := s.lockOf(key)
	return lock, ok && lock.LockVersion == startTS
}

// locksIn gives the locks of a range that are wanted, in order.
func (s *Store) locksIn(r Range, want func(*Lock) bool) []*Lock {
	var out []*Lock
	s.locks.AscendGreaterOrEqual(lockAt(r.Start), func(lock *Lock) bool {
		if len(r.End) > 0 && bytes.Compare(lock.Key, r.End) >= 0 {
			return false
		}
		if want(lock) {
			out = append(out, lock)
		}
		return true
	})
	return out
}
