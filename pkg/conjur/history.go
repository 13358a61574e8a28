package conjur

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/secretsync/syncer/pkg/secret"
)

// Versions requests the numbers of a variable's stored values, in ascending order.
// There are none if the variable was never set. The numbers restart if the variable
// is declared anew. The reading is Missing if the variable is not declared or not
// visible.
func (c *Client) Versions(ctx context.Context, id string) ([]uint64, Reading) {
	if err := CheckID(id); err != nil {
		return nil, Reading{Err: err}
	}
	req, err := pathEscaped(c.api.ResourceRequest(c.resource(id)))
	r, reading := c.reading(ctx, nil, KindResource, fmt.Sprintf("%q", id), req, err)
	if r == nil {
		return nil, reading
	}
	if r.status == http.StatusNotFound && isJSON(r.header) {
		return nil, reading.as(Missing, "")
	}
	var answer struct {
		ID      string
		Secrets *[]struct{ Version uint64 }
	}
	if r.status != http.StatusOK || !isJSON(r.header) || json.Unmarshal(r.body, &answer) != nil || answer.ID != c.resource(id) || answer.Secrets == nil {
		return nil, reading.as(Unusable, notConjur)
	}
	numbers := make([]uint64, len(*answer.Secrets))
	for i, s := range *answer.Secrets {
		numbers[i] = s.Version
	}
	return numbers, reading.as(Given, "")
}

// VariableAt requests a variable's value at a version.
func (c *Client) VariableAt(ctx context.Context, id string, version uint64) (secret.Value, Reading) {
	req, err := c.api.RetrieveSecretWithVersionRequest(c.resource(id), int(version))
	r, reading := c.reading(ctx, nil, KindVariable, fmt.Sprintf("%q", id), req, err)
	if r == nil || r.status != http.StatusOK {
		return secret.Value{}, reading
	}
	v := c.value(id, r, reading)
	return v.Found[id], v.Reading
}
