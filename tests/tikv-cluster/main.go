// tikv-cluster serves the protocol of PD and TiKV from one process, for tests: transactions on several stores and regions,
// on disk, with faults on demand. It proves how a client handles the protocol and its failures, not how fast TiKV is.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	var o options
	flag.StringVar(&o.dir, "data", "", "directory of the data; without it they are kept in memory")
	flag.StringVar(&o.pd, "pd", "127.0.0.1:0", "address of PD; port 0 takes a free one, or the one that it had before")
	flag.IntVar(&o.stores, "stores", 3, "number of stores, for a new cluster")
	regions := flag.Int("regions", 1, "number of regions of equal width, for a new cluster")
	splitKeys := flag.String("split-keys", "", "keys in hex, separated by commas, to split at, for a new cluster")
	flag.StringVar(&o.tlsDir, "tls", "", "serve TLS only, and write ca.pem, client.pem and client-key.pem for clients to this directory")
	adminAddr := flag.String("admin", "127.0.0.1:0", "address of the admin interface")
	untilStdinCloses := flag.Bool("until-stdin-closes", false, "end when standard input does, so that nothing outlives a test")
	flag.Parse()

	var err error
	if o.splitKeys, err = splits(*regions, *splitKeys); err != nil {
		return err
	}
	if o.stores < 1 {
		return errors.New("there must be a store")
	}
	c, err := openCluster(o)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *adminAddr)
	if err != nil {
		return err
	}
	go func() { log.Print(http.Serve(listener, c.admin())) }()

	info := c.addresses()
	info.Admin = listener.Addr().String()
	if err := json.NewEncoder(os.Stdout).Encode(info); err != nil {
		return err
	}

	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if *untilStdinCloses {
		go func() {
			defer cancel()
			if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
				log.Printf("standard input: %v", err)
			}
		}()
	}
	<-ctx.Done()
	return c.close()
}

// splits gives the keys where a new cluster is split, in order: n-1 keys of two bytes, or those that are listed.
func splits(regions int, listed string) ([][]byte, error) {
	if listed == "" {
		if regions < 1 || regions > 1<<16 {
			return nil, errors.New("there can be 1 to 65536 regions")
		}
		var keys [][]byte
		for i := 1; i < regions; i++ {
			at := i << 16 / regions
			keys = append(keys, []byte{byte(at >> 8), byte(at)})
		}
		return keys, nil
	}
	var keys [][]byte
	for _, text := range strings.Split(listed, ",") {
		key, err := hex.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("split key %q: %w", text, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
