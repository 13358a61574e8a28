// Command bare is the baseline of BenchmarkScale: the least that a program can do with
// client-go for the Secrets that Syncer fills. It follows them by an informer, and writes
// one value to each by server-side apply. It asks no Conjur server for the value.
package main

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"log"
	"os/signal"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

// options are the flags.
type options struct {
	kubeconfig, namespace, selector, value, templated string
	workers                                           int
	read                                              bool
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the API server")
	flag.StringVar(&o.namespace, "namespace", "", "namespace of the Secrets; empty: all")
	flag.StringVar(&o.selector, "selector", "conjur.org/managed-by-provider=true", "labels of the Secrets")
	flag.StringVar(&o.value, "value", "", "what to write under the key value; empty: only watch")
	flag.StringVar(&o.templated, "templated", "", "names less than this also get the ConfigMap's text under the key out")
	flag.BoolVar(&o.read, "read", false, "read each Secret before the write")
	flag.IntVar(&o.workers, "workers", 4, "writes at the same time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return err
	}
	f := &filler{options: o, client: client, queue: workqueue.NewTyped[cache.ObjectName]()}
	secrets := f.secrets()
	go secrets.Run(ctx.Done())
	if o.templated != "" {
		go f.template(secrets.GetStore()).Run(ctx.Done())
	}
	cache.WaitForCacheSync(ctx.Done(), secrets.HasSynced)
	fmt.Println("synced")
	context.AfterFunc(ctx, f.queue.ShutDown)
	var wg sync.WaitGroup
	for range o.workers {
		wg.Go(func() { f.work(ctx) })
	}
	wg.Wait()
	return nil
}

// filler writes the values.
type filler struct {
	options
	client *corev1client.CoreV1Client
	queue  workqueue.TypedInterface[cache.ObjectName]

	mu   sync.Mutex
	text string
}

// secrets enqueues each Secret without a value.
func (f *filler) secrets() cache.SharedIndexInformer {
	selected := func(o *metav1.ListOptions) { o.LabelSelector = f.selector }
	informer := cache.NewSharedIndexInformer(cache.NewFilteredListWatchFromClient(f.client.RESTClient(), "secrets", f.namespace, selected), &corev1.Secret{}, 0, nil)
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		if s := o.(*corev1.Secret); f.value != "" && s.Data["value"] == nil {
			f.queue.Add(cache.MetaObjectToName(s))
		}
	}})
	return informer
}

// template enqueues each Secret with the text of the ConfigMap when that changes.
func (f *filler) template(secrets cache.Store) cache.SharedIndexInformer {
	informer := cache.NewSharedIndexInformer(cache.NewListWatchFromClient(f.client.RESTClient(), "configmaps", f.namespace, fields.Everything()), &corev1.ConfigMap{}, 0, nil)
	changed := func(o any) {
		text := o.(*corev1.ConfigMap).Data["t"]
		f.mu.Lock()
		f.text = text
		f.mu.Unlock()
		for _, s := range secrets.List() {
			if name := cache.MetaObjectToName(s.(*corev1.Secret)); f.value != "" && name.Name < f.templated {
				f.queue.Add(name)
			}
		}
	}
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }})
	return informer
}

func (f *filler) work(ctx context.Context) {
	for {
		key, end := f.queue.Get()
		if end {
			return
		}
		f.mu.Lock()
		text := f.text
		f.mu.Unlock()
		out, name := "", key.Name
		if f.read {
			if _, err := f.client.Secrets(key.Namespace).Get(ctx, name, metav1.GetOptions{}); err != nil && ctx.Err() == nil {
				log.Fatal(err)
			}
		}
		if name < f.templated {
			out = fmt.Sprintf(`,"out":%q`, base64.StdEncoding.EncodeToString([]byte(text)))
		}
		body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q},"data":{"value":%q%s}}`, name, base64.StdEncoding.EncodeToString([]byte(f.value)), out)
		force := true
		if _, err := f.client.Secrets(key.Namespace).Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "bare", Force: &force}); err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			log.Fatal(err)
		}
		f.queue.Done(key)
	}
}
