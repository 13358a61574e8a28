package rotate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// Holding is what a consumer says of its keys, as keyset's handler answers.
type Holding struct {
	IDs     []string         `json:"ids"`
	Primary string           `json:"primary"`
	Used    map[string]int64 `json:"used"` // seconds ago
}

// askTime bounds how long a consumer may take to answer.
const askTime = 5 * time.Second

// ask asks the consumer at a URL for what it holds.
func ask(ctx context.Context, client *http.Client, url string) (Holding, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Holding{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return Holding{}, err
	}
	defer resp.Body.Close()
	var h Holding
	if resp.StatusCode != http.StatusOK {
		return Holding{}, fmt.Errorf("%s answers with status %d", url, resp.StatusCode)
	}
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&h) != nil {
		return Holding{}, fmt.Errorf("%s does not answer with the keys that it has, as keyset's handler does", url)
	}
	return h, nil
}

// Gate is how it is known that the consumers of a set are where they have to be.
type Gate struct {
	Ask    []string      // URLs of all consumers
	Wait   time.Duration // least time since the step before, if none is asked
	Force  bool
	Reason string
	Client *http.Client
}

// lacking returns what speaks against going on: who does not have the version,
// or, if it is to go, does not use the primary.
func (g Gate) lacking(ctx context.Context, has func(Holding) bool, what string) (lacking []string) {
	for _, url := range g.Ask {
		switch holding, err := ask(ctx, g.Client, url); {
		case err != nil:
			lacking = append(lacking, fmt.Sprintf("%s: no answer (%v)", url, err))
		case !has(holding):
			lacking = append(lacking, fmt.Sprintf("%s: %s", url, what))
		}
	}
	return lacking
}

// introduced returns what speaks against making a version the primary.
func (g Gate) introduced(ctx context.Context, id string, since time.Duration) []string {
	if len(g.Ask) == 0 {
		return g.waited(since)
	}
	return g.lacking(ctx, func(h Holding) bool { return slices.Contains(h.IDs, id) }, "it does not have "+id)
}

// left returns what speaks against taking a version away.
func (g Gate) left(ctx context.Context, primary string, since time.Duration) []string {
	return append(g.waited(since), g.lacking(ctx, func(h Holding) bool { return h.Primary == primary }, "its primary is not "+primary)...)
}

func (g Gate) waited(since time.Duration) []string {
	if since >= g.Wait {
		return nil
	}
	return []string{fmt.Sprintf("%s have passed of %s", since.Round(time.Second), g.Wait)}
}
