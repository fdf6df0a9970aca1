package images

import (
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Names of the images of a release, without registry and version. The chart uses them.
const (
	Scheduler = "berth-scheduler"
	Agent     = "berth-agent"
	Commands  = "berth"
	Login     = "berth-login"
)

// binDir is where the agent's directory is in images (wire.DefaultBinDir).
const binDir = "berth/bin"

// nonRoot is the user of images whose programs need no rights.
const nonRoot = "65532:65532"

// Parts are what images are made of.
type Parts struct {
	Platform v1.Platform
	Bin      string // directory of the programs of that platform
	// Program finds a program; nil: by its name in Bin.
	Program func(name string) string
	// Links are the names that the multi-call binary goes by besides its own.
	Links []string
	// Base is what the login node's image is made on, for that platform: it
	// has a shell.
	Base v1.Image
	// Roots is a file of certificates by which the scheduler knows servers
	// outside of the cluster (PostgreSQL's).
	Roots string
	// Labels are those of every image.
	Labels map[string]string
	// Plain is Spec's.
	Plain bool
}

func (p Parts) program(name string) string {
	if p.Program != nil {
		return p.Program(name)
	}
	return filepath.Join(p.Bin, name)
}

func (p Parts) spec() Spec { return Spec{Platform: p.Platform, Labels: p.Labels, Plain: p.Plain} }

// Scheduler is the specification of the scheduler's image: the program, and
// what a program without a Linux distribution around it looks for.
func (p Parts) Scheduler() Spec {
	s := p.spec()
	s.Files = append(skeleton(p.Roots), File{Path: "scheduler", From: p.program("scheduler")})
	s.Entrypoint, s.User = []string{"/scheduler"}, nonRoot
	return s
}

// Agent is that of the agent's image: the directory that is mounted into jobs, and
// nothing beside it. It is never run by itself, but to copy that directory.
func (p Parts) Agent() Spec {
	s := p.spec()
	s.Files = append(p.commands(binDir, "berth"), File{Path: binDir + "/agent", From: p.program("agent")})
	s.Entrypoint, s.User = []string{"/" + binDir + "/agent"}, nonRoot
	return s
}

// Commands is that of the commands' image, for machines and pipelines that have
// containers and no package manager.
func (p Parts) Commands() Spec {
	s := p.spec()
	s.Files = append(skeleton(p.Roots), p.commands("usr/bin", commands...)...)
	s.Entrypoint, s.User, s.Env = []string{"/usr/bin/berth"}, nonRoot, []string{"PATH=/usr/bin"}
	return s
}

// Login is that of the login node's image: the base, the server, the commands.
// It runs as root, with the few capabilities that the chart leaves it.
func (p Parts) Login() Spec {
	s := p.spec()
	s.Base = p.Base
	s.Files = append(p.commands(binDir, commands...), File{Path: binDir + "/loginnode", From: p.program("loginnode")})
	s.Entrypoint, s.User = []string{"/" + binDir + "/loginnode"}, "0:0"
	return s
}

// commands are the programs that people call.
var commands = []string{"berth", "berth-tools", "berth-tui"}

func (p Parts) commands(dir string, programs ...string) []File {
	var files []File
	for _, name := range programs {
		files = append(files, File{Path: dir + "/" + name, From: p.program(name)})
	}
	for _, name := range p.Links {
		files = append(files, File{Path: dir + "/" + name, Link: "berth"})
	}
	return files
}

// skeleton is what programs expect that are linked statically.
func skeleton(roots string) []File {
	files := []File{
		{
			Path: "etc/passwd",
			Text: "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n",
		},
		{Path: "etc/group", Text: "root:x:0:\nnonroot:x:65532:\n"},
		{Path: "tmp/", Mode: 0o1777},
	}
	if roots != "" {
		files = append(files, File{Path: "etc/ssl/certs/ca-certificates.crt", From: roots, Mode: 0o644})
	}
	return files
}

// SlurmNames are the commands' names that a directory of manual pages (docs/man)
// has pages of, besides Berth's own.
func SlurmNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name, page := strings.CutSuffix(e.Name(), ".1")
		if page && !strings.HasPrefix(name, "berth") {
			names = append(names, name)
		}
	}
	return names, nil
}
