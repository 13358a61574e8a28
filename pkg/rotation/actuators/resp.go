package actuators

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"unsafe"

	"github.com/secretsync/syncer/internal/lazyregexp"
)

// The largest answer of Redis: a list of ten thousand sessions has 4 MiB.
const (
	maxRESPBytes = 32 << 20
	maxRESPItems = 1 << 16
	maxRESPDepth = 8
)

// resp is a connection to Redis by the protocol RESP2
// (https://redis.io/docs/latest/develop/reference/protocol-spec/).
type resp struct {
	conn     net.Conn
	in       *bufio.Reader
	stop     func() bool
	username string
}

// redisError is an error that Redis answers. Its first word is the code.
type redisError string

func (e redisError) Error() string { return string(e) }

// redisCode returns the first word of an error of Redis, else "".
func redisCode(err error) string {
	var said redisError
	errors.As(err, &said)
	code, _, _ := strings.Cut(string(said), " ")
	return code
}

// redisAdvice says what to do about an answer of Redis, by its code.
var redisAdvice = map[string]string{
	"WRONGPASS": `check the password of the user, and that "ACL GETUSER" shows it as "on"`,
	"NOPERM":    `grant the right; "syncer rotate check" lists each one that is missing`,
	"DENIED":    "the server is in protected mode; set a password for its user default, or bind it to an address",
	"LOADING":   "the server starts; Syncer retries",
}

// logInRESP logs in, and closes the connection at an error. The connection lasts until the
// context ends or close is called.
func logInRESP(ctx context.Context, conn net.Conn, l login) (*resp, error) {
	c := &resp{conn: conn, username: l.Username, stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}
	c.in = bufio.NewReaderSize(c.conn, 64<<10)
	// The command shares bytes of the login, which the caller clears.
	if _, err := c.do("AUTH", l.Username, unsafe.String(unsafe.SliceData(l.Password), len(l.Password))); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *resp) close() { c.stop(); _ = c.conn.Close() }

// do sends a command and returns its answer: a string, an int64, a list of those, or nil.
func (c *resp) do(args ...string) (any, error) {
	size := 16
	for _, arg := range args {
		size += len(arg) + 32
	}
	command := fmt.Appendf(make([]byte, 0, size), "*%d\r\n", len(args)) // never moved, so that it can be cleared
	defer clear(command[:size])
	for _, arg := range args {
		command = append(fmt.Appendf(command, "$%d\r\n", len(arg)), arg...)
		command = append(command, "\r\n"...)
	}
	if _, err := c.conn.Write(command); err != nil {
		return nil, err
	}
	return c.read(maxRESPDepth)
}

// digestForm is a digest of a password. Redis repeats it in some errors.
var digestForm = lazyregexp.New(`[0-9a-f]{64}`)

func (c *resp) read(depth int) (any, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	kind, text := line[0], string(bytes.TrimRight(line[1:], "\r\n"))
	switch kind {
	case '+':
		return text, nil
	case '-':
		return nil, redisError(withholdValues(digestForm().ReplaceAllLiteralString(text, "…"), nil, longestReason))
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
	case kind == ':':
		return n, nil
	case n == -1 && (kind == '$' || kind == '*'):
		return nil, nil
	case kind == '$' && n >= 0 && n <= maxRESPBytes:
		data := make([]byte, n+2)
		_, err := io.ReadFull(c.in, data)
		return string(data[:n]), err
	case kind == '*' && n >= 0 && n <= maxRESPItems && depth > 0:
		list := make([]any, n)
		for i := range list {
			if list[i], err = c.read(depth - 1); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, errors.New("the answer is not Redis's; name the address of a Redis")
}
