// Package node runs Syncer in real Pods: the genuine kubelet, scheduler and
// controllers with containerd and runc, in a network namespace of their own
// beside the control plane of the other tests. It needs Linux, root, some
// packages of the system, and the build tag node; "make test-node" sets it and
// builds the rest.
package node
