package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certified is a certificate with its key.
type certified struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// makeTLS makes an authority, and what it signs: a certificate for all servers, and one for clients. It writes what clients
// need to dir: ca.pem, client.pem and client-key.pem. Servers turn away whoever has no certificate of that authority.
func makeTLS(dir string) (*tls.Config, error) {
	ca, err := sign("test authority", nil)
	if err != nil {
		return nil, err
	}
	server, err := sign("test server", ca)
	if err != nil {
		return nil, err
	}
	client, err := sign("test client", ca)
	if err != nil {
		return nil, err
	}
	clientKey, err := x509.MarshalPKCS8PrivateKey(client.key)
	if err != nil {
		return nil, err
	}
	for _, file := range []struct {
		name, kind string
		bytes      []byte
	}{
		{"ca.pem", "CERTIFICATE", ca.certificate.Raw},
		{"client.pem", "CERTIFICATE", client.certificate.Raw},
		{"client-key.pem", "PRIVATE KEY", clientKey},
	} {
		text := pem.EncodeToMemory(&pem.Block{Type: file.kind, Bytes: file.bytes})
		if err := os.WriteFile(filepath.Join(dir, file.name), text, 0o600); err != nil {
			return nil, err
		}
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(ca.certificate)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{server.certificate.Raw}, PrivateKey: server.key}},
		ClientCAs:    trusted,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	}, nil
}

// sign makes a certificate for the loopback address; without an authority it is one.
func sign(name string, authority *certified) (*certified, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}
	parent := &certified{template, key}
	if authority == nil {
		template.IsCA, template.KeyUsage, template.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
	} else {
		parent = authority
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent.certificate, key.Public(), parent.key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &certified{certificate, key}, nil
}
