package auth

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/loginnode/asuser"
)

// Files is a pair of files in the formats of passwd(5) and group(5), read
// again for each login, such as those that nsscache writes.
type Files struct {
	Passwd, Group string
}

// Lookup implements Directory.
func (f Files) Lookup(ctx context.Context, name string) (*User, error) {
	return within(ctx, asServer, func() (*User, error) { return f.find(name) })
}

// asServer reads files that belong to no user with the server's rights.
func asServer(f func() error) error { return asuser.Wait(asuser.User{UID: asuser.Nobody}, f) }

// within runs a function that may block on a file, and waits for it until ctx is done. A
// blocked function continues in the background; as, which runs it with a user's rights,
// bounds their number.
func within[T any](ctx context.Context, as func(func() error) error, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		a.err = as(func() (err error) {
			a.value, err = f()
			return err
		})
		done <- a
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (f Files) find(name string) (*User, error) {
	file, err := os.Open(f.Passwd)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	u, err := findPasswd(file, name)
	if err != nil {
		return nil, err
	}
	u.Source = f.Passwd
	groups, err := os.Open(f.Group)
	if err != nil {
		return nil, err
	}
	defer groups.Close()
	u.Groups, err = groupsOf(groups, u)
	return u, err
}

// findPasswd returns a user and checks that no other user has the same uid: two users
// with one uid own each other's files.
func findPasswd(r io.Reader, name string) (*User, error) {
	var found *User
	owner := map[int]string{}
	var broken error
	err := eachLine(r, func(line string) error {
		u, err := ParsePasswd(line)
		if err != nil { // ignore an invalid line of another user
			if strings.HasPrefix(line, name+":") {
				broken = err
			}
			return nil
		}
		if first, taken := owner[u.UID]; taken && u.UID != 0 && first != u.Name && (u.Name == name || first == name) {
			return fmt.Errorf("users %s and %s have the same uid %d", first, u.Name, u.UID)
		}
		if _, taken := owner[u.UID]; !taken {
			owner[u.UID] = u.Name
		}
		if u.Name == name && found == nil {
			found = u
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		return found, nil
	case broken != nil:
		return nil, broken
	}
	return nil, ErrUnknownUser
}

// Bounds of passwd and group files. A group may have thousands of members. A line that
// is longer is skipped.
const (
	maxFile     = 64 << 20
	maxFileLine = 4 << 20
)

// eachLine calls f with each line until it returns an error.
func eachLine(r io.Reader, f func(line string) error) error {
	in := bufio.NewReader(io.LimitReader(r, maxFile))
	var line []byte
	for over := false; !over; {
		part, err := in.ReadSlice('\n')
		if len(line) <= maxFileLine {
			line = append(line, part...)
		}
		switch over = errors.Is(err, io.EOF); {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !over:
			return err
		}
		if len(line) > 0 && len(line) <= maxFileLine {
			if err := f(strings.TrimSuffix(string(line), "\n")); err != nil {
				return err
			}
		}
		line = line[:0]
	}
	return nil
}

// groupsOf returns the user's groups in a file in the format of group(5).
func groupsOf(r io.Reader, u *User) ([]int, error) {
	groups := []int{u.GID}
	err := eachLine(r, func(line string) error {
		f := strings.Split(line, ":")
		if len(f) != 4 || !slices.Contains(strings.Split(f[3], ","), u.Name) {
			return nil
		}
		gid, err := strconv.ParseUint(f[2], 10, 32)
		if err == nil && gid <= maxID && !slices.Contains(groups, int(gid)) {
			groups = append(groups, int(gid))
		}
		return nil
	})
	return groups, err
}
