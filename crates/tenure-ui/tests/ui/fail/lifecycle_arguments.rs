use tenure::hook::AgentLifecycle;
use tenure::lifecycle;

struct Audit;

#[lifecycle(only = "on_start", name = "audit")]
impl AgentLifecycle for Audit {}

fn main() {
    let _: &dyn AgentLifecycle = &Audit;
}
