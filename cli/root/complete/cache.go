package complete

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/completion"
	"github.com/berth-hpc/berth/translate/option"
)

// How long responses are fresh, and how long they are used if there are no newer ones.
const (
	freshFor = 5 * time.Second
	staleFor = time.Hour
)

// maxCache is the maximum size of a cache file.
const maxCache = 8 << 20

// cache is a small file with the latest responses of one cluster to one user. An invalid
// file counts as empty.
type cache struct {
	path string // empty: no file
	now  time.Time
	kept map[string]*answer // by the source's name
}

type answer struct {
	At     time.Time                         `json:"at"`     // of Items
	Failed time.Time                         `json:"failed"` // time of the latest failure
	Items  map[option.Kind][]completion.Item `json:"items"`
}

// openCache reads the cache of the cluster in p's environment.
func openCache(p *stdio.Process) *cache {
	c := &cache{now: p.Now(), kept: map[string]*answer{}}
	dir := p.Env("XDG_CACHE_HOME")
	if home := p.Env("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(dir) {
		return c
	}
	// The configuration of the cluster; no credential plugin has run yet.
	cfg, err := kube.Find(p, "")
	if err != nil {
		return c
	}
	key := sha256.Sum256([]byte(strings.Join([]string{build.Version, cfg.Server, cfg.Namespace, cfg.Source}, "\x00")))
	c.path = filepath.Join(dir, "berth", "completion-"+hex.EncodeToString(key[:8])+".json")
	info, err := os.Lstat(c.path)
	// Ignore a file in a directory that other users can write to.
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || info.Size() > maxCache {
		return c
	}
	data, err := os.ReadFile(c.path)
	if err != nil || json.Unmarshal(data, &c.kept) != nil {
		c.kept = map[string]*answer{}
	}
	return c
}

// get returns the stored items of a kind. fresh reports whether no request is needed. It
// also returns old items, in case the request fails.
func (c *cache) get(source string, k option.Kind) (items []completion.Item, fresh bool) {
	a := c.kept[source]
	if a == nil {
		return nil, false
	}
	if age := c.now.Sub(a.At); age >= 0 && age < staleFor {
		items = a.Items[k]
		fresh = age < freshFor
	}
	failed := c.now.Sub(a.Failed)
	return items, fresh || failed >= 0 && failed < freshFor
}

// put stores a response or a failure.
func (c *cache) put(source string, items map[option.Kind][]completion.Item, err error) {
	a := c.kept[source]
	if a == nil {
		a = new(answer)
		c.kept[source] = a
	}
	if err != nil {
		a.Failed = c.now
	} else {
		*a = answer{At: c.now, Items: items}
	}
	c.write()
}

// write replaces the file atomically, as other shells use it too.
func (c *cache) write() {
	if c.path == "" {
		return
	}
	data, err := json.Marshal(c.kept)
	if err != nil || os.MkdirAll(filepath.Dir(c.path), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(c.path), ".completion-*") // 0600
	if err != nil {
		return
	}
	_, err = f.Write(data)
	if f.Close() != nil || err != nil || os.Rename(f.Name(), c.path) != nil {
		os.Remove(f.Name())
	}
}
