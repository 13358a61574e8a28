package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/secretsync/syncer/pkg/secret"
)

const canary = "c4n4ry-of-a-secret"

// holder has a Value where reflection can reach it but may not call methods.
type holder struct {
	name  string
	value secret.Value
	Ptr   *secret.Value
}

func TestNoPrintedFormShowsTheBytes(t *testing.T) {
	v := secret.New([]byte(canary))
	subjects := map[string]any{
		"value": v, "pointer": &v,
		"struct": holder{"n", v, &v}, "struct pointer": &holder{"n", v, &v},
		"slice": []secret.Value{v}, "map": map[string]secret.Value{"k": v},
		"error": fmt.Errorf("wrapped %v: %w", v, errors.New("x")),
	}
	for name, s := range subjects {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%c", "%T", "%U", "%o", "%b", "%08.3f"} {
			assertSilent(t, name+" "+verb, fmt.Sprintf(verb, s))
		}
		if b, err := json.Marshal(s); err == nil {
			assertSilent(t, name+" json", string(b))
		}
		var buf bytes.Buffer
		core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&buf), zap.DebugLevel)
		zap.New(core).Info("m", zap.Any("any", s), zap.Reflect("reflect", s))
		zap.New(core).Sugar().Infow("m", "k", s)
		assertSilent(t, name+" zap", buf.String())
	}
}

func assertSilent(t *testing.T, what, out string) {
	t.Helper()
	for _, form := range []string{
		canary, hex.EncodeToString([]byte(canary)), strings.ToUpper(hex.EncodeToString([]byte(canary))),
		base64.StdEncoding.EncodeToString([]byte(canary)), "99 52 110 52", // the first bytes in decimal
	} {
		if strings.Contains(out, form) {
			t.Errorf("%s shows the secret: %s", what, out)
		}
	}
}

func TestWipeClearsTheBufferForEveryCopy(t *testing.T) {
	b := []byte(canary)
	v := secret.New(b)
	w := v
	w.Wipe()
	w.Wipe()
	if v.Len() != 0 || v.Bytes() != nil {
		t.Errorf("a wiped value still has %d bytes", v.Len())
	}
	if !bytes.Equal(b, make([]byte, len(b))) {
		t.Error("the buffer that was handed over was not cleared")
	}
}

func TestZeroValueIsEmpty(t *testing.T) {
	var v secret.Value
	v.Wipe()
	if v.Len() != 0 || v.String() != "[secret]" || !v.Equal(secret.New(nil)) {
		t.Error("the zero value is not an empty secret")
	}
}
