package main

import (
	"fmt"
	"log"
	"math"
	"net"
	"sync"

	"google.golang.org/grpc"
)

// maxAnswer is TiKV's default for `server.max-grpc-send-msg-len`.
const maxAnswer = 10 << 20

// endpoint is a gRPC server that can be stopped and started again at the same address.
type endpoint struct {
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
	e.server = grpc.NewServer(
		grpc.ForceServerCodec(protoCodec{}),
		grpc.UnaryInterceptor(e.interceptor),
		grpc.MaxRecvMsgSize(math.MaxInt32),
		grpc.MaxSendMsgSize(maxAnswer),
	)
	e.register(e.server)
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

// protoCodec uses the code that gogo/protobuf generated for the messages, which is several times as fast as reflection.
type protoCodec struct{}

type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// Marshal is part of grpc's encoding.Codec.
func (protoCodec) Marshal(v any) ([]byte, error) {
	m, ok := v.(message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", v)
	}
	return m.Marshal()
}

// Unmarshal is part of grpc's encoding.Codec.
func (protoCodec) Unmarshal(data []byte, v any) error {
	m, ok := v.(message)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	return m.Unmarshal(data)
}

// Name is part of grpc's encoding.Codec.
func (protoCodec) Name() string {
	return "proto"
}
