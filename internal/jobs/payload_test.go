package jobs

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/translate/bounds"
)

// noise returns n bytes that do not compress.
func noise(n int) []byte {
	var seed [32]byte
	out := make([]byte, n)
	_, _ = rand.NewChaCha8(seed).Read(out)
	return out
}

func TestCheckPayload(t *testing.T) {
	archive := base64.StdEncoding.EncodeToString(noise(760 << 10)) // a program that unpacks itself
	for _, c := range []struct {
		name   string
		script []byte
		err    string
	}{
		{"4 MB that compress", bytes.Repeat([]byte("# a line\n"), bounds.MaxScript/9), ""},
		{"an archive of 1 MB", []byte(archive), ""},
		{"more than Slurm takes", bytes.Repeat([]byte("a"), bounds.MaxScript+1), bounds.TooLong},
		{"noise", noise(900_000), "when compressed, and the limit is 786432: move data out of the script into a file"},
	} {
		s := &Submission{Script: c.script}
		spec := batchJobSpec{Script: Compress(c.script)}
		err := spec.checkPayload(s)
		if c.err == "" {
			if plain, bad := Decompress(spec.Script); err != nil || bad != nil || !bytes.Equal(plain, c.script) {
				t.Errorf("%s: %v %v", c.name, err, bad)
			}
			continue
		}
		if kube.KindOf(err) != kube.Denied || !strings.HasSuffix(err.Error(), c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
