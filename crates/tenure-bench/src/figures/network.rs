//! Hooks on every point of a turn whose model is on the network, as near as a network can be.

use super::Measured;
use crate::fakes::{Everywhere, quick, started, turn, with_hooks};
use crate::http::{Client, plain, serve};
use crate::measure::{Bench, timed};
use crate::report::Figure;

/// Turns of a sample; each asks the model twice and a tool once, so that all six points are met. A
/// sample has a thread, a server and an agent of its own, so there are enough turns that what is
/// measured is turns, and not the allocator of a new thread.
const TURNS: usize = 50;

pub(crate) fn measure(bench: &Bench) -> Measured {
    let sample = |hooks: usize| {
        bench.on_thread(async {
            let (address, server) = serve(plain).await.expect("loopback is there");
            let model = Client::connect(address).await.expect("the server listens");
            let agent = started(with_hooks(quick(model), hooks, || Everywhere)).await;
            let took = timed(TURNS, async || turn(&agent).await).await;
            drop(agent);
            server.stop().await;
            took
        })
    };
    let [none, one, five] =
        bench.close_race([&mut || sample(0), &mut || sample(1), &mut || sample(5)]);
    let none = ("no_hooks_ns", none);
    Ok(vec![
        Figure::percent("http_one_hook_pct", 5.0, ("one_hook_ns", one), none).strictly(),
        Figure::percent("http_five_hooks_pct", 10.0, ("five_hooks_ns", five), none).strictly(),
    ])
}
