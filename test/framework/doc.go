// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

// Package framework is what the tests of the whole operator are made of: a real
// API server for each test package, managers inside the test's process whose every
// request can be watched, held, failed or lost, managers as processes of their own
// that can be killed, and scripted providers.
//
// A manager inside the process is the product's own: the options, controllers and
// settings of package controllers, with nothing replaced. Only its two wires to the
// world are the framework's: the round tripper below its client for the API server
// (Wire), and the HTTP server in front of the scripted providers (Gateway), which
// tells managers by their User-Agent. Cutting both at one instant is how a crash
// looks from the outside.
//
// Nothing here waits for time to pass: what is waited for is a request, a call or a
// state, and a limit on the wait is only there to end a test that has failed.
package framework
