// Command kube holds the parts of a Kubernetes control plane that tests talk
// to: etcd and kube-apiserver, the genuine ones, and "up", which runs the two
// as its children, with a node beside them if asked for. It is a module of its own, so that Kubernetes is no
// dependency of the main module. "make kube" builds it; tests start it through
// the package kubetest.
//
//	kube up [--dir DIR] [--stdin] [--timeout 2m] [--node PROGRAM --images DIR]
//	kube etcd …
//	kube kube-apiserver …
package main

import (
	"fmt"
	"os"

	"github.com/secretsync/syncer/test/kube/plane"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the API server's own client in its /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info in its /metrics
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	// Each part finds its flags in os.Args, as in a program of its own.
	name := os.Args[1]
	os.Args = os.Args[1:]
	switch name {
	case "up":
		os.Exit(plane.Up(os.Args[1:]))
	case "node":
		os.Exit(plane.Node(os.Args[1:]))
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	default:
		usage()
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: kube up|etcd|kube-apiserver [flags]")
	os.Exit(2)
}
