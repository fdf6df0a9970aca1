// Package ui is what the pages of the terminal UI share: keys, styles, the
// list with a cursor, lines of input, and the messages by which pages ask the
// program for something. It knows nothing of jobs.
package ui
