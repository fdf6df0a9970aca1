package realnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// User is a user who submits jobs. Its group has the same name and number, its home is
// /home/NAME.
type User struct {
	Name  string
	ID    uint32
	Level string   // "": None
	Keys  []string // lines of authorized_keys
}

func (u User) level() string {
	if u.Level == "" {
		return "None"
	}
	return u.Level
}

// Home is the user's home, on the login side and in jobs.
func (u User) Home() string { return "/home/" + u.Name }

var accountFiles = []string{"passwd", "group"}

// ownAccounts gives the site users that the machine does not have.
func ownAccounts(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range accountFiles {
		real, own := filepath.Join("/etc", f), filepath.Join(dir, f)
		if err := copyFile(real, own); err != nil {
			return err
		}
		if err := unix.Mount(own, real, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("own %s: %w", real, err)
		}
	}
	return nil
}

// addAccount adds the user to the site's account files and creates the home.
func addAccount(u User) error {
	lines := map[string]string{
		"passwd": fmt.Sprintf("%s:x:%d:%d::%s:/bin/bash\n", u.Name, u.ID, u.ID, u.Home()),
		"group":  fmt.Sprintf("%s:x:%d:\n", u.Name, u.ID),
	}
	for file, line := range lines {
		f, err := os.OpenFile(filepath.Join("/etc", file), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(line)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	if err := os.Mkdir(u.Home(), 0o755); err != nil {
		return err
	}
	return os.Chown(u.Home(), int(u.ID), int(u.ID))
}

// As runs one of Berth's commands as the user, in dir, with the environment of a new
// login, and returns its standard output. An error includes its standard error.
func (s *Site) As(ctx context.Context, u User, dir, command string, args ...string) (string, error) {
	return s.asWith(ctx, u, nil, dir, command, args...)
}

// asWith is As with more variables of the environment.
func (s *Site) asWith(ctx context.Context, u User, env []string, dir, command string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.Bin, command), args...)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"HOME=" + u.Home(), "USER=" + u.Name, "LOGNAME=" + u.Name, "SHELL=/bin/bash", "LANG=C.UTF-8",
		"PATH=" + s.Bin + ":/usr/local/bin:/usr/bin:/bin",
	}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.ID, Gid: u.ID}}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", command, err, stderr.String())
	}
	return string(out), err
}
