// Package clusterview renders a snapshot as the rows that commands show: the nodes
// and partitions of sinfo and scontrol, the priorities of sprio, and the shares of
// sshare. It is pure.
package clusterview
