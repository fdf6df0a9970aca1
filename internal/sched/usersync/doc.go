// Package usersync keeps User objects, and the coordinators of accounts, in step with the
// sources of users that a site has: LDAP directories and files.
//
// A plan (makePlan) is a function of the sources' listings and of the objects; the Controller
// makes and applies one after each listing. It changes only Users with the label
// v1alpha1.LabelSource, and only the fields that sources decide. It never deletes a User: a
// user who is missing from a source is disabled, so that nobody else gets the uid
// while files and jobs have it.
package usersync
