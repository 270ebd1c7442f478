package mvcc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"github.com/pingcap/goleveldb/leveldb/iterator"
	"github.com/pingcap/goleveldb/leveldb/util"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/tikv/client-go/v2/util/codec"
)

// Tags start the keys in LevelDB. Lower-case letters are this package's; the rest is free for others.
const (
	lockTag   = 'l'
	recordTag = 'w'
)

// kind is what a transaction did to a key. The numbers are stored.
type kind byte

const (
	put      kind = 1
	del      kind = 2
	lockOnly kind = 3
	rollback kind = 4
)

func kindOf(op kvrpcpb.Op) kind {
	switch op {
	case kvrpcpb.Op_Put, kvrpcpb.Op_Insert:
		return put
	case kvrpcpb.Op_Del:
		return del
	default:
		return lockOnly
	}
}

// record is the end of a transaction at a key: stored under the key and the commit timestamp, or, rolled back, the start
// timestamp.
type record struct {
	kind    kind
	startTS uint64
	value   []byte
}

func (r record) encode() []byte {
	out := make([]byte, 9, 9+len(r.value))
	out[0] = byte(r.kind)
	binary.BigEndian.PutUint64(out[1:], r.startTS)
	return append(out, r.value...)
}

// decodeRecord copies the value: what it is given belongs to an iterator.
func decodeRecord(data []byte) record {
	return record{
		kind:    kind(data[0]),
		startTS: binary.BigEndian.Uint64(data[1:9]),
		value:   append([]byte{}, data[9:]...),
	}
}

func lockKey(key []byte) []byte {
	return append([]byte{lockTag}, key...)
}

func recordPrefix(key []byte) []byte {
	return codec.EncodeBytes([]byte{recordTag}, key)
}

// recordKey puts newer versions of a key first.
func recordKey(key []byte, ts uint64) []byte {
	return codec.EncodeUintDesc(recordPrefix(key), ts)
}

func recordRange(r Range) *util.Range {
	limit := []byte{recordTag + 1}
	if len(r.End) > 0 {
		limit = recordPrefix(r.End)
	}
	return &util.Range{Start: recordPrefix(r.Start), Limit: limit}
}

var errKey = errors.New("a record's key is damaged")

// splitRecordKey gives the user's key and the timestamp.
func splitRecordKey(data []byte) ([]byte, uint64, error) {
	if len(data) == 0 || data[0] != recordTag {
		return nil, 0, errKey
	}
	rest, key, err := codec.DecodeBytes(data[1:], nil)
	if err != nil {
		return nil, 0, err
	}
	_, ts, err := codec.DecodeUintDesc(rest)
	return key, ts, err
}

// timestamp gives only the timestamp of a record's key.
func timestamp(data []byte) uint64 {
	return ^binary.BigEndian.Uint64(data[len(data)-8:])
}

// versions walks the records of one key from the given timestamp to older ones until visit says stop. It may leave the
// iterator at a record of another key.
func versions(it iterator.Iterator, key []byte, from uint64, visit func(ts uint64, r record) bool) {
	prefix := recordPrefix(key)
	for ok := it.Seek(recordKey(key, from)); ok && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
		if !visit(timestamp(it.Key()), decodeRecord(it.Value())) {
			return
		}
	}
}

// newest gives the last record of a key of any kind.
func newest(it iterator.Iterator, key []byte) (last record, ts uint64, found bool) {
	versions(it, key, math.MaxUint64, func(at uint64, r record) bool {
		last, ts, found = r, at, true
		return false
	})
	return last, ts, found
}

// visible gives the value that a reader at a timestamp sees.
func visible(it iterator.Iterator, key []byte, ts uint64) (value []byte, found bool) {
	versions(it, key, ts, func(_ uint64, r record) bool {
		value, found = r.value, r.kind == put
		return r.kind != put && r.kind != del
	})
	if !found {
		return nil, false
	}
	return value, true
}

// endOf gives how the transaction that started at startTS ended at a key.
func endOf(it iterator.Iterator, key []byte, startTS uint64) (end record, ts uint64, found bool) {
	versions(it, key, math.MaxUint64, func(at uint64, r record) bool {
		if at < startTS {
			return false
		}
		if r.startTS == startTS {
			end, ts, found = r, at, true
		}
		return !found
	})
	return end, ts, found
}
