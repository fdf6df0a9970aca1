package step

import (
	"errors"
	"reflect"
	"testing"
)

func TestCollective(t *testing.T) {
	c := &Collective{Key: "*#1", Parts: 2, Need: 3, Data: []byte("blob")}
	got, err := ReadCollective(c.Frame(FrameCollect))
	if err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("%+v became %+v, %v", c, got, err)
	}
	for name, data := range map[string]string{
		"short":     "\x00\x00\x00\x01",
		"no parts":  "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00",
		"too many":  "\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00",
		"key cut":   "\x00\x00\x00\x01\x00\x00\x00\x01\x00\x05*#1",
		"no key":    "\x00\x00\x00\x01\x00\x00\x00\x01\xff\xff",
		"no length": "\x00\x00\x00\x01\x00\x00\x00\x01",
	} {
		if c, err := ReadCollective(&Frame{Data: []byte(data)}); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func TestModexFrameAddressesItsTask(t *testing.T) {
	request := &Modex{ID: 7, From: 1, Of: 5, Data: []byte{}}
	f := request.Frame()
	got, err := ReadModex(f)
	if err != nil || f.Task != 5 || !reflect.DeepEqual(got, request) {
		t.Errorf("%+v for task %d became %+v, %v", request, f.Task, got, err)
	}
	answer := &Modex{Answer: true, ID: 7, From: 1, Of: 5, Status: -46, Data: []byte("x")}
	f = answer.Frame()
	got, err = ReadModex(f)
	if err != nil || f.Task != 1 || !reflect.DeepEqual(got, answer) {
		t.Errorf("%+v for task %d became %+v, %v", answer, f.Task, got, err)
	}
	if m, err := ReadModex(&Frame{Data: make([]byte, modexSize-1)}); !errors.Is(err, ErrFrame) {
		t.Errorf("short: %+v, %v", m, err)
	}
}
