// Package ui holds what the pages of the terminal UI share: keys, styles, tables,
// lists with a cursor, a text input, and the messages that pages send to the
// program. It does not depend on jobs.
package ui
