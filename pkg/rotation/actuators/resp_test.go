package actuators

import (
	"bufio"
	"reflect"
	"strings"
	"testing"
)

func TestRESPAnswers(t *testing.T) {
	read := func(text string) (any, error) {
		return (&resp{in: bufio.NewReader(strings.NewReader(text))}).read(maxRESPDepth)
	}
	for text, want := range map[string]any{
		"+OK\r\n": "OK", ":-7\r\n": int64(-7), "$0\r\n\r\n": "", "$2\r\n\r\n\r\n": "\r\n", "$-1\r\n": nil, "*-1\r\n": nil,
		"*2\r\n*1\r\n+a\r\n$1\r\nb\r\n":                       []any{[]any{"a"}, "b"},
		strings.Repeat("*1\r\n", 8) + "*-1\r\n":               []any{[]any{[]any{[]any{[]any{[]any{[]any{[]any{nil}}}}}}}},
		strings.Repeat("*1\r\n", maxRESPDepth)[4:] + ":1\r\n": []any{[]any{[]any{[]any{[]any{[]any{[]any{int64(1)}}}}}}},
	} {
		if got, err := read(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "\n", "+OK", "HTTP/1.1 400 Bad Request\r\n", ":\r\n", "$-2\r\n", "$1\r\n", "$33554433\r\n", "*65537\r\n", "*1\r\n", "*-2\r\n",
		strings.Repeat("*1\r\n", maxRESPDepth+1) + ":1\r\n", "+" + strings.Repeat("a", 1<<20) + "\r\n",
	} {
		if got, err := read(text); err == nil || redisCode(err) != "" {
			t.Errorf("%.40q is %v, %v", text, got, err)
		}
	}
	digest := strings.Repeat("0123456789abcdef", 4)
	if _, err := read("-ERR modifier '!" + digest + "': no\r\n"); redisCode(err) != "ERR" || err.Error() != "ERR modifier '!…': no" {
		t.Errorf("an error is %v", err)
	}
}
