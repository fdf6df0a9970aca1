package agent

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// prepare prepares a pod for its job, in an init container (wire.AgentPrepare). It
// returns the exit code.
func prepare(args []string, out io.Writer) int {
	var hosts, bin, mounts string
	f := flag.NewFlagSet("agent prepare", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&hosts, "hosts", "", "file that becomes the job's /etc/hosts")
	accounts := accountFiles{from: "/etc"}
	f.StringVar(&accounts.to, "names", "", "directory to which passwd and group are written")
	f.StringVar(&accounts.message, "image-names", "", "file to which the image's own passwd and group are written")
	f.StringVar(&accounts.user, "user", "", "the user, as NAME:UID:GID:HOME:SHELL")
	f.Func(
		"group",
		"a group, as NAME:GID",
		func(s string) error { accounts.groups = append(accounts.groups, s); return nil },
	)
	f.StringVar(&mounts, "mounts", "", "file to which the identities of the mounts SOURCE:TARGET are written")
	f.StringVar(&bin, "bin", "", "directory to which the agent's directory is copied")
	if err := f.Parse(args); err != nil {
		return 2
	}
	err := recordMounts(mounts, f.Args())
	if hosts != "" {
		err = errors.Join(err, copyFile("/etc/hosts", hosts, 0o644))
	}
	if accounts.to != "" {
		err = errors.Join(err, accounts.write())
	}
	if bin != "" {
		err = errors.Join(err, copyCommands(bin))
	}
	if err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	return 0
}

// copyCommands copies the directory of this program: files and links.
func copyCommands(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from := filepath.Dir(self)
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if link, err := os.Readlink(source); err == nil {
			if err := os.Symlink(link, target); err != nil && !errors.Is(err, os.ErrExist) {
				return err
			}
			continue
		}
		if !e.Type().IsRegular() {
			continue
		}
		if err := copyFile(source, target, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file, and replaces the target atomically.
func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return writeFile(in, to, mode)
}

// writeFile writes a temporary file and renames it, so that a restarted container
// does not find a partial file.
func writeFile(in io.Reader, to string, mode os.FileMode) error {
	tmp := to + ".new"
	out, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, to)
}
