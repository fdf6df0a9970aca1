package session

import (
	"context"
	"os/exec"
	"os/user"
	"strconv"
	"time"
)

// sftpServer returns the program that serves sftp for this session; "": the child
// itself. OpenSSH's server exits at once for users without an entry in passwd, as those
// that only the cluster has.
func (s *Session) sftpServer() string {
	if s.cfg.SFTPServer == debianSFTP && s.Conn.Inside == nil && !named(s.ctx, s.Conn.Login.User.UID) {
		return ""
	}
	return s.cfg.SFTPServer
}

// named reports whether getpwuid(3) finds a uid.
func named(ctx context.Context, uid int) bool {
	id := strconv.Itoa(uid)
	if _, err := user.LookupId(id); err == nil {
		return true // in /etc/passwd, which needs no process
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, "getent", "passwd", id).Run() == nil
}
