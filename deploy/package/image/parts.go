package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/berth-hpc/berth/deploy/images"
)

// parts finds the programs of every platform.
func (o options) parts() ([]images.Parts, error) {
	found, err := o.programs()
	if err != nil {
		return nil, err
	}
	links, err := images.SlurmNames(o.man)
	if err != nil {
		return nil, err
	}
	var all []images.Parts
	for _, p := range slices.Sorted(maps.Keys(found)) {
		platform, err := v1.ParsePlatform(p)
		if err != nil {
			return nil, err
		}
		all = append(all, images.Parts{Platform: *platform, Program: found[p], Links: links, Roots: o.roots,
			Labels: map[string]string{
				"org.opencontainers.image.source":   "https://github.com/berth-hpc/berth",
				"org.opencontainers.image.version":  o.version,
				"org.opencontainers.image.licenses": "Apache-2.0",
			}})
	}
	return all, nil
}

// programs are, by OS/ARCH, the ways to find a program by its name.
func (o options) programs() (map[string]func(string) string, error) {
	found := map[string]func(string) string{}
	for _, b := range o.bins {
		platform, dir, ok := strings.Cut(b, "=")
		if !ok {
			return nil, fmt.Errorf("-bin %s: want OS/ARCH=DIR", b)
		}
		found[platform] = func(name string) string { return filepath.Join(dir, name) }
	}
	if o.dist == "" {
		return found, nil
	}
	built, err := artifacts(o.dist)
	for platform, paths := range built {
		// What is not there has a path that is not there either.
		found[platform] = func(name string) string { return cmp.Or(paths[name], filepath.Join(o.dist, platform, name)) }
	}
	if err == nil && len(found) == 0 {
		err = errors.New("there are no programs for linux in " + o.dist)
	}
	return found, err
}

// artifacts reads what goreleaser says that it has built: paths by OS/ARCH and
// by program. Images are for Linux only.
func artifacts(dist string) (map[string]map[string]string, error) {
	b, err := os.ReadFile(filepath.Join(dist, "artifacts.json"))
	if err != nil {
		return nil, err
	}
	var list []struct {
		Name, Path, GOOS, GOARCH, Type string
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, err
	}
	built := map[string]map[string]string{}
	for _, a := range list {
		if a.Type != "Binary" || a.GOOS != "linux" {
			continue
		}
		platform := a.GOOS + "/" + a.GOARCH
		if built[platform] == nil {
			built[platform] = map[string]string{}
		}
		built[platform][a.Name] = a.Path
	}
	return built, nil
}

// loadBase is the image that base names for a platform, or one of a root file
// system.
func loadBase(ctx context.Context, base string, platform v1.Platform) (v1.Image, error) {
	if st, err := os.Stat(base); err == nil && st.Mode().IsRegular() {
		layer, err := images.PlainLayer(func() (io.ReadCloser, error) { return os.Open(base) })
		if err != nil {
			return nil, err
		}
		return mutate.AppendLayers(empty.Image, layer)
	}
	ref, err := name.ParseReference(base)
	if err != nil {
		return nil, err
	}
	return remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(platform))
}
