//go:build tools

// Package tools names the etcd program that the test bed builds.
package tools

import _ "go.etcd.io/etcd/server/v3"
