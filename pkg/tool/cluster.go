package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// Cluster selects the cluster whose Secrets are compared.
type Cluster struct {
	Kubeconfig string // "": the configuration's, or the one that kubectl uses
	Namespace  string // of Secrets named without one; "": the context's
}

// diffCluster compares Secrets with those in the cluster. They are the Secrets of the
// manifest, the named ones, or those of the configuration, which may be nil.
func (t *Tool) diffCluster(ctx context.Context, cfg *config.Config, names []string, cluster Cluster) ([]difference, error) {
	var secrets []readSecret
	texts := &templates{}
	switch {
	case len(t.Manifests) == 0:
	case t.Values == "-" && slices.Contains(t.Manifests, "-"):
		return nil, errStdinTwice
	case len(names) > 0:
		return nil, errors.New("-f already selects the Secrets to compare; remove the names")
	default:
		var err error
		if secrets, texts, err = t.secrets(); err != nil {
			return nil, err
		}
	}
	if cluster.Kubeconfig == "" && cfg != nil {
		cluster.Kubeconfig = cfg.Kubernetes.Kubeconfig
	}
	client, err := kube.Connect(kube.Config{Kubeconfig: cluster.Kubeconfig, UserAgent: "syncer-diff"})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	texts.cluster = client
	c := clusterDiff{t, cluster, client}
	var ts []*targets.Target
	if len(t.Manifests) > 0 {
		ts, err = c.ofManifest(secrets)
	} else {
		ts, err = c.ofCluster(ctx, cfg, names)
	}
	if err != nil {
		return nil, err
	}
	return t.compare(ctx, ts, texts, kubesecrets.New(client.Core))
}

// clusterDiff selects the Secrets to compare.
type clusterDiff struct {
	*Tool
	Cluster
	client *kube.Client
}

// ofManifest returns the Secrets of the manifest that a provider fills.
func (c *clusterDiff) ofManifest(secrets []readSecret) (ts []*targets.Target, err error) {
	for _, s := range secrets {
		if s.target == nil {
			continue
		}
		namespace, err := c.namespaceOr(s.Namespace)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		ts = append(ts, within(namespace, s.target))
	}
	return ts, nil
}

// within returns a Secret of a manifest without a namespace, in the namespace where it
// would be created.
func within(namespace string, t *targets.Target) *targets.Target {
	placed, secret := *t, *t.Secret
	secret.Namespace = namespace
	placed.Key, placed.Secret = targets.KubeSecretKey(namespace, secret.Name), &secret
	placed.Secret.Groups = make([]*targets.Target, len(t.Secret.Groups))
	for i, group := range t.Secret.Groups {
		moved := *group
		if moved.Template.ConfigMap != (targets.ConfigMapKey{}) {
			moved.Template.ConfigMap.Namespace = namespace
		}
		placed.Secret.Groups[i] = &moved
	}
	return &placed
}

// ofCluster returns the named Secrets, or all of the configuration, with the settings of
// the configuration and of the Secrets themselves.
func (c *clusterDiff) ofCluster(ctx context.Context, cfg *config.Config, names []string) ([]*targets.Target, error) {
	defs, err := c.definitions(cfg, names)
	if err != nil {
		return nil, err
	}
	var ts []*targets.Target
	var v config.Validation
	for _, def := range defs {
		t, err := c.target(ctx, def, &v)
		if err != nil {
			return nil, err
		}
		ts = append(ts, t)
	}
	return ts, c.write(v)
}

// definitions returns the definitions of the configuration, or of the named Secrets.
func (c *clusterDiff) definitions(cfg *config.Config, names []string) (defs []definitions.SecretDefinition, err error) {
	if cfg != nil {
		defs = slices.Clone(cfg.Kubernetes.Definitions)
	}
	for i := range defs {
		if defs[i].Namespace, err = c.namespaceOr(defs[i].Namespace); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 && len(defs) == 0 {
		return nil, errors.New("the configuration selects Secrets by label; name the Secrets to compare")
	}
	if len(names) == 0 {
		return defs, nil
	}
	named := make([]definitions.SecretDefinition, len(names))
	for i, name := range names {
		if named[i], err = c.definition(defs, name); err != nil {
			return nil, err
		}
	}
	return named, nil
}

// definition returns the definition of a Secret by name, with the settings of the
// configuration.
func (c *clusterDiff) definition(defs []definitions.SecretDefinition, name string) (definitions.SecretDefinition, error) {
	namespace, secret, ok := strings.Cut(strings.TrimPrefix(name, "secret/"), "/")
	if !ok {
		namespace, secret = "", name
	}
	namespace, err := c.namespaceOr(namespace)
	if err == nil {
		err = errors.Join(definitions.CheckObjectName(namespace), definitions.CheckObjectName(secret))
	}
	if err != nil {
		return definitions.SecretDefinition{}, fmt.Errorf("the Secret %q: %w", name, err)
	}
	for _, def := range defs {
		if def.Namespace == namespace && def.Name == secret {
			return def, nil
		}
	}
	return definitions.SecretDefinition{Namespace: namespace, Name: secret, Named: true}, nil
}

// namespaceOr returns the namespace, or the default for an empty one.
func (c *clusterDiff) namespaceOr(namespace string) (string, error) {
	for _, candidate := range []string{namespace, c.Namespace, c.client.Namespace} {
		if candidate != "" {
			return candidate, nil
		}
	}
	return "", errors.New("its namespace is not known; set it with --namespace")
}

// target reads a Secret's definition from the cluster and makes its target.
func (c *clusterDiff) target(ctx context.Context, def definitions.SecretDefinition, v *config.Validation) (*targets.Target, error) {
	secret, err := c.client.Secret(ctx, def.Namespace, def.Name)
	switch {
	case err == nil:
		def.Annotations = secret.Annotations
		def.Map, def.HasMap = secret.ConjurMap()
	case apierrors.IsNotFound(err):
		def.Missing = true
	default:
		return nil, err
	}
	t := definitions.FromSecret(def)
	if def.Missing && len(t.Variables()) == 0 && !t.Wildcard() {
		return nil, &sinks.MissingError{Namespace: def.Namespace, Name: def.Name}
	}
	for _, fault := range t.Secret.Faults {
		v.Errors = append(v.Errors, problem(string(t.Key), fault))
	}
	for _, w := range t.Secret.Warnings {
		v.Warnings = append(v.Warnings, problem(string(t.Key), w))
	}
	return t, nil
}
