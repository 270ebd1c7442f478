package main

import (
	"crypto/tls"
	"fmt"
	"log"
	"math"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
)

// maxAnswer is TiKV's default for `server.max-grpc-send-msg-len`.
const maxAnswer = 10 << 20

// endpoint is a gRPC server that can be stopped and started again at the same address.
type endpoint struct {
	// tls is nil where connections are plain.
	tls         *tls.Config
	interceptor grpc.UnaryServerInterceptor
	register    func(*grpc.Server)

	mu     sync.Mutex
	addr   string
	server *grpc.Server
}

// listen takes the address that the endpoint had before; where that is taken by now, or there was none, a free port.
func (e *endpoint) listen(before, wanted string) error {
	if before != "" {
		e.addr = before
		if err := e.start(); err == nil {
			return nil
		}
	}
	e.addr = wanted
	return e.start()
}

// start serves until stop; an endpoint that runs stays as it is.
func (e *endpoint) start() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		return nil
	}
	listener, err := net.Listen("tcp", e.addr)
	if err != nil {
		return err
	}
	e.addr = listener.Addr().String()
	options := []grpc.ServerOption{
		grpc.ForceServerCodec(protoCodec{}),
		grpc.UnaryInterceptor(e.interceptor),
		grpc.MaxRecvMsgSize(math.MaxInt32),
		grpc.MaxSendMsgSize(maxAnswer),
	}
	if e.tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(e.tls)))
	}
	e.server = grpc.NewServer(options...)
	e.register(e.server)
	healthpb.RegisterHealthServer(e.server, health.NewServer())
	go func(server *grpc.Server) {
		if err := server.Serve(listener); err != nil {
			log.Printf("serving at %s: %v", listener.Addr(), err)
		}
	}(e.server)
	return nil
}

// stop drops all connections at once, as the end of a process does.
func (e *endpoint) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		e.server.Stop()
		e.server = nil
	}
}

func (e *endpoint) running() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.server != nil
}

// protoCodec uses the code that gogo/protobuf generated for the messages of TiKV, which is several times as fast as
// reflection. Only the health service has others.
type protoCodec struct{}

type generated interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// Marshal is part of grpc's encoding.Codec.
func (protoCodec) Marshal(v any) ([]byte, error) {
	switch m := v.(type) {
	case generated:
		return m.Marshal()
	case proto.Message:
		return proto.Marshal(m)
	default:
		return nil, fmt.Errorf("%T is no message", v)
	}
}

// Unmarshal is part of grpc's encoding.Codec.
func (protoCodec) Unmarshal(data []byte, v any) error {
	switch m := v.(type) {
	case generated:
		return m.Unmarshal(data)
	case proto.Message:
		return proto.Unmarshal(data, m)
	default:
		return fmt.Errorf("%T is no message", v)
	}
}

// Name is part of grpc's encoding.Codec.
func (protoCodec) Name() string {
	return "proto"
}
