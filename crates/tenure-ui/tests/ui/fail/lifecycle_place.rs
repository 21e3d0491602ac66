use tenure::hook::AgentLifecycle;
use tenure::lifecycle;

#[lifecycle]
struct Audit;

#[lifecycle]
impl Audit {
    fn log(&self) {}
}

#[lifecycle]
impl Default for Audit {
    fn default() -> Self {
        Audit
    }
}

#[lifecycle]
impl AgentLifecycle for Audit {}

fn main() {
    Audit.log();
}
