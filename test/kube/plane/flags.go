package plane

import (
	"fmt"
	"strconv"
)

func (p *plane) etcdFlags() []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", p.ports.etcd)
	peer := fmt.Sprintf("http://127.0.0.1:%d", p.ports.etcdPeer)
	return []string{
		"--data-dir=" + p.path("etcd"),
		"--unsafe-no-fsync", // the data end with the test
		"--log-level=warn",
		"--socket-reuse-port", // the ports are held, see ports.go
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
	}
}

func (p *plane) apiserverFlags() []string {
	flags := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", p.ports.etcd),
		"--secure-port=" + strconv.Itoa(p.ports.apiserver),
		"--permit-port-sharing", // the port is held, see ports.go
		"--service-cluster-ip-range=" + serviceNetwork,
		"--tls-cert-file=" + p.path("apiserver.crt"), "--tls-private-key-file=" + p.path("apiserver.key"),
		"--client-ca-file=" + p.path("ca.crt"),
		"--service-account-issuer=" + p.url,
		"--service-account-signing-key-file=" + p.path("sa.key"), "--service-account-key-file=" + p.path("sa.pub"),
		"--audit-policy-file=" + p.path("audit-policy.yaml"), "--audit-log-path=" + p.path("audit.log"),
		"--audit-log-maxsize=0", // one file, whatever its size
		"--profiling=false",
	}
	if p.pods != nil {
		return append(flags, p.flagsForPods()...)
	}
	return append(flags,
		"--bind-address=127.0.0.1",
		// An Endpoints object may not hold a loopback address.
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--authorization-mode=RBAC",
		// The plugin wants each Pod to have a service account that a controller
		// makes; no controller runs here.
		"--disable-admission-plugins=ServiceAccount",
	)
}

// auditPolicy records who asked for what and how it was answered, but no
// bodies. The stage RequestReceived is kept: it is written before the answer,
// so that a call that was answered is surely in the log. The API server's own
// calls and the polls for readiness are left out.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: None, users: ["system:apiserver"]}
- {level: None, nonResourceURLs: ["/readyz*", "/livez*", "/healthz*"]}
- {level: Metadata}
`
