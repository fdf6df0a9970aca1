package stdio

import (
	"io/fs"
	"testing"
)

func TestLimits(t *testing.T) {
	const head = "Limit                     Soft Limit           Hard Limit           Units     \n"
	files := map[string]string{
		"/proc/self/limits": head + "Max stack size            8388608              unlimited            bytes     \n" +
			"Max core file size        unlimited            unlimited            bytes     \nMax open files            20000                20000                files     \n",
	}
	p := &Process{ReadFile: func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}, OpenFiles: func() (uint64, bool) { return 1024, true }}
	got := p.Limits()
	if len(got) != 3 || got["STACK"] != 8388608 || got["CORE"] != Unlimited || got["NOFILE"] != 1024 {
		t.Errorf("%v", got)
	}
	p.OpenFiles = func() (uint64, bool) { return 0, false }
	if got = p.Limits(); got["NOFILE"] != 20000 {
		t.Errorf("%v, want the limit of the kernel", got)
	}
	delete(files, "/proc/self/limits")
	if got = p.Limits(); got != nil {
		t.Errorf("%v", got)
	}
}
