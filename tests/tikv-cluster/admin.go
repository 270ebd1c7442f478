package main

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
)

// admin is the interface for tests: HTTP, JSON answers, arguments in the query, keys in hex. A request that cannot be done
// is answered with 400 and the reason.
func (c *cluster) admin() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(*http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			answer, err := do(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(answer); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}

	handle("GET /rpcs", func(*http.Request) (any, error) { return c.meter.read(false), nil })
	handle("DELETE /rpcs", func(*http.Request) (any, error) { return c.meter.read(true), nil })

	handle("GET /faults", func(*http.Request) (any, error) { return c.faults.list(), nil })
	handle("POST /faults", func(r *http.Request) (any, error) {
		var rule fault
		if err := json.NewDecoder(r.Body).Decode(&rule); err != nil {
			return nil, err
		}
		id, err := c.faults.add(rule)
		return map[string]uint64{"id": id}, err
	})
	handle("DELETE /faults", func(r *http.Request) (any, error) {
		id, err := number(r, "id")
		if err == nil {
			c.faults.remove(id)
		}
		return c.faults.list(), err
	})

	handle("GET /regions", func(*http.Request) (any, error) { return c.regions(), nil })
	handle("POST /split", func(r *http.Request) (any, error) {
		key, err := hex.DecodeString(r.FormValue("key"))
		if err == nil {
			err = c.topology.split(key)
		}
		return c.regions(), err
	})
	handle("POST /merge", func(r *http.Request) (any, error) {
		id, err := number(r, "region")
		if err == nil {
			err = c.topology.merge(id)
		}
		return c.regions(), err
	})
	handle("POST /leader", func(r *http.Request) (any, error) {
		id, err := number(r, "region")
		if err != nil {
			return nil, err
		}
		to, err := number(r, "store")
		if err != nil {
			return nil, err
		}
		return c.regions(), c.topology.transfer(id, to)
	})

	handle("GET /stores", func(*http.Request) (any, error) { return c.addresses(), nil })
	handle("POST /stores/stop", func(r *http.Request) (any, error) {
		id, err := number(r, "id")
		if err == nil {
			err = c.stopStore(id, r.FormValue("elect") != "false")
		}
		return c.addresses(), err
	})
	handle("POST /stores/start", func(r *http.Request) (any, error) {
		id, err := number(r, "id")
		if err == nil {
			err = c.startStore(id)
		}
		return c.addresses(), err
	})
	handle("POST /pd/stop", func(*http.Request) (any, error) {
		c.pd.stop()
		return c.addresses(), nil
	})
	handle("POST /pd/start", func(*http.Request) (any, error) {
		err := c.pd.start()
		return c.addresses(), err
	})

	handle("GET /data", func(*http.Request) (any, error) {
		records, locks := c.data.Count()
		return map[string]uint64{"records": uint64(records), "locks": uint64(locks), "collected": c.data.Collected()}, nil
	})
	return mux
}

// number gives a parameter, 0 if it is not there.
func number(r *http.Request, name string) (uint64, error) {
	value := r.FormValue(name)
	if value == "" {
		return 0, nil
	}
	return strconv.ParseUint(value, 10, 64)
}

// regionInfo is a region as tests see it: with bounds of users' keys.
type regionInfo struct {
	ID      uint64   `json:"id"`
	Start   string   `json:"start"`
	End     string   `json:"end"`
	Version uint64   `json:"version"`
	Leader  uint64   `json:"leader"`
	Stores  []uint64 `json:"stores"`
}

func (c *cluster) regions() []regionInfo {
	var out []regionInfo
	for _, r := range c.topology.snapshot().Regions {
		info := regionInfo{
			ID: r.ID, Version: r.Version, Leader: r.Leader,
			Start: hex.EncodeToString(decode(r.Start)), End: hex.EncodeToString(decode(r.End)),
		}
		for _, p := range r.Peers {
			info.Stores = append(info.Stores, p.Store)
		}
		out = append(out, info)
	}
	return out
}

// storeInfo is a store as tests see it.
type storeInfo struct {
	ID      uint64 `json:"id"`
	Addr    string `json:"addr"`
	Running bool   `json:"running"`
}

// addressInfo is where everything can be reached.
type addressInfo struct {
	PD      string      `json:"pd"`
	Running bool        `json:"pd_running"`
	Stores  []storeInfo `json:"stores"`
	Admin   string      `json:"admin,omitempty"`
}

func (c *cluster) addresses() addressInfo {
	s := c.topology.snapshot()
	info := addressInfo{PD: s.PD, Running: c.pd.running()}
	for _, store := range s.Stores {
		info.Stores = append(info.Stores, storeInfo{ID: store.ID, Addr: store.Addr, Running: c.stores[store.ID].running()})
	}
	return info
}
