// Serves the simulator of govmomi, VMware's own, on loopback: vcsim CERTIFICATE KEY USER PASSWORD.
// It prints the address, and ends when its standard input does.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/url"
	"os"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// Debian's govmomi 0.24 has no FindAllByUuid, which later releases have.
type searchIndex struct{ *simulator.SearchIndex }

func (s *searchIndex) FindAllByUuid(req *types.FindAllByUuid) soap.HasFault {
	response := new(types.FindAllByUuidResponse)
	for _, each := range simulator.Map.All("VirtualMachine") {
		if machine := each.(*simulator.VirtualMachine); machine.Config.Uuid == req.Uuid {
			response.Returnval = append(response.Returnval, machine.Self)
		}
	}
	return &methods.FindAllByUuidBody{Res: response}
}

func main() {
	certificate, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	model := simulator.VPX()
	if err := model.Create(); err != nil {
		log.Fatal(err)
	}
	index := simulator.Map.Get(*model.ServiceContent.SearchIndex).(*simulator.SearchIndex)
	simulator.Map.Put(&searchIndex{index})
	model.Service.Listen = &url.URL{Host: "127.0.0.1:0", User: url.UserPassword(os.Args[3], os.Args[4])}
	model.Service.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server := model.Service.NewServer()
	fmt.Println(server.URL.Host)
	io.Copy(io.Discard, os.Stdin)
	model.Remove()
}
