package rotation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Unread is a target or namespace that shows a set but can no longer be read or written.
type Unread struct {
	Namespace string    `json:"namespace"`
	Since     time.Time `json:"since"` // when this process first found that
	Why       string    `json:"why"`
}

// shown returns what the targets show of a set; nil if no targets are known.
func (r *Rotator) shown(ctx context.Context, set string) ([]Shown, error) {
	if r.config.Targets == nil {
		return nil, nil
	}
	shown, err := r.config.Targets.Shown(ctx, set)
	if err != nil {
		return nil, fmt.Errorf("cannot read which step its Secrets show: %w", err)
	}
	return append([]Shown{}, shown...), nil
}

// showing returns the namespaces that show the set; nil means unknown.
func (s *step) showing() (namespaces []string) {
	if s.shown == nil {
		return nil
	}
	namespaces = []string{}
	for _, target := range s.shown {
		if target.Counts(s.doc()) {
			namespaces = append(namespaces, target.Namespace)
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// nameUnread records which targets can no longer be read. One Event names them.
func (s *step) nameUnread() {
	s.unread = nil
	var names []string
	for _, target := range s.shown {
		if target.Unread != "" && target.Counts(s.doc()) {
			s.unread = append(s.unread, target)
			names = append(names, fmt.Sprintf("%s: %s", target, target.Unread))
		}
	}
	if is := brief.List(names); is != s.unreadEvent && !s.r.config.Paused {
		if s.unreadEvent = is; is != "" {
			s.emit(Event{Reason: EventWaiting, Warning: true, Message: "Syncer cannot follow what shows the set: " + is + "; a new version waits a while for it, and no version is retired before"})
		}
	}
}

// unnoted reports whether the set, if this process may change it, lacks a namespace that
// shows it. A later process that cannot read the namespace must know about it.
func (s *step) unnoted() bool {
	showing := s.showing()
	return s.held.Document != nil && showing != nil && s.mine() && !s.doc().Paused && !s.doc().Noted(showing)
}

// Delivered schedules an early check of a set if a namespace shows the set but the set
// does not note the namespace.
func (r *Rotator) Delivered(set, namespace string) {
	s := r.sets[set]
	if s == nil {
		return
	}
	if noted := s.namespaces.Load(); noted == nil || !(&versions.Document{Namespaces: *noted}).Shows(namespace) {
		s.moved.Store(true)
	}
}

// reportUnread returns the targets that can no longer be read: for each namespace, the
// oldest problem.
func (s *step) reportUnread() (all []Unread) {
	for _, target := range s.unread {
		i := slices.IndexFunc(all, func(u Unread) bool { return u.Namespace == target.Namespace })
		switch {
		case i < 0:
			all = append(all, Unread{target.Namespace, target.Since, target.Unread})
		case target.Since.Before(all[i].Since):
			all[i].Since, all[i].Why = target.Since, target.Unread
		}
	}
	slices.SortFunc(all, func(a, b Unread) int { return strings.Compare(a.Namespace, b.Namespace) })
	return all
}
