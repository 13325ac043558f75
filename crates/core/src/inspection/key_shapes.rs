//! Keys and tokens, known by their shapes.

use std::sync::{LazyLock, OnceLock};

use regex::{Match, Regex, RegexSet};

use super::wording::entropy;
use super::{encoded, key_values};

/// How sure a shape is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// Nothing else looks like this.
    Sure,
    /// It may be an example: tests are full of them.
    Likely,
}

/// Something in a line that gives access to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key<'t> {
    pub name: &'static str,
    pub certainty: Certainty,
    pub text: &'t str,
}

struct Shape {
    name: &'static str,
    certainty: Certainty,
    pattern: &'static str,
    #[cfg(test)]
    example: &'static str,
}

macro_rules! shapes {
    ($($certainty:ident $name:literal $pattern:literal $example:expr,)*) => {
        const SHAPES: &[Shape] = &[$(Shape {
            name: $name,
            certainty: Certainty::$certainty,
            pattern: $pattern,
            #[cfg(test)]
            example: $example,
        },)*];
    };
}

// The examples are put together so that nobody takes this file for a leak.
shapes! {
    Sure "an AWS access key" r"\b(AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b" concat!("AKIA", "Z7Q2N4KD83HFMW5T"),
    Sure "an AWS secret key" r#"(?i)\baws.{0,20}secret.{0,20}["'\s:=>]+[A-Za-z0-9/+]{40}\b"# concat!("aws", "_secret_access_", "key = wJalrXU7nFEMI4K2MDENG9bPxRfiCYzq1LmN0pQs"),
    Sure "an Amazon Bedrock key" r"\bABSK[A-Za-z0-9+/]{100,}={0,2}" concat!("ABSK", "QmVkcm9ja0FQSUtleS0xMjM0NTY3ODkwYWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY3ODkwYWJjZGVmZ2hpamtsbW5vcHFyc3R1"),
    Sure "a GitHub token" r"\b(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})" concat!("ghp_", "0123456789abcdefghijklmnopqrstuvwxyz"),
    Sure "a GitLab token" r"\b(glpat|gldt|glft|glrt|glsoat|glimt|glagent|gloas|glptt|glffct|glcbt)-[A-Za-z0-9_.-]{20,}" concat!("glpat-", "0123456789abcdefghij"),
    Sure "a GitLab runner token" r"\bGR1348941[A-Za-z0-9_-]{20}\b" concat!("GR1348941", "0123456789abcdefghij"),
    Sure "a Bitbucket token" r"\bATBB[A-Za-z0-9]{28}[A-F0-9]{4}\b" concat!("ATBB", "7xQ2mK9vL4pR8sT1wY6zB3nC5dE0", "1A2F"),
    Sure "an Atlassian token" r"\bATATT3[A-Za-z0-9_=-]{60,}" concat!("ATATT3", "xFfGF0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0u1v2w3x4y5z6A7B8C9"),
    Sure "a Slack token" r"\b(xox[abeoprs]-[0-9A-Za-z-]{20,}|xapp-[0-9]-[A-Z0-9]+-[0-9]+-[0-9a-f]{16,}|xoxe\.xox[bp]-[0-9]-[A-Z0-9]{100,})" concat!("xoxb-", "012345678901-abcdefghij"),
    Sure "a Slack webhook" r"hooks\.slack\.com/(services|workflows|triggers)/T[0-9A-Z]{6,}/[AB]?[0-9A-Z]{6,}/[0-9A-Za-z]{16,}" concat!("https://hooks.slack.com", "/services/T0123456/B0123456/0123456789abcdef"),
    Sure "a Discord webhook" r"discord(app)?\.com/api/webhooks/[0-9]{15,}/[A-Za-z0-9_-]{60,}" concat!("https://discord.com", "/api/webhooks/123456789012345678/a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D0e1F2g3H4"),
    Sure "a Discord bot token" r"\b[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}\b" concat!("MTk4NjIyNDgzNDcxOTI1MjQ4.", "Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"),
    Sure "a Teams webhook" r"\.webhook\.office\.com/webhookb2/[a-z0-9-]{36}@[a-z0-9-]{36}/IncomingWebhook/[a-z0-9]{32}" concat!("https://acme.webhook.office.com", "/webhookb2/01234567-89ab-cdef-0123-456789abcdef@01234567-89ab-cdef-0123-456789abcdef/IncomingWebhook/0123456789abcdef0123456789abcdef"),
    Sure "a Telegram bot token" r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b" concat!("123456789:", "AAF1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"),
    Sure "an Anthropic key" r"\bsk-ant-[A-Za-z0-9_-]{20,}" concat!("sk-ant-", "api03-0123456789abcdef"),
    Sure "an OpenAI key" r"\bsk-((proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}\b|[A-Za-z0-9]{48}\b)" concat!("sk-proj-", "0123456789abcdefghij"),
    Sure "an OpenRouter key" r"\bsk-or-v1-[0-9a-f]{64}\b" concat!("sk-or-v1-", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
    Sure "a Groq key" r"\bgsk_[A-Za-z0-9]{50,}\b" concat!("gsk_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6"),
    Sure "an xAI key" r"\bxai-[A-Za-z0-9]{70,}\b" concat!("xai-", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D0e1F2g3H4i5J6k7L8"),
    Sure "a Perplexity key" r"\bpplx-[A-Za-z0-9]{40,}\b" concat!("pplx-", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4"),
    Sure "a Replicate token" r"\br8_[A-Za-z0-9]{37}\b" concat!("r8_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s"),
    Sure "a Stripe key" r"\b([rs]k_(live|prod)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{32,})" concat!("sk_live_", "0123456789abcdef"),
    Likely "a Stripe test key" r"\b[rs]k_test_[A-Za-z0-9]{24,}" concat!("sk_test_", "0123456789abcdefABCDEFGH"),
    Sure "a Square token" r"\b(sq0(atp|csp)-[A-Za-z0-9_-]{22,}|EAAA[A-Za-z0-9_-]{60})\b" concat!("sq0atp-", "0123456789abcdefghijkl"),
    Sure "a PayPal token" r"\baccess_token\$production\$[0-9a-z]{16}\$[0-9a-f]{32}\b" concat!("access_token$production$", "0123456789abcdef$0123456789abcdef0123456789abcdef"),
    Sure "a Google key" r"\b(AIza[0-9A-Za-z_-]{35}|GOCSPX-[0-9A-Za-z_-]{28})" concat!("AIza", "0123456789abcdefghijklmnopqrstuvwxy"),
    Sure "a Google OAuth token" r"\bya29\.[0-9A-Za-z_-]{40,}" concat!("ya29.", "a0AfB2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1"),
    Sure "an Azure client secret" r#"(^|[\\'"`\s>=:(,)])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}($|[\\'"`\s<),;])"# concat!("abc8", "Q~a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7"),
    Sure "an Azure storage key" r"\bAccountKey=[A-Za-z0-9+/]{86}==" concat!("AccountKey=", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D0e1F2g3H4i5J6k7L8m9N0o1P2q3=="),
    Sure "an npm token" r"\bnpm_[A-Za-z0-9]{36}\b" concat!("npm_", "0123456789abcdefghijklmnopqrstuvwxyz"),
    Sure "a PyPI token" r"\bpypi-AgE[A-Za-z0-9_-]{60,}" concat!("pypi-", "AgEIcHlwaS5vcmc01234567890123456789012345678901234567890123456789012345678"),
    Sure "a crates.io token" r"\bcio[A-Za-z0-9]{32}\b" concat!("cio", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"),
    Sure "a RubyGems key" r"\brubygems_[0-9a-f]{48}\b" concat!("rubygems_", "0123456789abcdef0123456789abcdef0123456789abcdef"),
    Sure "a NuGet key" r"\boy2[a-z0-9]{43}\b" concat!("oy2", "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0u1v"),
    Sure "a Docker token" r"\bdckr_(pat|oat)_[A-Za-z0-9_-]{20,}" concat!("dckr_pat_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N"),
    Sure "a Hugging Face token" r"\b(hf|api_org)_[A-Za-z0-9]{34,}\b" concat!("hf_", "0123456789abcdefghijklmnopqrstuvwx"),
    Sure "a SendGrid key" r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}\b" concat!("SG.", "0123456789abcdefghijkl.0123456789abcdefghijklmnopqrstuvwxyz0123456"),
    Sure "a Mailgun key" r"\bkey-[0-9a-f]{32}\b" concat!("key-", "0123456789abcdef0123456789abcdef"),
    Sure "a Mailchimp key" r"\b[0-9a-f]{32}-us[0-9]{1,2}\b" concat!("0123456789abcdef", "0123456789abcdef-us12"),
    Sure "a Brevo key" r"\bxkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}\b" concat!("xkeysib-", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef-a1B2c3D4e5F6g7H8"),
    Sure "a Twilio key" r"\bSK[0-9a-f]{32}\b" concat!("SK", "0123456789abcdef0123456789abcdef"),
    Sure "a DigitalOcean token" r"\bdo[opr]_v1_[0-9a-f]{64}\b" concat!("dop_v1_", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
    Sure "a Cloudflare key" r"\bv1\.0-[0-9a-f]{24}-[0-9a-f]{146}\b" concat!("v1.0-", "0123456789abcdef01234567-", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef01"),
    Sure "a Heroku key" r"\bHRKU-AA[0-9A-Za-z_-]{58}" concat!("HRKU-AA", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9"),
    Sure "a Fly.io token" r"\b(fo1_[A-Za-z0-9_-]{43}|fm[12][ar]?_[A-Za-z0-9+/]{100,})" concat!("fo1_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V"),
    Sure "a Vercel or Netlify token" r"\bnfp_[A-Za-z0-9]{36}\b" concat!("nfp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"),
    Sure "a Supabase token" r"\bsbp_[0-9a-f]{40}\b" concat!("sbp_", "0123456789abcdef0123456789abcdef01234567"),
    Sure "a PlanetScale token" r"\bpscale_(tkn|oauth|pw)_[A-Za-z0-9_=.-]{32,}" concat!("pscale_tkn_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"),
    Sure "a Databricks token" r"\bdapi[0-9a-f]{32}(-[0-9])?\b" concat!("dapi", "0123456789abcdef0123456789abcdef"),
    Sure "a Vault token" r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}" concat!("hvs.", "CAESIJ1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R9s0T"),
    Sure "a Terraform token" r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}" concat!("a1B2c3D4e5F6g7.", "atlasv1.a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D0"),
    Sure "a Pulumi token" r"\bpul-[0-9a-f]{40}\b" concat!("pul-", "0123456789abcdef0123456789abcdef01234567"),
    Sure "a Doppler token" r"\bdp\.(pt|st|ct|sa|scim|audit)\.[A-Za-z0-9.]{40,}" concat!("dp.pt.", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V"),
    Sure "a 1Password token" r"\bops_eyJ[A-Za-z0-9+/]{200,}={0,3}" concat!("ops_eyJ", "zaWduSW5BZGRyZXNzIjoibXkuMXBhc3N3b3JkLmNvbSIsInVzZXJBdXRoIjp7Im1ldGhvZCI6IlNSUGctNDA5NiIsImFsZyI6IlBCRVMyZy1IUzI1NiIsIml0ZXJhdGlvbnMiOjY1MDAwMCwic2FsdCI6ImExQjJjM0Q0ZTVGNmc3SDhpOUowazFMMm0zTjRvNVA2cTdSOHM5VDB1MVYydzNYNHk1WjYifX0"),
    Sure "an age key" r"\bAGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}\b" concat!("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE"),
    Sure "a Grafana token" r"\b(glc_[A-Za-z0-9+/]{32,}={0,3}|glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}|eyJrIjoi[A-Za-z0-9]{70,})" concat!("glsa_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6_0123abcd"),
    Sure "a Sentry token" r"\b(sntryu_[0-9a-f]{64}|sntrys_eyJ[A-Za-z0-9+/=_]{80,})" concat!("sntryu_", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
    Sure "a New Relic key" r"\b(NRAK-[A-Z0-9]{27}|NRII-[A-Za-z0-9-]{32}|NRJS-[0-9a-f]{19})\b" concat!("NRAK-", "A1B2C3D4E5F6G7H8I9J0K1L2M3N"),
    Sure "a Dynatrace token" r"\bdt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}\b" concat!("dt0c01.", "A1B2C3D4E5F6G7H8I9J0K1L2.A1B2C3D4E5F6G7H8I9J0K1L2M3N4O5P6Q7R8S9T0U1V2W3X4Y5Z6A7B8C9D0E1F2"),
    Sure "a Linear key" r"\blin_(api|oauth)_[A-Za-z0-9]{32,}\b" concat!("lin_api_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"),
    Sure "a Notion token" r"\b(ntn_[0-9]{11}[A-Za-z0-9]{35}|secret_[A-Za-z0-9]{43})\b" concat!("ntn_", "12345678901a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"),
    Sure "an Airtable token" r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b" concat!("pata1B2c3D4e5F6g7.", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
    Sure "a Figma token" r"\bfig[dour]_[A-Za-z0-9_-]{40,}" concat!("figd_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"),
    Sure "a Postman key" r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b" concat!("PMAK-", "0123456789abcdef01234567-0123456789abcdef0123456789abcdef01"),
    Sure "a Shopify token" r"\bshp(at|ca|pa|ss)_[0-9A-Fa-f]{32}\b" concat!("shpat_", "0123456789abcdef0123456789abcdef"),
    Sure "an Adobe secret" r"\bp8e-[A-Za-z0-9]{32}\b" concat!("p8e-", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"),
    Sure "an Alibaba key" r"\bLTAI[A-Za-z0-9]{20}\b" concat!("LTAI", "5tA1B2c3D4e5F6g7H8i9"),
    Sure "a JFrog token" r"\b(AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59})\b" concat!("AKCp", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D0e1F2g3H4i"),
    Sure "a SonarQube token" r"\bsq[pua]_[0-9a-f]{40}\b" concat!("sqp_", "0123456789abcdef0123456789abcdef01234567"),
    Sure "a Sourcegraph token" r"\bsgp_([0-9a-f]{16}_|local_)?[0-9a-f]{40}\b" concat!("sgp_", "0123456789abcdef0123456789abcdef01234567"),
    Sure "a Tailscale key" r"\btskey-(auth|api|client|webhook|scim)-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}" concat!("tskey-auth-", "kA1b2C3d4CNTRL-a1B2c3D4e5F6g7H8i9J0k1L2"),
    Sure "an Okta token" r#"(?i)\bokta.{0,30}["'\s:=]+00[A-Za-z0-9_=-]{40}\b"# concat!("okta", "_token = \"00a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0\""),
    Sure "a Facebook token" r"\bEAA[MC][A-Za-z0-9]{100,}\b" concat!("EAAC", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a7B8c9D0e1F2g3H4i5J6k7L8m9N0o1P2q3R4s5T6u7V8w9X0y1Z2"),
    Sure "an OpenShift token" r"\bsha256~[A-Za-z0-9_-]{43}\b" concat!("sha256~", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V"),
    Sure "a Supabase secret" r"\bsb_secret_[A-Za-z0-9_-]{30,}" concat!("sb_secret_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P"),
    Sure "a Render key" r"\brnd_[A-Za-z0-9]{28,}\b" concat!("rnd_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"),
    Sure "a Contentful token" r"\bCFPAT-[A-Za-z0-9_-]{43}" concat!("CFPAT-", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V"),
    Sure "a Dropbox token" r"\bsl\.(u\.)?[A-Za-z0-9_-]{130,}" concat!("sl.", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5"),
    Sure "a Buildkite token" r"\bbk(ua|aj|ct)_[0-9a-f]{40}\b" concat!("bkua_", "0123456789abcdef0123456789abcdef01234567"),
    Sure "a HubSpot token" r"\bpat-(na|eu|ap)[0-9]-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b" concat!("pat-na1-", "01234567-89ab-cdef-0123-456789abcdef"),
    Sure "a LaunchDarkly key" r"\b(sdk|api)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b" concat!("sdk-", "01234567-89ab-cdef-0123-456789abcdef"),
    Sure "a Mapbox secret" r"\bsk\.eyJ1[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{20,}" concat!("sk.eyJ1", "IjoiYWNtZSIsImEiOiJjazFhMmIzYzRkNWU2ZjdnOGg5aTBqIn0.a1B2c3D4e5F6g7H8i9J0k1"),
    Sure "a Google refresh token" r"(^|[^A-Za-z0-9/:])1//0[A-Za-z0-9_-]{40,}" concat!("1//0", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3"),
    Sure "a Mailgun key of the newer kind" r"\b[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}\b" concat!("0123456789abcdef0123456789abcdef-", "01234567-89abcdef"),
    Sure "an Azure shared access signature" r"[?&;]sig=([A-Za-z0-9+/]|%2[BbFf]){43,60}(=|%3[Dd])" concat!("https://acme.blob.core.windows.net/c?sp=r&", "sig=a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V%3D"),
    Sure "an npm login" r"(?i):_(authToken|password)\s*=\s*[\x22']?[A-Za-z0-9+/=_.-]{16,}" concat!("//npm.acme.io/:_auth", "Token=01234567-89ab-cdef-0123-456789abcdef"),
    Sure "a key of a service that draws UUIDs" r#"(?i)\b(heroku_?api_?key|snyk_?token|codecov_?token)["']?\s*[:=]\s*["']?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"# concat!("HEROKU_", "API_KEY=01234567-89ab-cdef-0123-456789abcdef"),
    Sure "a Laravel key" r"\bAPP_KEY\s*=\s*[\x22']?base64:[A-Za-z0-9+/]{43}=" concat!("APP_", "KEY=base64:a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V="),
    Sure "a WireGuard key" r"\b(PrivateKey|PresharedKey)\s*=\s*[A-Za-z0-9+/]{43}=" concat!("Private", "Key = a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V="),
    Sure "a private key in JSON" r#"\\?"d\\?"\s*:\s*\\?"[A-Za-z0-9_-]{42,}\\?""# concat!("{\"kty\":\"EC\",\"", "d\":\"a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V\"}"),
    Sure "a private key without its head" r"\b(MII[A-Za-z0-9+/]{3}IBADANBgkqhkiG9w0BAQEFAASC|MII[A-Za-z0-9+/]{3}IBAAKC[A-Za-z0-9+/]{40}|MHcCAQEEI[A-Za-z0-9+/]{40}|MC4CAQAwBQYDK2VwBCIEI[A-Za-z0-9+/]{30}|MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0w)" concat!("MHcCAQEEI", "B1qqtMW0xolKkeooNcmAWaLhhh4qHTyGv1b2C3d4E5f"),
    Likely "a password hash" r"(^|[:\x22'\s=])\$(1|5|6|y|apr1)\$[A-Za-z0-9./=,$]{30,}" concat!("admin:$apr1$", "9t7ukOUc$pG9MzUgBoE3PbvJpYFbf8t"),
    Likely "a JSON web token" r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}" concat!("eyJhbGciOiJIUzI1NiJ9.", "eyJzdWIiOiIxMjM0NSJ9.0123456789ab"),
    Likely "an authorization header" r#"(?i)\bauthorization["']?\s*[:=,]\s*["']?(bearer|basic|token)\s+[A-Za-z0-9+/_.=-]{20,}"# concat!("Authorization: Bearer ", "some-token-of-somebody-there"),
}

/// Words by which documentation marks a key that is none.
const EXAMPLES: &[&str] = &["EXAMPLE", "example_key", "XXXXXXXX", "xxxxxxxx", "********", "......"];

/// What is as regular as this was made up.
const LEAST_ENTROPY: f64 = 2.8;

struct Compiled {
    any: RegexSet,
    patterns: Vec<String>,
    /// Made when its shape was found: most never are, and all of them take as much
    /// memory as everything else that a session keeps.
    each: Vec<OnceLock<Regex>>,
}

static COMPILED: LazyLock<Compiled> = LazyLock::new(|| {
    // Keys are plain ASCII, and so may the borders of words be: it is much
    // quicker. A key may be a part of a name.
    let patterns: Vec<String> =
        SHAPES.iter().map(|shape| shape.pattern.replace(r"\b", r"(?-u:\b|_)")).collect();
    Compiled {
        any: RegexSet::new(&patterns).expect("the patterns stand above and are tested"),
        each: vec![OnceLock::new(); patterns.len()],
        patterns,
    }
});

impl Compiled {
    fn one(&self, at: usize) -> &Regex {
        self.each[at].get_or_init(|| {
            Regex::new(&self.patterns[at]).expect("the patterns stand above and are tested")
        })
    }
}

/// The keys in a piece of a line, each kind once.
pub(super) fn in_line(line: &str) -> Vec<Key<'_>> {
    let mut keys = shaped(line);
    let sure = |keys: &[Key<'_>]| keys.iter().any(|key| key.certainty == Certainty::Sure);
    // What has a shape of its own needs no name.
    if !sure(&keys) {
        keys.extend(hidden(line));
    }
    if !sure(&keys) {
        match key_values::in_line(line) {
            Some(key) if key.certainty == Certainty::Sure => keys = vec![key],
            Some(key) if keys.is_empty() => keys.push(key),
            Some(_) | None => {}
        }
    }
    keys
}

/// Every shape has at least this many characters of keys in a row.
const SHORTEST_RUN: usize = 16;

/// A quick look before the long one: most lines have nothing in them that is long
/// enough for a key.
fn may_have_a_shape(line: &str) -> bool {
    let mut run = 0;
    line.bytes().any(|byte| {
        // Some letters that are not ASCII are taken for others where case does not count.
        let of_keys = byte.is_ascii_alphanumeric()
            || !byte.is_ascii()
            || matches!(byte, b'+' | b'/' | b'_' | b'.' | b',' | b'=' | b'~' | b'$' | b'%' | b'-');
        run = if of_keys { run + 1 } else { 0 };
        run == SHORTEST_RUN
    })
}

fn shaped(line: &str) -> Vec<Key<'_>> {
    if !may_have_a_shape(line) {
        return Vec::new();
    }
    let compiled = &*COMPILED;
    let genuine = |text: &&str| {
        !EXAMPLES.iter().any(|example| text.contains(example)) && entropy(text) >= LEAST_ENTROPY
    };
    let key = |at: usize| {
        let mut texts = compiled.one(at).find_iter(line).map(|found| found.as_str());
        let Shape { name, certainty, .. } = SHAPES[at];
        texts.find(genuine).map(|text| Key { name, certainty, text })
    };
    compiled.any.matches(line).into_iter().filter_map(key).collect()
}

/// The first key that stands in the line in base 64.
fn hidden(line: &str) -> Option<Key<'_>> {
    encoded::texts(line).find_map(|(text, decoded)| {
        let private = key_head(&decoded).map(|_| Key {
            name: "a private key",
            certainty: Certainty::Sure,
            text,
        });
        let sure = |key: &Key<'_>| key.certainty == Certainty::Sure;
        private.or_else(|| shaped(&decoded).into_iter().find(sure).map(|key| Key { text, ..key }))
    })
}

static KEY_HEAD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY( BLOCK)?-----|(?m:^)PuTTY-User-Key-File-\d:")
        .expect("the pattern is tested")
});

/// The line that a private key begins with.
pub(super) fn key_head(text: &str) -> Option<Match<'_>> {
    KEY_HEAD.find(text)
}

#[cfg(test)]
mod tests {
    use proptest::strategy::{Strategy as _, ValueTree as _};
    use proptest::string::string_regex;
    use proptest::test_runner::TestRunner;

    use super::*;

    fn names(line: &str) -> Vec<&'static str> {
        in_line(line).iter().map(|key| key.name).collect()
    }

    #[test]
    fn every_shape_finds_its_example_and_nothing_else_does() {
        for shape in SHAPES {
            for line in [shape.example.to_owned(), format!("key = \"{}\";", shape.example)] {
                assert_eq!(names(&line), [shape.name], "{line}");
            }
        }
    }

    #[test]
    fn the_quick_look_passes_nothing_over() {
        let mut runner = TestRunner::deterministic();
        for shape in SHAPES {
            // What only says where a key may stand is not a part of it.
            let pattern = shape.pattern.replace(r"\b", "").replace("(^|", "(").replace("($|", "(");
            let texts = string_regex(&pattern).unwrap();
            for _ in 0..300 {
                let text = texts.new_tree(&mut runner).unwrap().current();
                assert!(may_have_a_shape(&text), "{}: {text}", shape.name);
            }
        }
        assert!(!may_have_a_shape("    let found = keys.iter().any(|key| key.is_sure());"));
    }

    #[test]
    fn what_is_in_base_64_is_looked_at_as_well() {
        for (line, expected) in [
            (concat!("let a = decode(\"QUtJQVo3U", "TJONEtEODNIRk1XNVQ=\");"), "an AWS access key"),
            // AWS_ACCESS_KEY_ID=, and a key.
            (
                concat!("a: QVdTX0FDQ0VTU19LRVlfSUQ9QUtJ", "QVo3UTJONEtEODNIRk1XNVQK"),
                "an AWS access key",
            ),
            (
                concat!(
                    "client-key-data: LS0tLS1CRUdJTiBS",
                    "U0EgUFJJVkFURSBLRVktLS0tLQpNSUlFb3dJQkFBS0NBUUVB"
                ),
                "a private key",
            ),
        ] {
            assert_eq!(names(line), [expected], "{line}");
        }
        let certificate = "client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM=";
        assert_eq!(names(certificate), [""; 0]);
    }

    #[test]
    fn ordinary_lines_hold_no_key() {
        for line in [
            "let key = std::env::var(\"API_KEY\")?;",
            "class=\"sk-circle sk-child-with-a-very-long-name-for-a-class\"",
            "aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
            "ghp_000000000000000000000000000000000000",
            "https://user@example.com/path:with@signs",
            "http://localhost:8080/@scope/package",
            "commit 3f2a0c5d7e9b1a4c6d8e0f2a4b6c8d0e2f4a6b8c",
            "sha512-7PIcKzTq8L1l9c8r5dY0p0Zr1c5l0m3o==",
        ] {
            assert!(names(line).is_empty(), "{line}: {:?}", names(line));
        }
    }
}
