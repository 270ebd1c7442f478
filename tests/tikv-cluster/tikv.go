package main

import (
	"context"
	"fmt"

	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/tikvpb"
	"github.com/tikv/client-go/v2/util/codec"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"respgate.test/tikv-cluster/mvcc"
)

const (
	// maxRaftEntry is TiKV's default for `raftstore.raft-entry-max-size`.
	maxRaftEntry = 8 << 20
	// maxScan stands for the memory that TiKV would reserve for a scan's limit: it aborts where this refuses.
	maxScan = 10_000_000
)

// storeService is one store's service. What it does not list is answered as unimplemented.
type storeService struct {
	tikvpb.UnimplementedTikvServer
	id       uint64
	topology *topology
	data     *mvcc.Store
}

// regionRequest is any request that is for one region.
type regionRequest interface {
	GetContext() *kvrpcpb.Context
}

// regionKey is where a request's context holds the region that it is for.
type regionKey struct{}

func regionOf(ctx context.Context) mvcc.Range {
	r, _ := ctx.Value(regionKey{}).(mvcc.Range)
	return r
}

// check refuses a request as TiKV does if it is at the wrong store, or was made for a region as it no longer is.
func (t *storeService) check(ctx context.Context, req regionRequest) (context.Context, *errorpb.Error) {
	to := req.GetContext()
	if to.GetPeer().GetStoreId() != t.id {
		return ctx, &errorpb.Error{
			Message:       "store not match",
			StoreNotMatch: &errorpb.StoreNotMatch{RequestStoreId: to.GetPeer().GetStoreId(), ActualStoreId: t.id},
		}
	}
	r, found := t.topology.byID(to.GetRegionId())
	if !found || r.peerOn(t.id) == nil {
		return ctx, &errorpb.Error{
			Message:        fmt.Sprintf("region %d not found", to.GetRegionId()),
			RegionNotFound: &errorpb.RegionNotFound{RegionId: to.GetRegionId()},
		}
	}
	if r.Leader != t.id {
		return ctx, &errorpb.Error{
			Message:   fmt.Sprintf("peer is not leader for region %d", r.ID),
			NotLeader: &errorpb.NotLeader{RegionId: r.ID, Leader: r.leader()},
		}
	}
	if epoch := to.GetRegionEpoch(); epoch.GetVersion() != r.Version || epoch.GetConfVer() != r.ConfVer {
		return ctx, &errorpb.Error{
			Message:       fmt.Sprintf("epoch of region %d is %v, not %v", r.ID, r.epoch(), epoch),
			EpochNotMatch: &errorpb.EpochNotMatch{CurrentRegions: t.around(r)},
		}
	}
	for _, key := range keysOf(req) {
		if !r.contains(codec.EncodeBytes(nil, key)) {
			return ctx, &errorpb.Error{
				Message:        fmt.Sprintf("key %x is not in region %d", key, r.ID),
				KeyNotInRegion: &errorpb.KeyNotInRegion{Key: key, RegionId: r.ID, StartKey: r.Start, EndKey: r.End},
			}
		}
	}
	if size := sizeOf(req); size >= maxRaftEntry {
		return ctx, &errorpb.Error{
			Message:           fmt.Sprintf("raft entry is too large, region %d, entry size %d", r.ID, size),
			RaftEntryTooLarge: &errorpb.RaftEntryTooLarge{RegionId: r.ID, EntrySize: uint64(size)},
		}
	}
	return context.WithValue(ctx, regionKey{}, mvcc.Range{Start: decode(r.Start), End: decode(r.End)}), nil
}

// around gives a region and its left neighbour: after a split these are the two parts.
func (t *storeService) around(r region) []*metapb.Region {
	regions := []*metapb.Region{r.meta()}
	for _, left := range t.topology.snapshot().Regions {
		if len(left.End) > 0 && string(left.End) == string(r.Start) {
			regions = append(regions, left.meta())
		}
	}
	return regions
}

// decode gives a bound as the user's key.
func decode(bound []byte) []byte {
	if len(bound) == 0 {
		return nil
	}
	_, key, err := codec.DecodeBytes(bound, nil)
	if err != nil {
		panic("a region's bound is damaged: " + err.Error())
	}
	return key
}

// keysOf gives the keys that must lie within the region; ranges are cut to it instead.
func keysOf(req regionRequest) [][]byte {
	switch req := req.(type) {
	case *kvrpcpb.GetRequest:
		return [][]byte{req.Key}
	case *kvrpcpb.BatchGetRequest:
		return req.Keys
	case *kvrpcpb.PrewriteRequest:
		return mutated(req.Mutations)
	case *kvrpcpb.PessimisticLockRequest:
		return mutated(req.Mutations)
	case *kvrpcpb.PessimisticRollbackRequest:
		return req.Keys
	case *kvrpcpb.CommitRequest:
		return req.Keys
	case *kvrpcpb.BatchRollbackRequest:
		return req.Keys
	case *kvrpcpb.CleanupRequest:
		return [][]byte{req.Key}
	case *kvrpcpb.CheckTxnStatusRequest:
		return [][]byte{req.PrimaryKey}
	case *kvrpcpb.CheckSecondaryLocksRequest:
		return req.Keys
	case *kvrpcpb.TxnHeartBeatRequest:
		return [][]byte{req.PrimaryLock}
	case *kvrpcpb.ResolveLockRequest:
		return req.Keys
	default:
		return nil
	}
}

