package kube

import (
	"bytes"
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// Pods lists the present Pods of a namespace, without a cache.
func (c *Client) Pods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	all, err := pages(ctx, func(ctx context.Context, options metav1.ListOptions) ([]corev1.Pod, metav1.ListMeta, error) {
		page, err := c.Core.Pods(namespace).List(ctx, options)
		if err != nil {
			return nil, metav1.ListMeta{}, err
		}
		return page.Items, page.ListMeta, nil
	})
	if err != nil {
		return nil, explain("listing the pods of namespace "+namespace, err, right{namespace, "pods", "list"})
	}
	return all, nil
}

// Exec runs a command without arguments in a container, with the given bytes on its
// standard input. It returns after the command has ended. If the command fails, the error
// contains its exit status. The output of the command is dropped.
func (c *Client) Exec(ctx context.Context, namespace, pod, container, command string, stdin []byte) error {
	executor, err := c.executor(namespace, pod, container, command)
	if err == nil {
		err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{
			Stdin: bytes.NewReader(stdin), Stdout: io.Discard, Stderr: io.Discard,
		})
	}
	if err != nil {
		return explain(fmt.Sprintf("running %s in %s/%s, container %s", command, namespace, pod, container), err, right{namespace, "pods/exec", "get and create"})
	}
	return nil
}

// executor uses WebSockets, or SPDY for an API server before Kubernetes 1.30.
func (c *Client) executor(namespace, pod, container, command string) (remotecommand.Executor, error) {
	url := c.Core.Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("exec").
		Param("container", container).Param("command", command).
		Param("stdin", "true").Param("stdout", "true").Param("stderr", "true").URL()
	sockets, err := remotecommand.NewWebSocketExecutor(c.config, "GET", url.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(c.config, "POST", url)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(sockets, spdy, httpstream.IsUpgradeFailure)
}
