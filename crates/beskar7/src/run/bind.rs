//! Where to listen, as controllers of Kubernetes take it: `:8080`, `127.0.0.1:8080`, or `0` for nowhere.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs as _};

/// An address to listen on, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bind(pub(crate) Option<SocketAddr>);

/// Reads an address.
pub(crate) fn bind(text: &str) -> Result<Bind, String> {
    let advice = "write :8080 for all addresses, 127.0.0.1:8080 for one, or 0 to switch it off";
    if text == "0" {
        return Ok(Bind(None));
    }
    if let Some(port) = text.strip_prefix(':') {
        let port: u16 = port.parse().map_err(|_| format!("{port:?} is no port: {advice}"))?;
        return Ok(Bind(Some(everywhere(port))));
    }
    let mut addresses = text.to_socket_addrs().map_err(|_| advice.to_owned())?;
    addresses.next().map(|address| Bind(Some(address))).ok_or_else(|| advice.to_owned())
}

/// Reads an address of something that cannot be switched off: `localhost:6443`, `192.0.2.5:6443` or `:6443`.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, String> {
    let advice = "write 127.0.0.1:6443 or localhost:6443 for this machine only, :6443 for all addresses";
    bind(text).ok().and_then(|bind| bind.0).ok_or_else(|| advice.to_owned())
}

/// A socket for `::` takes both families, unless the kernel knows no IPv6.
fn everywhere(port: u16) -> SocketAddr {
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)) {
        Ok(_) => (Ipv6Addr::UNSPECIFIED, port).into(),
        Err(_) => (Ipv4Addr::UNSPECIFIED, port).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_upstream_reads_them() {
        assert_eq!(bind("0"), Ok(Bind(None)));
        assert_eq!(bind(":8080").unwrap().0.map(|address| address.port()), Some(8080));
        assert!(bind(":8080").unwrap().0.unwrap().ip().is_unspecified());
        assert_eq!(bind("127.0.0.1:0").unwrap().0, Some(([127, 0, 0, 1], 0).into()));
        assert_eq!(bind("[::1]:81").unwrap().0, Some("[::1]:81".parse().unwrap()));
        for wrong in ["", "8080", ":", ":70000", "nowhere.invalid:80"] {
            assert!(bind(wrong).is_err() && listen(wrong).is_err(), "{wrong}");
        }
        assert!(listen("localhost:6444").unwrap().ip().is_loopback());
        assert_eq!(listen("192.0.2.5:6443"), Ok(([192, 0, 2, 5], 6443).into()));
        assert!(listen("0").is_err(), "it cannot be switched off");
    }
}
