package accounts

import (
	"strings"
	"testing"
)

func TestWith(t *testing.T) {
	image := Files{Passwd: "root:x:0:0::/root:/bin/sh\nubuntu:x:1000:1000::/home/ubuntu:/bin/sh\n", Group: "root:x:0:\nusers:x:100:\n"}
	chem := Group{"chem", 70}
	for name, c := range map[string]struct {
		user User
		want Files
	}{
		"a uid that the image has too": {User{"ann", 1000, 4712, "/home/ann", "/bin/zsh", []Group{chem}}, Files{
			"ann:x:1000:4712::/home/ann:/bin/zsh\n" + image.Passwd, "chem:x:70:\nann:x:4712:\n" + image.Group}},
		"a primary group of the image": {User{"ann", 1001, 100, "/", "/bin/sh", nil}, Files{
			"ann:x:1001:100::/:/bin/sh\n" + image.Passwd, image.Group}},
		"a primary group of the site": {User{"ann", 1001, 70, "/", "/bin/sh", []Group{chem}}, Files{
			"ann:x:1001:70::/:/bin/sh\n" + image.Passwd, "chem:x:70:\n" + image.Group}},
	} {
		if got := image.With(c.user); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestMessage(t *testing.T) {
	f := Files{Passwd: "root:x:0:0:\"root\":/root:/bin/sh\n", Group: "root:x:0:\n"}
	if got, ok := OfMessage(f.Message()); !ok || got != f {
		t.Errorf("%+v, %v", got, ok)
	}
	if got := (Files{Passwd: strings.Repeat("x", 4096)}).Message(); got != "" {
		t.Errorf("a message of %d bytes, which kubelets cut off", len(got))
	}
	cut := f.Message()
	for _, text := range []string{"", "exit status 1", cut[:len(cut)-1], `{"exitCode":0}`} {
		if got, ok := OfMessage(text); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
