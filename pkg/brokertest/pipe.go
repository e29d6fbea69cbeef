package brokertest

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// A PipeNet is a network in memory: listeners and connections without sockets,
// so that a whole broker and its clients fit in a synctest bubble.
type PipeNet struct {
	mu        sync.Mutex
	nextPort  int
	listeners map[string]*pipeListener
}

// NewPipeNet makes an empty network.
func NewPipeNet() *PipeNet {
	return &PipeNet{nextPort: 20000, listeners: make(map[string]*pipeListener)}
}

// Listen listens on an address; port 0 takes a free one.
func (n *PipeNet) Listen(_ context.Context, _, address string) (net.Listener, error) {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if a.Port == 0 {
		a.Port = n.portLocked()
	}
	l := &pipeListener{net: n, addr: a, incoming: make(chan net.Conn), closed: make(chan struct{})}
	if n.listeners[a.String()] != nil {
		return nil, fmt.Errorf("listen %s: address already in use", a)
	}
	n.listeners[a.String()] = l
	return l, nil
}

func (n *PipeNet) portLocked() int {
	n.nextPort++
	return n.nextPort
}

// Dial connects to a listener. It has the form of kgo.Dialer's function.
func (n *PipeNet) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: n.portLocked()}
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: connection refused", address)
	}
	here, there := net.Pipe()
	select {
	case l.incoming <- pipeConn{there, l.addr, from}:
		return pipeConn{here, from, l.addr}, nil
	case <-l.closed:
		return nil, fmt.Errorf("dial %s: connection refused", address)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipeConn is an end of a pipe that has TCP addresses.
type pipeConn struct {
	net.Conn
	local, remote *net.TCPAddr
}

func (c pipeConn) LocalAddr() net.Addr  { return c.local }
func (c pipeConn) RemoteAddr() net.Addr { return c.remote }

type pipeListener struct {
	net      *PipeNet
	addr     *net.TCPAddr
	incoming chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.incoming:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Addr() net.Addr { return l.addr }

func (l *pipeListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		delete(l.net.listeners, l.addr.String())
	})
	return nil
}
