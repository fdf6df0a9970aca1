// Command loginnode is the SSH server of Berth's login nodes (see loginnode).
package main

import (
	"os"

	"github.com/berth-hpc/berth/loginnode/daemon"
)

func main() {
	os.Exit(daemon.Main(os.Args[1:], os.Stdout, os.Stderr, daemon.Peers{Connect: connect, Passwords: passwords}))
}
