package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/tool/manifest"
)

// templates contains the texts of templates from every source of a tool.
type templates struct {
	manifest *manifest.Manifest // nil: none
	mounted  map[string]string  // the folder in the manifest's Pod, if known
	folder   fs.FS              // nil: none; a ConfigMap's template is the file NAME/KEY
	cluster  *kube.Client       // nil: none
}

// errUnknownTemplate means that the tool was not given a template.
var errUnknownTemplate = errors.New("not known here")

// templates returns the templates for a manifest, or without one only those of the
// folder.
func (t *Tool) templates(m *manifest.Manifest) *templates {
	texts := &templates{manifest: m}
	if m == nil || t.TemplatesNamed {
		texts.folder = os.DirFS(t.Sources.TemplatesDir)
	}
	return texts
}

// Text returns the template text of a target, or of a Secret's group; "" without a
// template.
func (s *templates) Text(ctx context.Context, t *targets.Target) (string, error) {
	name, place := t.Template.File, t.Template.ConfigMap
	switch {
	case place != (targets.ConfigMapKey{}):
		return s.inConfigMap(ctx, place)
	case name == "":
		return t.Template.Inline, nil
	case s.folder != nil:
		text, err := fs.ReadFile(s.folder, name)
		return string(text), err
	}
	text, ok := s.mounted[name]
	if !ok {
		return "", fmt.Errorf("the file %s exists only in the Pod; name a folder that contains it with --templates-dir", name)
	}
	return text, nil
}

func (s *templates) inConfigMap(ctx context.Context, place targets.ConfigMapKey) (string, error) {
	if s.manifest != nil {
		if found, ok := s.manifest.ConfigMap(place.Name); ok {
			return templateIn(found, place.Name, place.Key)
		}
	}
	err := fmt.Errorf("the ConfigMap %s is not in the manifest, so its template is %w; add it, or name a folder with its files by --templates-dir", place.Name, errUnknownTemplate)
	if s.folder != nil {
		name := path.Join(place.Name, place.Key)
		text, unread := fs.ReadFile(s.folder, name)
		if !errors.Is(unread, fs.ErrNotExist) {
			return string(text), unread
		}
		err = fmt.Errorf("the template in ConfigMap %s, key %s, is %w; put it into the file %s of the templates folder", place.Name, place.Key, errUnknownTemplate, name)
	}
	if s.cluster != nil {
		return s.inCluster(ctx, place)
	}
	return "", err
}

func (s *templates) inCluster(ctx context.Context, place targets.ConfigMapKey) (string, error) {
	found, err := s.cluster.Core.ConfigMaps(place.Namespace).Get(ctx, place.Name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the ConfigMap %s/%s: %w", place.Namespace, place.Name, err)
	}
	return templateIn(found, place.Namespace+"/"+place.Name, place.Key)
}

// templateIn returns a template of a ConfigMap, which messages call name.
func templateIn(m *corev1.ConfigMap, name, key string) (string, error) {
	if text, ok := m.Data[key]; ok {
		return text, nil
	}
	if _, ok := m.BinaryData[key]; ok {
		return "", fmt.Errorf("the ConfigMap %s has the key %s in binaryData, which is not for text; save the template as UTF-8, and put it into data", name, key)
	}
	return "", fmt.Errorf("the ConfigMap %s has no key %s; add it, or correct the name", name, key)
}
