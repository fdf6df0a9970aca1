// Package limit keeps one client or user of the login node from taking the
// server from the others. Connections bounds those that have not logged in and
// makes addresses wait whose connections fail; Quotas bounds what one user holds
// at a time; Rates bounds how fast one user may begin something.
package limit
