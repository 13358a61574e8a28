package kube

import (
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// These are the API groups in use. Kubernetes' generated clients would support them too,
// but link and register all kinds of all groups. That costs a fifth of the binary and a
// quarter of a sidecar's memory (decision 046).
type (
	coreV1         struct{ rest.Interface }
	appsV1         struct{ rest.Interface }
	batchV1        struct{ rest.Interface }
	coordinationV1 struct{ rest.Interface }
)

func (g coreV1) Namespaces() requests[*corev1.Namespace, *corev1.NamespaceList] {
	return of[corev1.Namespace, corev1.NamespaceList](g, "namespaces", "")
}

func (g coreV1) ConfigMaps(namespace string) requests[*corev1.ConfigMap, *corev1.ConfigMapList] {
	return of[corev1.ConfigMap, corev1.ConfigMapList](g, "configmaps", namespace)
}

func (g coreV1) Events(namespace string) requests[*corev1.Event, *corev1.EventList] {
	return of[corev1.Event, corev1.EventList](g, "events", namespace)
}

func (g coreV1) Pods(namespace string) requests[*corev1.Pod, *corev1.PodList] {
	return of[corev1.Pod, corev1.PodList](g, "pods", namespace)
}

func (g coreV1) ReplicationControllers(namespace string) requests[*corev1.ReplicationController, *corev1.ReplicationControllerList] {
	return of[corev1.ReplicationController, corev1.ReplicationControllerList](g, "replicationcontrollers", namespace)
}

func (g coreV1) Secrets(namespace string) requests[*corev1.Secret, *corev1.SecretList] {
	return of[corev1.Secret, corev1.SecretList](g, "secrets", namespace)
}

func (g coreV1) ServiceAccounts(namespace string) requests[*corev1.ServiceAccount, *corev1.ServiceAccountList] {
	return of[corev1.ServiceAccount, corev1.ServiceAccountList](g, "serviceaccounts", namespace)
}

func (g appsV1) DaemonSets(namespace string) requests[*appsv1.DaemonSet, *appsv1.DaemonSetList] {
	return of[appsv1.DaemonSet, appsv1.DaemonSetList](g, "daemonsets", namespace)
}

func (g appsV1) Deployments(namespace string) requests[*appsv1.Deployment, *appsv1.DeploymentList] {
	return of[appsv1.Deployment, appsv1.DeploymentList](g, "deployments", namespace)
}

func (g appsV1) ReplicaSets(namespace string) requests[*appsv1.ReplicaSet, *appsv1.ReplicaSetList] {
	return of[appsv1.ReplicaSet, appsv1.ReplicaSetList](g, "replicasets", namespace)
}

func (g appsV1) StatefulSets(namespace string) requests[*appsv1.StatefulSet, *appsv1.StatefulSetList] {
	return of[appsv1.StatefulSet, appsv1.StatefulSetList](g, "statefulsets", namespace)
}

func (g batchV1) CronJobs(namespace string) requests[*batchv1.CronJob, *batchv1.CronJobList] {
	return of[batchv1.CronJob, batchv1.CronJobList](g, "cronjobs", namespace)
}

func (g batchV1) Jobs(namespace string) requests[*batchv1.Job, *batchv1.JobList] {
	return of[batchv1.Job, batchv1.JobList](g, "jobs", namespace)
}

func (g coordinationV1) Leases(namespace string) requests[*coordinationv1.Lease, *coordinationv1.LeaseList] {
	return of[coordinationv1.Lease, coordinationv1.LeaseList](g, "leases", namespace)
}

// of returns the requests for objects of type O, with lists of type OL.
func of[O, OL any, T interface {
	*O
	named
}, L interface {
	*OL
	runtime.Object
}](group rest.Interface, resource, namespace string) requests[T, L] {
	return requests[T, L]{group, resource, namespace, func() T { return new(O) }, func() L { return new(OL) }}
}

// newScheme returns a scheme with the kinds of these groups.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"}) // such as Status
	groups := runtime.NewSchemeBuilder(corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme)
	return s, groups.AddToScheme(s)
}

// newGroup returns the client of one group.
func newGroup(config *rest.Config, client *http.Client, codecs serializer.CodecFactory, group schema.GroupVersion) (rest.Interface, error) {
	own := rest.CopyConfig(config)
	own.GroupVersion, own.APIPath = &group, "/apis"
	if group.Group == "" {
		own.APIPath = "/api"
	}
	own.NegotiatedSerializer = codecs.WithoutConversion()
	return rest.RESTClientForConfigAndClient(own, client)
}
