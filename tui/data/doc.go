// Package data holds what the pages of the terminal UI show: the rows of a watch
// of the queue, stored in columns, and the requests that pages send to the cluster.
package data
