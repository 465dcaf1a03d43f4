//! The admin's way in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// The URL under which clients on this machine reach a listener.
pub fn server_url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("https://{}", SocketAddr::new(ip, address.port()))
}

/// A kubeconfig that is enough by itself: the certificates are inside.
pub(super) fn kubeconfig(
    cluster: &str,
    server: &str,
    authority_pem: &str,
    certificate_pem: &str,
    key_pem: &str,
) -> String {
    let [authority, certificate, key] =
        [authority_pem, certificate_pem, key_pem].map(|pem| BASE64_STANDARD.encode(pem));
    format!(
        "apiVersion: v1
kind: Config
current-context: {cluster}
clusters:
- name: {cluster}
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {cluster}-admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {cluster}
  context:
    cluster: {cluster}
    user: {cluster}-admin
"
    )
}
