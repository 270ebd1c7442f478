package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"

	"github.com/pingcap/kvproto/pkg/keyspacepb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"

	"respgate.test/tikv-cluster/mvcc"
)

// pdService is the placement driver's service: one member, always the leader.
type pdService struct {
	pdpb.UnimplementedPDServer
	keyspacepb.UnimplementedKeyspaceServer
	topology *topology
	oracle   *oracle
	data     *mvcc.Store
	// tso is called for each request of a timestamp stream, which interceptors do not see.
	tso func(context.Context) error
	// isSecure says that connections have TLS.
	isSecure bool
}

func (p *pdService) header() *pdpb.ResponseHeader {
	return &pdpb.ResponseHeader{ClusterId: clusterID}
}

func failed(header *pdpb.ResponseHeader, kind pdpb.ErrorType, message string) *pdpb.ResponseHeader {
	header.Error = &pdpb.Error{Type: kind, Message: message}
	return header
}

// GetClusterInfo says that PD hands out the timestamps, not services of their own.
func (p *pdService) GetClusterInfo(context.Context, *pdpb.GetClusterInfoRequest) (*pdpb.GetClusterInfoResponse, error) {
	return &pdpb.GetClusterInfoResponse{Header: p.header(), ServiceModes: []pdpb.ServiceMode{pdpb.ServiceMode_PD_SVC_MODE}}, nil
}

// GetMembers names this program as leader.
func (p *pdService) GetMembers(context.Context, *pdpb.GetMembersRequest) (*pdpb.GetMembersResponse, error) {
	scheme := "http://"
	if p.isSecure {
		scheme = "https://"
	}
	url := scheme + p.topology.snapshot().PD
	member := &pdpb.Member{Name: "pd", MemberId: 1, ClientUrls: []string{url}, PeerUrls: []string{url}}
	return &pdpb.GetMembersResponse{Header: p.header(), Members: []*pdpb.Member{member}, Leader: member, EtcdLeader: member}, nil
}

// Tso hands out timestamps in batches.
func (p *pdService) Tso(stream pdpb.PD_TsoServer) error {
	header := p.header()
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.tso(stream.Context()); err != nil {
			return err
		}
		physical, logical := p.oracle.take(int64(req.Count))
		if err := stream.Send(&pdpb.TsoResponse{
			Header: header, Count: req.Count, Timestamp: &pdpb.Timestamp{Physical: physical, Logical: logical},
		}); err != nil {
			return err
		}
	}
}

// GetMinTS gives a fresh timestamp: no other oracle is behind it.
func (p *pdService) GetMinTS(context.Context, *pdpb.GetMinTSRequest) (*pdpb.GetMinTSResponse, error) {
	physical, logical := p.oracle.take(1)
	return &pdpb.GetMinTSResponse{Header: p.header(), Timestamp: &pdpb.Timestamp{Physical: physical, Logical: logical}}, nil
}

func (p *pdService) regionResponse(r region) *pdpb.GetRegionResponse {
	return &pdpb.GetRegionResponse{Header: p.header(), Region: r.meta(), Leader: r.leader()}
}

// GetRegion finds the region of an encoded key.
func (p *pdService) GetRegion(_ context.Context, req *pdpb.GetRegionRequest) (*pdpb.GetRegionResponse, error) {
	return p.regionResponse(p.topology.find(req.RegionKey)), nil
}

// GetPrevRegion finds the region before that of an encoded key.
func (p *pdService) GetPrevRegion(_ context.Context, req *pdpb.GetRegionRequest) (*pdpb.GetRegionResponse, error) {
	start := p.topology.find(req.RegionKey).Start
	for _, r := range p.topology.snapshot().Regions {
		if len(r.End) > 0 && bytes.Equal(r.End, start) {
			return p.regionResponse(r), nil
		}
	}
	return &pdpb.GetRegionResponse{Header: p.header()}, nil
}

// GetRegionByID gives an empty answer for a region that is gone, as PD does.
func (p *pdService) GetRegionByID(_ context.Context, req *pdpb.GetRegionByIDRequest) (*pdpb.GetRegionResponse, error) {
	if r, found := p.topology.byID(req.RegionId); found {
		return p.regionResponse(r), nil
	}
	return &pdpb.GetRegionResponse{Header: p.header()}, nil
}

// ScanRegions lists the regions of a range in order.
func (p *pdService) ScanRegions(_ context.Context, req *pdpb.ScanRegionsRequest) (*pdpb.ScanRegionsResponse, error) {
	resp := &pdpb.ScanRegionsResponse{Header: p.header()}
	resp.Regions = p.regionsIn(req.StartKey, req.EndKey, req.Limit)
	for _, r := range resp.Regions {
		resp.RegionMetas = append(resp.RegionMetas, r.Region)
		resp.Leaders = append(resp.Leaders, r.Leader)
	}
	return resp, nil
}

// BatchScanRegions lists the regions of several ranges.
func (p *pdService) BatchScanRegions(_ context.Context, req *pdpb.BatchScanRegionsRequest) (*pdpb.BatchScanRegionsResponse, error) {
	resp := &pdpb.BatchScanRegionsResponse{Header: p.header()}
	for _, r := range req.Ranges {
		resp.Regions = append(resp.Regions, p.regionsIn(r.StartKey, r.EndKey, req.Limit)...)
	}
	return resp, nil
}

