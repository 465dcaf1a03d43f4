//go:build tools

// Package tools names the metal-operator whose manifests the tests compare ours with, and its probe.
package tools

import _ "github.com/ironcore-dev/metal-operator/cmd/metalprobe"
