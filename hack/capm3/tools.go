//go:build tools

// Package tools names the Metal3 managers and the clusterctl that the test bed builds.
package tools

import (
	_ "github.com/metal3-io/cluster-api-provider-metal3"
	_ "github.com/metal3-io/ip-address-manager"
	_ "sigs.k8s.io/cluster-api/cmd/clusterctl"
)
