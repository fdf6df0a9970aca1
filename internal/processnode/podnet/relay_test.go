package podnet

import (
	"net"
	"testing"
	"time"
)

// A relay ends with its listener even where the target neither answers nor
// closes, as a stopped process does.
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
	case <-time.After(30 * time.Second):
		t.Error("the relay waits for its target")
	}
}
