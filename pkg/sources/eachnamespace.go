package sources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/secretsync/syncer/pkg/brief"
	"github.com/secretsync/syncer/pkg/kube"
)

// readEach reads the labelled Secrets of all namespaces one namespace after the
// other. What may not be read stays as it was last known, and is named in the
// error.
func (s *Secrets) readEach(ctx context.Context) error {
	namespaces, err := s.Client.Namespaces(ctx)
	var problems []error
	if err != nil {
		namespaces = s.Known
		problems = append(problems, fmt.Errorf("only these namespaces are known: %s: %w", strings.Join(s.Known, ", "), err))
	} else {
		for _, gone := range s.without(namespaces) {
			s.replace(gone, "", nil)
		}
	}
	var refused []string
	var refusal error
	for _, namespace := range namespaces {
		var all []kube.Source
		err := s.Client.Sources(ctx, namespace, func(source kube.Source) { all = append(all, source) })
		switch {
		case err == nil:
			s.replace(namespace, "", all)
		case apierrors.IsForbidden(err):
			refused, refusal = append(refused, namespace), err
		default:
			problems = append(problems, err)
		}
	}
	if len(refused) > 0 {
		problems = append(problems, fmt.Errorf("%d of %d namespaces are not served, since no role grants the verb list for their secrets: %s: %w",
			len(refused), len(namespaces), brief.List(refused), refusal))
	}
	return errors.Join(problems...)
}

// without returns the namespaces of known Secrets that are not among the given.
func (s *Secrets) without(namespaces []string) (gone []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.known {
		if !slices.Contains(namespaces, key.Namespace) && !slices.Contains(gone, key.Namespace) {
			gone = append(gone, key.Namespace)
		}
	}
	return gone
}
