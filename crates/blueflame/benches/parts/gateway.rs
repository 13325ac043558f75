//! The gateway of an attempt without the attempt: for programs that are to reach their
//! model in the same way, so that only what is measured differs.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::Token;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::upstream::{Timeouts, Trust, Upstream, Web};

pub struct Beside {
    pub socket: PathBuf,
    pub token: String,
}

/// Starts one before this model, in a thread of its own, for as long as the program
/// runs.
pub fn before(model: &str, root: &Path) -> Beside {
    let socket = root.join("gateway");
    let token = Token::generate().unwrap();
    let beside = Beside { socket: socket.clone(), token: token.reveal().to_owned() };
    let web = Web::new(model, None, Trust::default(), Timeouts::default().connect).unwrap();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let settings = Settings::new(Upstream::Web(web));
            let listener = Listener::unix(&socket).unwrap();
            let (_gateway, mut facts) =
                Gateway::start(listener, token, Allowance::unlimited(), settings);
            tell.send(()).unwrap();
            while facts.recv().await.is_some() {}
        });
    });
    told.recv().unwrap();
    beside
}
