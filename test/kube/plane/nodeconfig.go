package plane

const (
	serviceNetwork    = "10.0.0.0/24"
	kubernetesService = "10.0.0.1"
	podNetwork        = "10.1.0.0/24"
	nodeAddress       = "10.2.0.1" // the kubelet takes no loopback address
	nodeName          = "node"
)

// containerdConfig has all state in the node's directory. A machine that may
// not lower oom_score_adj, such as a container, can still run Pods.
const containerdConfig = `version = 2
root = "NODE_DIR/containerd/root"
state = "NODE_DIR/containerd/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "NODE_DIR/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "NODE_DIR/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "syncer.test/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "NODE_DIR/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`

const podNetworkConfig = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [{
  "type": "ptp", "ipMasq": false, "ipam": {
    "type": "host-local", "dataDir": "NODE_DIR/addresses",
    "ranges": [[{"subnet": "POD_NETWORK"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

// kubeletConfig does without what keeps a node of a cluster alive, such as
// evictions, and has the kubelet look again soon after a failure.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://NODE_DIR/containerd.sock
address: 0.0.0.0
port: 10250
healthzPort: 0
readOnlyPort: 0
tlsCertFile: PLANE_DIR/kubelet-server.crt
tlsPrivateKeyFile: PLANE_DIR/kubelet-server.key
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: PLANE_DIR/ca.crt}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: /CGROUP
failCgroupV1: false
failSwapOn: false
protectKernelDefaults: true
enforceNodeAllocatable: []
evictionHard: {memory.available: 1Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%, imagefs.inodesFree: 0%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
makeIPTablesUtilChains: false
resolvConf: ""
podLogsDir: NODE_DIR/pods
volumePluginDir: NODE_DIR/plugins
maxPods: 200
syncFrequency: 5s
nodeStatusUpdateFrequency: 5s
crashLoopBackOff: {maxContainerRestartPeriod: 2s}
eventRecordQPS: 0
`
