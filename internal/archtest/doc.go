// Package archtest checks the structure and the language of the code: which package may
// import which, which packages are pure, that every package has a comment, that the
// documents name what exists, and that lines are short and words are usual. The tests
// read the source files themselves, so that no cache can hide a change.
package archtest
