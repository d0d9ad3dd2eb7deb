// SPDX-FileCopyrightText: The WorkItem Operator Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"log"
	"net"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// TestMain has all names resolved by a name server of this package's own.
func TestMain(m *testing.M) {
	server, err := (&net.ListenConfig{}).ListenPacket(context.Background(), "udp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go serveNames(server)
	net.DefaultResolver = &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
		},
	}
	m.Run()
}

// rebound is the last byte of the loopback address of the name that changes.
var rebound atomic.Uint32

// addressOf gives the IPv4 address of a name. The number is one that a C library
// takes for 127.0.0.1.
func addressOf(name string) (net.IP, bool) {
	switch name {
	case "loopback.test.", "0x7f000001.":
		return net.IPv4(127, 0, 0, 1), true
	case "metadata.test.":
		return net.IPv4(169, 254, 169, 254), true
	case "rebinding.test.":
		return net.IPv4(127, 0, 0, byte(rebound.Load())), true
	}
	return nil, false
}

func serveNames(server net.PacketConn) {
	buf := make([]byte, 4096)
	for {
		n, client, err := server.ReadFrom(buf)
		if err != nil {
			return
		}
		var query dnsmessage.Message
		if query.Unpack(buf[:n]) != nil || len(query.Questions) != 1 {
			continue
		}
		packed, err := answer(query)
		if err != nil {
			continue
		}
		_, _ = server.WriteTo(packed, client)
	}
}

func answer(query dnsmessage.Message) ([]byte, error) {
	question := query.Questions[0]
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: query.ID, Response: true, RecursionAvailable: true},
		Questions: query.Questions,
	}
	header := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET}
	name := question.Name.String()
	switch {
	case name == "mapped.test.":
		if question.Type == dnsmessage.TypeAAAA {
			mapped := [16]byte(net.IPv4(127, 0, 0, 1).To16())
			reply.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: mapped}}}
		}
	case question.Type == dnsmessage.TypeA:
		ip, known := addressOf(name)
		if !known {
			reply.RCode = dnsmessage.RCodeNameError
			break
		}
		reply.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: [4]byte(ip.To4())}}}
	}
	return reply.Pack()
}
