package turns

// Lines contains keys by namespace, in the order of arrival. The namespaces take turns,
// key by key. The zero Lines is empty and ready. It must not be used concurrently.
type Lines[K any] struct {
	lines map[string][]K
	order []string // of the namespaces; the first one is next
	count int
}

// Push adds a key after the others of its namespace.
func (l *Lines[K]) Push(namespace string, key K) {
	if l.lines == nil {
		l.lines = map[string][]K{}
	}
	if _, waits := l.lines[namespace]; !waits {
		l.order = append(l.order, namespace)
	}
	l.lines[namespace] = append(l.lines[namespace], key)
	l.count++
}

// Pop removes and returns the key whose turn it is, of the namespaces that may have a
// turn. Its cost depends on the namespaces that it passes over, which keep their turn.
func (l *Lines[K]) Pop(may func(namespace string) bool) (key K, ok bool) {
	for i, namespace := range l.order {
		if !may(namespace) {
			continue
		}
		copy(l.order[1:i+1], l.order[:i])
		l.order = l.order[1:]
		keys := l.lines[namespace]
		key, keys[0] = keys[0], key
		if l.count--; len(keys) == 1 {
			delete(l.lines, namespace)
		} else {
			l.lines[namespace] = keys[1:]
			l.order = append(l.order, namespace)
		}
		return key, true
	}
	return key, false
}

// Len returns the number of keys.
func (l *Lines[K]) Len() int { return l.count }
