package control

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Broker is the answer of GET /v1/broker.
type Broker struct {
	Version   string `json:"version"`
	ClusterID string `json:"clusterId"`
	NodeID    int32  `json:"nodeId"`
	// Listeners are the open Kafka listeners by name, as host:port where they listen.
	Listeners map[string]string `json:"listeners"`
}

// Endpoint is how clients outside of the container reach the broker: the body
// of PUT /v1/endpoint, and the answer of GET and PUT (FX-11).
type Endpoint struct {
	// Endpoint is host:port for every listener that is not in Listeners.
	Endpoint string `json:"endpoint,omitempty"`
	// Listeners are host:port by the listener's name.
	Listeners map[string]string `json:"listeners,omitempty"`
}

// errEmpty is the mistake of a request without a body, where one is wanted.
var errEmpty = errors.New("the body is not what this takes: it is empty")

// maxBody bounds what a request may send, in bytes.
const maxBody = 64 << 10

func (o Options) getEndpoint(w http.ResponseWriter, _ *http.Request) {
	var e Endpoint
	for name, address := range o.HostEndpoints() {
		if name == "" {
			e.Endpoint = address
			continue
		}
		if e.Listeners == nil {
			e.Listeners = map[string]string{}
		}
		e.Listeners[name] = address
	}
	reply(w, http.StatusOK, e)
}

// putEndpoint takes the place of all that was set before: asking for the same
// twice changes nothing the second time.
func (o Options) putEndpoint(w http.ResponseWriter, r *http.Request) {
	var e Endpoint
	if err := decode(w, r, &e); err != nil {
		refuse(w, err)
		return
	}
	all := map[string]string{}
	for name, address := range e.Listeners {
		if name == "" {
			refuse(w, errors.New(`listeners: a name is empty; for all listeners there is "endpoint"`))
			return
		}
		name = strings.ToUpper(name)
		if _, twice := all[name]; twice {
			refuse(w, fmt.Errorf("listeners: %s is there twice", name))
			return
		}
		all[name] = address
	}
	if e.Endpoint != "" {
		all[""] = e.Endpoint
	}
	if len(all) == 0 {
		refuse(w, errors.New(`want {"endpoint": "host:port"}, or {"listeners": {"NAME": "host:port"}}`))
		return
	}
	if err := o.SetHostEndpoints(all); err != nil {
		refuse(w, err)
		return
	}
	o.getEndpoint(w, r)
}

// decode reads the JSON value that a request consists of. A field that is
// none here is refused: it is a typing error, and would do nothing.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // whose text is about Go's types
		return fmt.Errorf("the body is not what this takes: %s can't be %s", cmp.Or(wrong.Field, "it"), wrong.Value)
	}
	if errors.Is(err, io.EOF) {
		return errEmpty
	}
	if err != nil {
		return fmt.Errorf("the body is not what this takes: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the body goes on after its JSON value")
	}
	return nil
}

// refuse answers that a request can't be.
func refuse(w http.ResponseWriter, err error) {
	failed(w, http.StatusBadRequest, err)
}

func failed(w http.ResponseWriter, status int, err error) {
	reply(w, status, map[string]string{"error": err.Error()})
}

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client that is gone has no use for the error
}
