//go:build tools

// Package tools names the metal-operator whose manifests the tests compare ours with, its probe, and its pretend BMC.
package tools

import (
	_ "github.com/ironcore-dev/metal-operator/bmc/mock"
	_ "github.com/ironcore-dev/metal-operator/cmd/metalprobe"
)
