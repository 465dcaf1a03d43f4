module beskar7.test/bmo

go 1.25.0

require github.com/metal3-io/baremetal-operator v0.13.2
