//go:build node

package node

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strconv"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/conjurd"
)

// TestACertificateOfThePodLogsIn: a signer issues it for the Pod, and the kubelet writes it
// to a projected volume, with the key. For authn-cert, it needs no Secret.
func TestACertificateOfThePodLogsIn(t *testing.T) {
	t.Parallel()
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if minor, err := strconv.Atoi(version.Minor); err == nil && minor < 37 {
		t.Skipf("Kubernetes %s has no certificates of Pods by default", version)
	}
	w := newWorld(t, shop())
	ca, err := conjurd.NewCA()
	w.check(err)
	name := "app." + w.namespace
	w.load(`
- !policy
  id: conjur/authn-cert/pods
  body:
  - !webservice
  - !variable ca-cert
  - !group apps
  - !permit { role: !group apps, privileges: [ read, authenticate ], resource: !webservice }
- !host { id: web, annotations: { authn-cert/cn: ` + name + ` } }
- !grant { role: !group conjur/authn-cert/pods/apps, member: !host web }
- !grant { role: !group shop/readers, member: !host web }
`)
	w.set(map[string]string{"conjur/authn-cert/pods/ca-cert": string(ca.Cert)})

	spec := w.documented(files("secrets-refresh-interval", "1s"), "run", dbFile)
	s := &spec.Spec.InitContainers[0]
	const dir = "/conjur/identity/"
	for name, value := range map[string]string{
		"CONJUR_AUTHN_URL": w.address + "/authn-cert/pods", "CONJUR_AUTHN_LOGIN": "host/web",
		"CONJUR_AUTHN_CERT_FILE": dir + "tls.crt", "CONJUR_AUTHN_CERT_KEY_FILE": dir + "tls.key",
	} {
		set(s, name, value)
	}
	const signer = "example.com/conjur"
	s.VolumeMounts = append(s.VolumeMounts, corev1.VolumeMount{Name: "identity", MountPath: dir, ReadOnly: true})
	spec.Spec.Volumes = append(spec.Spec.Volumes, corev1.Volume{Name: "identity", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{PodCertificate: &corev1.PodCertificateProjection{
			SignerName: signer, KeyType: "ECDSAP256", KeyPath: "tls.key", CertificateChainPath: "tls.crt",
		}}},
	}}})
	p := w.start("shop", spec)
	w.sign(ca, signer, name)
	p.ready()
	w.set(map[string]string{"shop/password": "second"})
	p.awaitFile(dbFile, db("second"))
}

// sign waits for a request for a certificate, and issues it, as a signer's program does.
func (w *world) sign(ca *conjurd.CA, signer, name string) {
	w.t.Helper()
	requests := client.CertificatesV1().PodCertificateRequests(w.namespace)
	var request *certificatesv1.PodCertificateRequest
	w.eventually("a request for a certificate", func() bool {
		list, err := requests.List(w.t.Context(), metav1.ListOptions{})
		w.check(err)
		for _, r := range list.Items {
			if r.Spec.SignerName == signer && r.Spec.ServiceAccountName == "app" {
				request = &r
			}
		}
		return request != nil
	})
	asked, err := x509.ParseCertificateRequest(request.Spec.StubPKCS10Request)
	w.check(err)
	authority, err := tls.X509KeyPair(ca.Cert, ca.Key)
	w.check(err)
	now := time.Now().Truncate(time.Second)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: now, NotAfter: now.Add(2 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, asked.PublicKey, authority.PrivateKey)
	w.check(err)
	begin, refresh, end := metav1.NewTime(template.NotBefore), metav1.NewTime(now.Add(time.Hour)), metav1.NewTime(template.NotAfter)
	request.Status = certificatesv1.PodCertificateRequestStatus{
		CertificateChain: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		NotBefore:        &begin, BeginRefreshAt: &refresh, NotAfter: &end,
		Conditions: []metav1.Condition{{Type: "Issued", Status: metav1.ConditionTrue, Reason: "Issued", LastTransitionTime: begin}},
	}
	_, err = requests.UpdateStatus(w.t.Context(), request, metav1.UpdateOptions{})
	w.check(err)
}
