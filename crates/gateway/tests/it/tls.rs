//! A provider over HTTPS, with a certificate from an authority of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::facts::Fact;
use blueflame_gateway::gateway::Settings;
use blueflame_gateway::upstream::{BadCertificates, Timeouts, Trust, Upstream, Web};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::wire::{STREAM, message, serve, status};

/// A provider for this host name on a loopback port, and the authority that
/// vouches for it.
async fn provider(directory: &Path, host: &str) -> (String, PathBuf) {
    let mut params = rcgen::CertificateParams::new([]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let authority = params.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(params, authority_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new([host.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let file = directory.join("authority.pem");
    std::fs::write(&file, authority.pem()).unwrap();

    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://127.0.0.1:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let answer = format!("{STREAM}{}", message(30, 4, "safe"));
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    (address, file)
}

async fn ask(address: &str, trust: Trust) -> (String, Vec<Fact>, u64) {
    let web = Web::new(address, None, trust, Timeouts::default().connect).unwrap();
    let mut served = serve(Settings::new(Upstream::Web(web)), Allowance::unlimited()).await;
    let answer = served.ask_messages().await;
    let told = served.told();
    (answer, told, served.gateway.close().await.usage.total())
}

#[tokio::test]
async fn a_provider_that_a_trusted_authority_vouches_for_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let (address, authority) = provider(directory.path(), "127.0.0.1").await;
    let (answer, _, tokens) = ask(&address, Trust::also(&authority).unwrap()).await;
    assert_eq!(status(&answer), 200, "{answer}");
    assert!(answer.contains("safe"), "{answer}");
    assert_eq!(tokens, 34);
}

#[tokio::test]
async fn one_that_nobody_vouches_for_is_told_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (address, authority) = provider(directory.path(), "127.0.0.1").await;
    let elsewhere = tempfile::tempdir().unwrap();
    let (other, theirs) = provider(elsewhere.path(), "other.example").await;
    // Unknown authority; known authority, and another host's certificate.
    for (address, trust) in [
        (&address, Trust::default()),
        (&other, Trust::also(&authority).unwrap()),
        (&other, Trust::also(&theirs).unwrap()),
    ] {
        let (answer, told, tokens) = ask(address, trust).await;
        assert_eq!(status(&answer), 502, "{answer}");
        assert!(!answer.contains("safe"));
        assert!(matches!(&told[..], [Fact::UpstreamFailed { .. }]), "{told:?}");
        assert_eq!(tokens, 0);
    }
}

#[test]
fn a_file_without_certificates_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("none.pem");
    assert!(matches!(Trust::also(&file), Err(BadCertificates::Read { .. })));
    std::fs::write(&file, "nothing").unwrap();
    assert!(matches!(Trust::also(&file), Err(BadCertificates::None { .. })));
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(&file, broken).unwrap();
    assert!(matches!(Trust::also(&file), Err(BadCertificates::Bad { .. })));
}
