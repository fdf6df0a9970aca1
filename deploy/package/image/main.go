// Command image makes the images of a release: image -version V -dist DIR takes
// the programs that goreleaser has built there, for every platform of which
// there are any; -bin OS/ARCH=DIR takes those of a directory. Without -push it
// writes one archive (an image layout of OCI) for each image into -out, else it
// sends them to a registry. It says how large each image is, and fails when one
// is larger than it may be.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/berth-hpc/berth/deploy/images"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image: error:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	version, dist, man, out, push, registry, base, roots string

	bins, only []string
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("image", flag.ContinueOnError)
	f.StringVar(&o.version, "version", "", "tag of the images (needed)")
	f.StringVar(&o.dist, "dist", "", "goreleaser's directory, with artifacts.json")
	f.StringVar(&o.man, "man", "docs/man", "directory of the manual pages, which tell the commands' names")
	f.StringVar(&o.out, "out", "dist/images", "directory of the archives")
	f.StringVar(&o.registry, "registry", "ghcr.io/berth-hpc", "what images' names begin with")
	f.StringVar(&o.push, "push", "", "yes: send the images to the registry, by the credentials of docker login")
	f.StringVar(&o.base, "login-base", "docker.io/library/debian:stable-slim",
		"image that the login node's is made on, or an archive of tar(1) with a root file system")
	f.StringVar(&o.roots, "roots", "/etc/ssl/certs/ca-certificates.crt",
		"certificates of authorities for the scheduler's image; \"\": none")
	f.Func("bin", "OS/ARCH=DIR: directory of programs of a platform (again for another)", func(s string) error {
		o.bins = append(o.bins, s)
		return nil
	})
	f.Func("only", "name of an image to make (again for another); all", func(s string) error {
		o.only = append(o.only, s)
		return nil
	})
	err := f.Parse(args)
	if err == nil && (o.version == "" || (o.dist == "") == (len(o.bins) == 0) || f.NArg() > 0) {
		err = errors.New("usage: image -version V (-dist DIR | -bin OS/ARCH=DIR ...) [-out DIR] [-push yes]")
	}
	return o, err
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	parts, err := o.parts()
	if err != nil {
		return err
	}
	for _, k := range kinds {
		if len(o.only) > 0 && !slices.Contains(o.only, k.name) {
			continue
		}
		if err := o.make(ctx, k, parts, out); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return nil
}

// kind is one of the images. Sizes are what a node fetches, compressed.
type kind struct {
	name string
	spec func(images.Parts) images.Spec
	most int64 // bytes
	base bool  // made on the login node's base
}

const mb = 1 << 20

var kinds = []kind{
	{images.Agent, images.Parts.Agent, 10 * mb, false},
	{images.Commands, images.Parts.Commands, 40 * mb, false},
	{images.Scheduler, images.Parts.Scheduler, 90 * mb, false},
	{images.Login, images.Parts.Login, 400 * mb, true}, // most of it the base's
}

// make makes one image for all platforms, and writes or sends it.
func (o options) make(ctx context.Context, k kind, all []images.Parts, out io.Writer) error {
	var made []v1.Image
	for _, p := range all {
		if k.base {
			base, err := loadBase(ctx, o.base, p.Platform)
			if err != nil {
				return fmt.Errorf("base: %w", err)
			}
			p.Base = base
		}
		image, err := images.Build(k.spec(p))
		if err != nil {
			return err
		}
		size, err := images.Size(image)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %s/%s: %.1f MB\n", k.name, p.Platform.OS, p.Platform.Architecture, float64(size)/mb)
		if size > k.most {
			return fmt.Errorf("%d bytes, may be %d", size, k.most)
		}
		made = append(made, image)
	}
	index, err := images.Index(made)
	if err != nil {
		return err
	}
	return o.deliver(ctx, k, index)
}

func (o options) deliver(ctx context.Context, k kind, index v1.ImageIndex) error {
	full := o.registry + "/" + k.name + ":" + strings.ReplaceAll(o.version, "~", "-") // no tag has a ~
	ref, err := name.NewTag(full)
	if err != nil {
		return err
	}
	if o.push != "" {
		return remote.WriteIndex(ref, index, remote.WithContext(ctx),
			remote.WithAuthFromKeychain(authn.DefaultKeychain))
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	return images.WriteArchive(filepath.Join(o.out, k.name+".tar"), map[string]v1.ImageIndex{full: index})
}
