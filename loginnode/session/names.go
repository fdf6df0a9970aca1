package session

import (
	"context"
	"os/exec"
	"os/user"
	"strconv"
	"time"
)

// sftpServer is the program that serves sftp to this session; "": the child
// does it itself. OpenSSH's ends at once for who has no name in the system's
// eyes, as users have whom only the cluster knows.
func (s *Session) sftpServer() string {
	if s.cfg.SFTPServer == debianSFTP && s.Conn.Inside == nil && !named(s.ctx, s.Conn.Login.User.UID) {
		return ""
	}
	return s.cfg.SFTPServer
}

// named tells whether getpwuid(3) knows a uid.
func named(ctx context.Context, uid int) bool {
	id := strconv.Itoa(uid)
	if _, err := user.LookupId(id); err == nil {
		return true // the file's, without a process for it
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, "getent", "passwd", id).Run() == nil
}
