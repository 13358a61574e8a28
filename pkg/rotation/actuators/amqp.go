package actuators

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Methods of the class connection, in AMQP 0-9-1.
const (
	amqpStart   = 10
	amqpStartOK = 11
	amqpTune    = 30
	amqpTuneOK  = 31
	amqpOpen    = 40
	amqpOpenOK  = 41
	amqpClose   = 50
	amqpCloseOK = 51
)

// amqpLogIn opens a virtual host with a login, as each client of AMQP 0-9-1 does, and
// closes the connection. Only the answer "access refused" is ErrRefused. A client that does
// not declare authentication_failure_close gets no such answer: the server closes the
// socket after 3 s, as it does when it stops.
func amqpLogIn(conn io.ReadWriter, user string, password []byte, vhost string) error {
	if _, err := io.WriteString(conn, "AMQP\x00\x00\x09\x01"); err != nil {
		return err
	}
	if _, err := amqpRead(conn, amqpStart); err != nil {
		return err
	}
	response := slices.Concat([]byte{0}, []byte(user), []byte{0}, password)
	defer clear(response)
	ok := []byte("\x00\x00\x00\x31\x0ccapabilitiesF\x00\x00\x00\x1f\x1cauthentication_failure_closet\x01\x05PLAIN")
	ok = slices.Concat(binary.BigEndian.AppendUint32(ok, uint32(len(response))), response, []byte("\x05en_US"))
	defer clear(ok)
	if err := amqpWrite(conn, amqpStartOK, ok); err != nil {
		return err
	}
	tune, err := amqpRead(conn, amqpTune)
	if err != nil {
		return err
	}
	open := append([]byte{byte(len(vhost))}, vhost+"\x00\x00"...)
	if err := errors.Join(amqpWrite(conn, amqpTuneOK, tune), amqpWrite(conn, amqpOpen, open)); err != nil {
		return err
	}
	if _, err := amqpRead(conn, amqpOpenOK); err != nil {
		return err
	}
	// RabbitMQ notes the begin and the end of a connection concurrently. If they are close, it
	// may list the connection forever.
	time.Sleep(100 * time.Millisecond)
	if err := amqpWrite(conn, amqpClose, []byte("\x00\xc8\x00\x00\x00\x00\x00")); err != nil {
		return err
	}
	_, err = amqpRead(conn, amqpCloseOK)
	return err
}

func amqpWrite(conn io.Writer, method uint16, args []byte) error {
	frame := binary.BigEndian.AppendUint32([]byte{1, 0, 0}, uint32(4+len(args)))
	frame = binary.BigEndian.AppendUint16(append(frame, 0, 10), method)
	frame = slices.Concat(frame, args, []byte{0xCE})
	defer clear(frame)
	_, err := conn.Write(frame)
	return err
}

// amqpRead returns the arguments of the next method, which must be the wanted one.
func amqpRead(conn io.Reader, wanted uint16) ([]byte, error) {
	var header [7]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(header[3:])
	if header[0] != 1 || size < 4 || size > 128<<10 {
		return nil, errors.New("the answer is not AMQP 0-9-1; check the address and whether its port has TLS")
	}
	frame := make([]byte, size+1)
	if _, err := io.ReadFull(conn, frame); err != nil {
		return nil, err
	}
	method, args := binary.BigEndian.Uint16(frame[2:]), frame[4:size]
	if method == amqpClose && len(args) > 3 {
		code, text := binary.BigEndian.Uint16(args), args[3:]
		err := fmt.Errorf("the server answers %d %q", code, text[:min(int(args[2]), len(text))])
		if code == 403 {
			err = fmt.Errorf("%w: %w", ErrRefused, err)
		}
		return nil, err
	}
	if method != wanted {
		return nil, fmt.Errorf("the server sends method %d of AMQP instead of %d", method, wanted)
	}
	return args, nil
}
