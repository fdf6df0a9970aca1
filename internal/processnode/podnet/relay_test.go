package podnet

import (
	"net"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
)

// A relay ends with its listener even if the target neither responds nor closes the connection, as
// a stopped process.
func TestRelayToASilentTargetEnds(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		(&Network{}).relay(l, target.Addr().String())
	}()
	pod, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer pod.Close()
	silent, err := target.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_ = l.Close()
	select {
	case <-ended:
	case <-time.After(eventually.Timeout):
		t.Error("the relay waits for its target")
	}
}
