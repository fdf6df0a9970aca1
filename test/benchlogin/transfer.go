package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	bulkSize = 200 << 20 // bytes of a transfer
	flows    = 200       // concurrent forwarded connections
	flowSize = 512 << 10 // bytes that each transfers
)

// bulk returns the rate at which a command's output arrives, in MB/s.
func (r *rig) bulk(t *target) (float64, error) {
	c, err := r.dial(t)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	s, err := c.NewSession()
	if err != nil {
		return 0, err
	}
	out, err := s.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := s.Start("head -c " + strconv.Itoa(bulkSize) + " /dev/zero"); err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, out)
	if err == nil && n != bulkSize {
		err = fmt.Errorf("%d bytes of %d", n, bulkSize)
	}
	return bulkSize / 1e6 / time.Since(began).Seconds(), err
}

// upload returns the rate at which OpenSSH's sftp stores a file, in MB/s.
func (r *rig) upload(t *target) (float64, error) {
	from := r.dir + "/bulk"
	if _, err := os.Stat(from); err != nil {
		if err := os.WriteFile(from, bytes.Repeat([]byte("0123456789abcdef"), bulkSize/16), 0o644); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	err := r.sftp(t, "put "+from+" bulk\n")
	return bulkSize / 1e6 / time.Since(began).Seconds(), err
}

// download returns the rate at which OpenSSH's sftp retrieves the file that upload has
// stored, in MB/s.
func (r *rig) download(t *target) (float64, error) {
	began := time.Now()
	err := r.sftp(t, "get bulk "+r.dir+"/downloaded\n")
	return bulkSize / 1e6 / time.Since(began).Seconds(), err
}

// sftp runs OpenSSH's sftp with the commands.
func (r *rig) sftp(t *target, commands string) error {
	args := append(r.clientOptions(), "-P", t.port(), "-b", "-", r.user+"@127.0.0.1")
	cmd := exec.Command("sftp", args...)
	cmd.Stdin = strings.NewReader(commands)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("sftp: %w %s", err, out)
	}
	return nil
}

// stream returns the rate at which OpenSSH's client sends input to a command, in MB/s. The
// client chooses the cipher.
func (r *rig) stream(t *target) (float64, error) {
	from, err := os.Open("/dev/zero")
	if err != nil {
		return 0, err
	}
	defer func() { _ = from.Close() }()
	args := append(r.clientOptions(), "-p", t.port(), r.user+"@127.0.0.1", "exec cat > /dev/null")
	cmd := exec.Command("ssh", args...)
	cmd.Stdin = io.LimitReader(from, bulkSize)
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("ssh: %w %s", err, out)
	}
	return bulkSize / 1e6 / time.Since(began).Seconds(), nil
}

// smallFiles returns how many files rsync copies per second.
func (r *rig) smallFiles(t *target) (float64, error) {
	const files = 2000
	from := r.dir + "/small"
	if _, err := os.Stat(from); err != nil {
		if err := os.Mkdir(from, 0o755); err != nil {
			return 0, err
		}
		for i := range files {
			if err := os.WriteFile(fmt.Sprintf("%s/%d", from, i), []byte("some text"), 0o644); err != nil {
				return 0, err
			}
		}
	}
	if err := r.once(t, "rm -rf small"); err != nil {
		return 0, err
	}
	client := "ssh " + strings.Join(append(r.clientOptions(), "-p", t.port()), " ")
	began := time.Now()
	out, err := exec.Command("rsync", "-a", "-e", client, from, r.user+"@127.0.0.1:").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("rsync: %w %s", err, out)
	}
	return files / time.Since(began).Seconds(), nil
}

// clientOptions returns options of OpenSSH's clients: no configuration of the machine's, and
// the key.
func (r *rig) clientOptions() []string {
	return []string{
		"-F", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-i", r.dir + "/key",
	}
}

// port returns the port of the server.
func (t *target) port() string {
	_, port, _ := net.SplitHostPort(t.addr)
	return port
}

// forwards returns the total rate of many concurrent forwarded connections, in MB/s. On each
// the client sends, closes its direction, and must receive the number of its bytes.
func (r *rig) forwards(t *target) (float64, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				n, _ := io.Copy(io.Discard, c)
				_, _ = fmt.Fprint(c, n)
			}()
		}
	}()
	c, err := r.dial(t)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	began := time.Now()
	failed := make(chan error, flows)
	for range flows {
		go func() { failed <- flow(c, l.Addr().String()) }()
	}
	for range flows {
		err = errors.Join(err, <-failed)
	}
	return flows * flowSize / 1e6 / time.Since(began).Seconds(), err
}

// flow sends flowSize bytes over a forwarded connection to a server that counts them.
func flow(c *ssh.Client, to string) error {
	conn, err := c.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(make([]byte, flowSize)); err != nil {
		return err
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return err
	}
	got, err := io.ReadAll(conn)
	if err == nil && string(got) != strconv.Itoa(flowSize) {
		err = fmt.Errorf("the server received %q of %d bytes", got, flowSize)
	}
	return err
}
