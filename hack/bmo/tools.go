//go:build tools

// Package tools names the baremetal-operator whose manifests the tests compare ours with.
package tools

import _ "github.com/metal3-io/baremetal-operator/pkg/version"
