//! What stands between an agent and its model.
//!
//! So far it knows what models cost; forwarding, metering and the scripted
//! model follow with the attempt process. It knows nothing of waves or git.

pub mod prices;
