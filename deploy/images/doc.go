// Package images makes the images of a release from programs that are built:
// of the scheduler, the agent, the commands and the login node. They need no
// container engine to be made, hold nothing but what they are for, and are the
// same bytes for the same programs.
package images
