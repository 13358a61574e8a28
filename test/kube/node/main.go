// Command node holds the parts of Kubernetes that make Pods run: kubelet,
// kube-scheduler, kube-controller-manager and kube-proxy, the genuine ones. It
// is a program beside the control plane's, because building it takes minutes
// that only the tests in real Pods need to pay. "make node" builds it;
// "kube up --node" runs its parts.
package main

import (
	"context"
	"fmt"
	"os"
	_ "time/tzdata" // of CronJobs

	"k8s.io/component-base/cli"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	// Each part finds its flags in os.Args, as in a program of its own.
	name := os.Args[1]
	os.Args = os.Args[1:]
	switch name {
	case "kubelet":
		os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background())))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllers.NewControllerManagerCommand()))
	case "kube-proxy":
		os.Exit(cli.Run(proxy.NewProxyCommand()))
	default:
		usage()
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: node kubelet|kube-scheduler|kube-controller-manager|kube-proxy [flags]")
	os.Exit(2)
}
