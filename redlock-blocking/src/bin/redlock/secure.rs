//! What the command line says of TLS.

use std::path::PathBuf;

use clap::Args;
use redlock_blocking::{Address, Endpoint, Tls};

/// Above these options in the help. Named by each, or all that come after them would stand below it.
const HEADING: &str = "TLS, for rediss:// nodes";

/// How nodes with a rediss:// address are spoken to.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TlsOptions {
    /// Trust the authorities in this PEM file, not the system's
    #[arg(long, help_heading = HEADING, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Show this certificate to nodes that ask for one (PEM)
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// The name that the nodes' certificates are for, where it is not the host in their addresses; HOST=NAME for one node,
    /// or HOST:PORT=NAME, as often as there are such nodes
    #[arg(long, help_heading = HEADING, value_name = "[HOST=]NAME")]
    pub(crate) sni: Vec<String>,
}

impl TlsOptions {
    /// TLS as it was asked for, if a node wants it.
    ///
    /// # Errors
    ///
    /// What of it cannot be used, or what is asked for though no node wants it.
    pub(crate) fn for_nodes(&self, nodes: &[Address]) -> Result<Option<Tls>, String> {
        if !nodes.iter().any(Address::is_tls) {
            let is_asked = self.cacert.is_some() || self.cert.is_some() || !self.sni.is_empty();
            return if is_asked {
                Err("TLS is described, but no node wants it; name nodes with rediss://".to_owned())
            } else {
                Ok(None)
            };
        }
        let mut tls = Tls::builder();
        if let Some(file) = &self.cacert {
            tls = tls.ca_file(file);
        }
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            tls = tls.client_cert_files(cert, key);
        }
        let mut all = None;
        for sni in &self.sni {
            match sni.split_once('=') {
                None if all.is_some() => {
                    return Err(format!("--sni {sni}: a second name for all nodes; HOST=NAME is for one"));
                }
                None => all = Some(sni),
                Some((node, _)) if !nodes.iter().any(|address| is_meant(node, address)) => {
                    return Err(format!("--sni {sni}: no rediss:// node has the host {node}"));
                }
                Some((node, name)) => tls = tls.server_name_for(node, name),
            }
        }
        if let Some(name) = all {
            tls = tls.server_name(name);
        }
        tls.build().map(Some).map_err(|error| error.to_string())
    }
}

/// Whether a node is meant by its host, or its host and port.
fn is_meant(text: &str, address: &Address) -> bool {
    let Endpoint::Tcp { host, port } = address.endpoint() else { return false };
    let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let names = [host.clone(), format!("{bracketed}:{port}"), bracketed];
    address.is_tls() && names.iter().any(|name| name.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(sni: &[&str], nodes: &[&str]) -> Option<String> {
        let nodes: Vec<Address> = nodes.iter().map(|node| Address::parse(node).unwrap()).collect();
        let sni = sni.iter().map(|&sni| sni.to_owned()).collect();
        TlsOptions { sni, ..TlsOptions::default() }.for_nodes(&nodes).err()
    }

    #[test]
    fn names_of_nodes_are_for_nodes_that_there_are() {
        let nodes =
            ["rediss://10.0.0.1", "rediss://[::1]:7001", "rediss://redis.example.com", "redis://10.0.0.4"];
        for meant in ["10.0.0.1", "10.0.0.1:6379", "::1", "[::1]", "[::1]:7001", "REDIS.example.com"] {
            let sni = format!("{meant}=redis-1.example.com");
            assert_eq!(refusal(&[&sni, "others.example.com"], &nodes), None, "{meant}");
        }
        for stray in ["10.0.0.4", "10.0.0.2", "10.0.0.1:6380", "rediss://10.0.0.1"] {
            let error = refusal(&[&format!("{stray}=redis-1.example.com")], &nodes).unwrap();
            assert!(error.contains(stray), "{error}");
        }
        assert!(refusal(&["one.example.com", "two.example.com"], &nodes).unwrap().contains("HOST=NAME"));
        let error = refusal(&["10.0.0.1=a", "10.0.0.1=b"], &nodes).unwrap();
        assert!(error.contains("described twice"), "{error}");
        let error = refusal(&["10.0.0.1="], &nodes).unwrap();
        assert!(error.contains("no server name"), "{error}");
        assert!(refusal(&["10.0.0.4=a"], &nodes[3..]).unwrap().contains("no node wants it"));
    }
}