func (p *pdService) regionsIn(start, end []byte, limit int32) []*pdpb.Region {
	var out []*pdpb.Region
	for _, r := range p.topology.snapshot().Regions {
		if len(r.End) > 0 && bytes.Compare(r.End, start) <= 0 {
			continue
		}
		if len(end) > 0 && bytes.Compare(r.Start, end) >= 0 || limit > 0 && len(out) == int(limit) {
			break
		}
		out = append(out, &pdpb.Region{Region: r.meta(), Leader: r.leader()})
	}
	return out
}

func (s store) meta() *metapb.Store {
	return &metapb.Store{Id: s.ID, Address: s.Addr, State: metapb.StoreState_Up, Version: "8.5.0"}
}

// GetStore tells a store's address, whether the store runs or not.
func (p *pdService) GetStore(_ context.Context, req *pdpb.GetStoreRequest) (*pdpb.GetStoreResponse, error) {
	for _, s := range p.topology.snapshot().Stores {
		if s.ID == req.StoreId {
			return &pdpb.GetStoreResponse{Header: p.header(), Store: s.meta()}, nil
		}
	}
	return &pdpb.GetStoreResponse{Header: failed(p.header(), pdpb.ErrorType_UNKNOWN, "invalid store ID, not found")}, nil
}

// GetAllStores lists the stores.
func (p *pdService) GetAllStores(context.Context, *pdpb.GetAllStoresRequest) (*pdpb.GetAllStoresResponse, error) {
	resp := &pdpb.GetAllStoresResponse{Header: p.header()}
	for _, s := range p.topology.snapshot().Stores {
		resp.Stores = append(resp.Stores, s.meta())
	}
	return resp, nil
}

// IsBootstrapped says yes.
func (p *pdService) IsBootstrapped(context.Context, *pdpb.IsBootstrappedRequest) (*pdpb.IsBootstrappedResponse, error) {
	return &pdpb.IsBootstrappedResponse{Header: p.header(), Bootstrapped: true}, nil
}

// GetClusterConfig tells the cluster's id.
func (p *pdService) GetClusterConfig(context.Context, *pdpb.GetClusterConfigRequest) (*pdpb.GetClusterConfigResponse, error) {
	header := p.header()
	return &pdpb.GetClusterConfigResponse{Header: header, Cluster: &metapb.Cluster{Id: header.ClusterId, MaxPeerCount: replicas}}, nil
}

// GetGCSafePoint tells up to where old versions may be gone.
func (p *pdService) GetGCSafePoint(context.Context, *pdpb.GetGCSafePointRequest) (*pdpb.GetGCSafePointResponse, error) {
	return &pdpb.GetGCSafePointResponse{Header: p.header(), SafePoint: p.topology.snapshot().SafePoint}, nil
}

// GetGCState tells the same to newer clients, which know two safe points.
func (p *pdService) GetGCState(_ context.Context, req *pdpb.GetGCStateRequest) (*pdpb.GetGCStateResponse, error) {
	safePoint := p.topology.snapshot().SafePoint
	return &pdpb.GetGCStateResponse{Header: p.header(), GcState: &pdpb.GCState{
		KeyspaceScope: req.KeyspaceScope, TxnSafePoint: safePoint, GcSafePoint: safePoint,
	}}, nil
}

// UpdateGCSafePoint moves the safe point, never back. The stores collect afterwards.
func (p *pdService) UpdateGCSafePoint(_ context.Context, req *pdpb.UpdateGCSafePointRequest) (*pdpb.UpdateGCSafePointResponse, error) {
	var safePoint uint64
	if err := p.topology.update(func(s *state) error {
		s.SafePoint = max(s.SafePoint, req.SafePoint)
		safePoint = s.SafePoint
		return nil
	}); err != nil {
		return nil, err
	}
	go func() {
		if err := p.data.GC(safePoint); err != nil {
			log.Printf("collecting up to %d: %v", safePoint, err)
		}
	}()
	return &pdpb.UpdateGCSafePointResponse{Header: p.header(), NewSafePoint: safePoint}, nil
}

// LoadKeyspace finds a keyspace by name; asking for one that is new creates it.
func (p *pdService) LoadKeyspace(_ context.Context, req *keyspacepb.LoadKeyspaceRequest) (*keyspacepb.LoadKeyspaceResponse, error) {
	var id uint32
	if err := p.topology.update(func(s *state) error {
		if _, known := s.Keyspaces[req.Name]; !known {
			s.Keyspaces[req.Name] = uint32(len(s.Keyspaces) + 1)
		}
		id = s.Keyspaces[req.Name]
		return nil
	}); err != nil {
		return nil, err
	}
	return &keyspacepb.LoadKeyspaceResponse{
		Header:   p.header(),
		Keyspace: &keyspacepb.KeyspaceMeta{Id: id, Name: req.Name, State: keyspacepb.KeyspaceState_ENABLED},
	}, nil
}
