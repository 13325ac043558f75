//! Whose certificates are believed.
//!
//! The authorities that come with the program, and those in a file that the
//! configuration names. The environment has no say, as with proxies.

use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::{ClientConfig, RootCertStore};

/// The authorities that may vouch for a provider.
#[derive(Clone, Debug)]
pub struct Trust(RootCertStore);

impl Default for Trust {
    fn default() -> Self {
        Trust(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect())
    }
}

impl Trust {
    /// The usual ones and those in this file.
    pub fn also(file: &Path) -> Result<Trust, BadCertificates> {
        let path = || file.to_owned();
        let unread = |source| BadCertificates::Read { path: path(), source };
        let Trust(mut roots) = Trust::default();
        let usual = roots.len();
        for certificate in CertificateDer::pem_file_iter(file).map_err(unread)? {
            let bad = |source| BadCertificates::Bad { path: path(), source };
            roots.add(certificate.map_err(unread)?).map_err(bad)?;
        }
        if roots.len() == usual {
            return Err(BadCertificates::None { path: path() });
        }
        Ok(Trust(roots))
    }

    pub(super) fn into_client(self) -> ClientConfig {
        ClientConfig::builder().with_root_certificates(self.0).with_no_client_auth()
    }
}

/// A file of certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadCertificates {
    #[error("`{}` cannot be read as certificates (PEM): {source}", path.display())]
    Read { path: PathBuf, source: pem::Error },
    #[error("`{}` has no certificates (PEM)", path.display())]
    None { path: PathBuf },
    #[error("`{}` has a certificate that cannot be used: {source}", path.display())]
    Bad { path: PathBuf, source: rustls::Error },
}
