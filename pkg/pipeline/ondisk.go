package pipeline

import (
	"context"
	"errors"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
)

// onDisk warns on this process's Pod that its secrets are stored on a disk. It sends one
// Event, if the API server token is bound to a Pod and may create it. The log contains
// the warning too, so nothing depends on the Event.
type onDisk struct {
	settings *settings
	cluster  *kube.Client // nil: it connects for the Event
	clients  connect.Options
	log      *zap.Logger
}

// Run returns after it has sent the Event, or a few seconds later.
func (d *onDisk) Run(ctx context.Context) {
	cluster := d.cluster
	if cluster == nil {
		made, err := connect.Kubernetes(d.settings.config().Kubernetes, d.clients)
		if err != nil {
			d.Report("", err)
			return
		}
		defer made.Close()
		cluster = made
	}
	of := config.BoundTo([]byte(cluster.Token()))
	if of.Pod.Name == "" {
		d.Report("", errors.New("the token for the API server is bound to no Pod"))
		return
	}
	pod := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: of.Namespace, Name: of.Pod.Name, UID: types.UID(of.Pod.UID)}
	r := cluster.NewRecorder("syncer", d)
	r.Event(pod, corev1.EventTypeWarning, reasonOnDisk, "The secrets folder is on a disk; make its volume an emptyDir with medium: Memory")
	now, end := context.WithCancel(ctx)
	end()
	r.Run(now)
}

// Report implements kube.Reporter.
func (d *onDisk) Report(_ string, err error) {
	if err != nil {
		d.log.Debug("No Event was sent about the secrets folder on a disk", zap.Error(err))
	}
}
