package handler

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/client"
	"github.com/dozekafka/doze-kafka/pkg/endpoint"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

type silent struct{}

func (silent) Lookup(int16) (server.Spec, bool)                     { return server.Spec{}, true }
func (silent) Handle(context.Context, *server.Request) server.Reply { return server.Reply{} }

// FX-13: Metadata tells an address; a Produce shows that the client came, a FindCoordinator does not.
func TestWatchKnowsARequestThatShowsThatAClientCame(t *testing.T) {
	for key, came := range map[kmsg.Key]bool{
		kmsg.Produce: true, kmsg.Fetch: true, kmsg.JoinGroup: true, kmsg.OffsetFetch: true,
		kmsg.ApiVersions: false, kmsg.FindCoordinator: false, kmsg.InitProducerID: false, kmsg.DescribeCluster: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			e, err := endpoint.New(endpoint.Config{}, endpoint.Facts{})
			if err != nil {
				t.Fatal(err)
			}
			var astray []endpoint.Astray
			h := Watch(silent{}, e, endpoint.NewWatch(func(a endpoint.Astray) { astray = append(astray, a) }))
			conn := &server.ConnInfo{
				ID: 1, Listener: "PLAINTEXT",
				Local:  &net.TCPAddr{IP: net.IPv4(172, 18, 0, 2), Port: 9092},
				Remote: &net.TCPAddr{IP: net.IPv4(172, 18, 0, 3), Port: 50000},
			}
			for _, k := range []kmsg.Key{kmsg.ApiVersions, kmsg.Metadata, key} {
				h.Handle(t.Context(), &server.Request{Conn: conn, Key: int16(k), ClientID: "app"})
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if (len(astray) == 0) != came {
				t.Errorf("%s: astray %+v", key.Name(), astray)
			}
			if len(astray) == 1 && (astray[0].Told != "172.18.0.2:9092" || astray[0].ID != "app") {
				t.Errorf("astray %+v", astray)
			}
		})
	}
}

// FX-13: an idle client of Java has come if it sends to another connection than it began with, and a producer with a transactional
// id if it reaches its coordinator, on whichever.
func TestWatchKnowsIdleClientsThatCame(t *testing.T) {
	transactional := kmsg.NewPtrInitProducerIDRequest()
	transactional.TransactionalID = kmsg.StringPtr("t")
	for _, c := range []struct {
		key  kmsg.Key
		body kmsg.Request
		conn uint64
		came bool
	}{
		{kmsg.InitProducerID, transactional, 1, true},
		{kmsg.InitProducerID, kmsg.NewPtrInitProducerIDRequest(), 1, false},
		{kmsg.InitProducerID, kmsg.NewPtrInitProducerIDRequest(), 2, true},
		{kmsg.DescribeCluster, nil, 2, true},
		{kmsg.FindCoordinator, nil, 2, true},
		{kmsg.Metadata, nil, 2, true},
		{kmsg.ApiVersions, nil, 2, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, err := endpoint.New(endpoint.Config{}, endpoint.Facts{})
			if err != nil {
				t.Fatal(err)
			}
			astray := 0
			h := Watch(silent{}, e, endpoint.NewWatch(func(endpoint.Astray) { astray++ }))
			send := func(id uint64, key kmsg.Key, body kmsg.Request) {
				address := func(port int) *net.TCPAddr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }
				conn := &server.ConnInfo{ID: id, Listener: "PLAINTEXT", Local: address(9092), Remote: address(50000 + int(id))}
				h.Handle(t.Context(), &server.Request{Conn: conn, Key: int16(key), ClientID: "app", Body: body})
			}
			send(1, kmsg.Metadata, nil)
			send(c.conn, c.key, c.body)
			time.Sleep(time.Minute)
			synctest.Wait()
			if (astray == 0) != c.came {
				t.Errorf("%s on connection %d: %d are astray", c.key.Name(), c.conn, astray)
			}
		})
	}
}

// A connection that is none of a network's is not looked at.
func TestWatchIgnoresPipes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := endpoint.New(endpoint.Config{}, endpoint.Facts{})
		if err != nil {
			t.Fatal(err)
		}
		h := Watch(silent{}, e, endpoint.NewWatch(func(a endpoint.Astray) { t.Errorf("astray %+v", a) }))
		c, _ := net.Pipe()
		h.Handle(t.Context(), &server.Request{Conn: &server.ConnInfo{Local: c.LocalAddr(), Remote: c.RemoteAddr()}, Key: int16(kmsg.Metadata)})
		time.Sleep(time.Minute)
		synctest.Wait()
	})
}

// FX-13, FX-32: the image's health check asks each second and goes nowhere.
func TestWatchIgnoresHealthChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := endpoint.New(endpoint.Config{}, endpoint.Facts{})
		if err != nil {
			t.Fatal(err)
		}
		h := Watch(silent{}, e, endpoint.NewWatch(func(a endpoint.Astray) { t.Errorf("astray %+v", a) }))
		for i := range uint64(100) {
			conn := &server.ConnInfo{
				ID: i, Listener: "PLAINTEXT",
				Local:  &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9092},
				Remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50000},
			}
			for _, k := range []kmsg.Key{kmsg.ApiVersions, kmsg.Metadata} {
				h.Handle(t.Context(), &server.Request{Conn: conn, Key: int16(k), ClientID: client.CheckID})
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
	})
}
