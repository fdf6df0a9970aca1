// Package data is what the pages show: the queue as a watch tells it, kept in
// columns, and what the pages may ask of the cluster.
package data
