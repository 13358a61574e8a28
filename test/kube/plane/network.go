package plane

import (
	"errors"
	"os"

	"github.com/vishvananda/netlink"
)

// prepareNetwork makes the network namespace of this process, in which there
// must be nothing, that of a node.
func prepareNetwork() error {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	if machine, err := os.Readlink("/proc/1/ns/net"); err == nil && machine == own {
		return errors.New("a node changes addresses, routes and packet filters: it wants a network namespace of its own, such as \"unshare --net\" makes")
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	address, err := netlink.ParseAddr(nodeAddress + "/32")
	if err != nil {
		return err
	}
	// What is sent to a Service needs a route before the packet filter sends it
	// elsewhere.
	everywhere, err := netlink.ParseIPNet("0.0.0.0/0")
	if err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetUp(loopback), netlink.AddrAdd(loopback, address),
		netlink.RouteAdd(&netlink.Route{LinkIndex: loopback.Attrs().Index, Dst: everywhere}))
}