func mutated(mutations []*kvrpcpb.Mutation) [][]byte {
	keys := make([][]byte, len(mutations))
	for i, m := range mutations {
		keys[i] = m.Key
	}
	return keys
}

// sizeOf counts what would go into the raft log.
func sizeOf(req regionRequest) int {
	if req, ok := req.(*kvrpcpb.PrewriteRequest); ok {
		return req.Size()
	}
	return 0
}

func (t *storeService) KvGet(_ context.Context, req *kvrpcpb.GetRequest) (*kvrpcpb.GetResponse, error) {
	return t.data.Get(req), nil
}

func (t *storeService) KvBatchGet(_ context.Context, req *kvrpcpb.BatchGetRequest) (*kvrpcpb.BatchGetResponse, error) {
	return t.data.BatchGet(req), nil
}

func (t *storeService) KvScan(ctx context.Context, req *kvrpcpb.ScanRequest) (*kvrpcpb.ScanResponse, error) {
	if req.Limit > maxScan {
		return nil, status.Errorf(codes.Internal, "a scan of %d pairs would abort TiKV", req.Limit)
	}
	return t.data.Scan(req, regionOf(ctx)), nil
}

func (t *storeService) KvPrewrite(_ context.Context, req *kvrpcpb.PrewriteRequest) (*kvrpcpb.PrewriteResponse, error) {
	return t.data.Prewrite(req), nil
}

func (t *storeService) KvCommit(_ context.Context, req *kvrpcpb.CommitRequest) (*kvrpcpb.CommitResponse, error) {
	return t.data.Commit(req), nil
}

func (t *storeService) KvBatchRollback(_ context.Context, req *kvrpcpb.BatchRollbackRequest) (*kvrpcpb.BatchRollbackResponse, error) {
	return t.data.BatchRollback(req), nil
}

func (t *storeService) KvCleanup(_ context.Context, req *kvrpcpb.CleanupRequest) (*kvrpcpb.CleanupResponse, error) {
	return t.data.Cleanup(req), nil
}

func (t *storeService) KvPessimisticLock(ctx context.Context, req *kvrpcpb.PessimisticLockRequest) (*kvrpcpb.PessimisticLockResponse, error) {
	return t.data.PessimisticLock(ctx, req)
}

func (t *storeService) KVPessimisticRollback(ctx context.Context, req *kvrpcpb.PessimisticRollbackRequest) (*kvrpcpb.PessimisticRollbackResponse, error) {
	return t.data.PessimisticRollback(req, regionOf(ctx)), nil
}

func (t *storeService) KvTxnHeartBeat(_ context.Context, req *kvrpcpb.TxnHeartBeatRequest) (*kvrpcpb.TxnHeartBeatResponse, error) {
	return t.data.TxnHeartBeat(req), nil
}

func (t *storeService) KvCheckTxnStatus(_ context.Context, req *kvrpcpb.CheckTxnStatusRequest) (*kvrpcpb.CheckTxnStatusResponse, error) {
	return t.data.CheckTxnStatus(req), nil
}

func (t *storeService) KvCheckSecondaryLocks(_ context.Context, req *kvrpcpb.CheckSecondaryLocksRequest) (*kvrpcpb.CheckSecondaryLocksResponse, error) {
	return t.data.CheckSecondaryLocks(req), nil
}

func (t *storeService) KvScanLock(ctx context.Context, req *kvrpcpb.ScanLockRequest) (*kvrpcpb.ScanLockResponse, error) {
	return t.data.ScanLock(req, regionOf(ctx)), nil
}

func (t *storeService) KvResolveLock(ctx context.Context, req *kvrpcpb.ResolveLockRequest) (*kvrpcpb.ResolveLockResponse, error) {
	return t.data.ResolveLock(req, regionOf(ctx)), nil
}

// KvGC does nothing, as in TiKV, which collects when PD's safe point moves.
func (t *storeService) KvGC(context.Context, *kvrpcpb.GCRequest) (*kvrpcpb.GCResponse, error) {
	return &kvrpcpb.GCResponse{}, nil
}

func (t *storeService) KvDeleteRange(_ context.Context, req *kvrpcpb.DeleteRangeRequest) (*kvrpcpb.DeleteRangeResponse, error) {
	return &kvrpcpb.DeleteRangeResponse{}, t.data.DestroyRange(mvcc.Range{Start: req.StartKey, End: req.EndKey})
}

// UnsafeDestroyRange is for a store, not a region; the first store that is asked does it for all.
func (t *storeService) UnsafeDestroyRange(_ context.Context, req *kvrpcpb.UnsafeDestroyRangeRequest) (*kvrpcpb.UnsafeDestroyRangeResponse, error) {
	return &kvrpcpb.UnsafeDestroyRangeResponse{}, t.data.DestroyRange(mvcc.Range{Start: req.StartKey, End: req.EndKey})
}
