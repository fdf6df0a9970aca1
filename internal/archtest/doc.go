// Package archtest holds the tests that keep the house in order: which package
// may import which, what stays pure, and that every package says what it is
// for. They read the source files themselves, so that no cache can hide a
// change.
package archtest
