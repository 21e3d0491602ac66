//! Calls of the system that are refused, by seccomp.

use crate::confinement::Network;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// Refused whatever they are asked for: looking into other processes, changing mounts, the kernel and the clock,
/// keys, and files that are opened past their path.
const REFUSED: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
];

/// Refused as if the kernel did not know them, so that programs do without: what a filter cannot look into.
const UNKNOWN: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// The flags of `clone` that make a namespace.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Puts the filters before this process, for good. Returns `false` if there are none for this processor or kernel.
pub(crate) fn refuse(network: Network) -> Result<bool, String> {
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else { return Ok(false) };
    let failed = |error: seccompiler::Error| format!("seccomp: {error}");
    if apply_filter(&unknown(arch)?).is_err() {
        return Ok(false);
    }
    apply_filter(&refused(arch, network)?).map_err(failed)?;
    Ok(true)
}

fn unknown(arch: TargetArch) -> Result<BpfProgram, String> {
    let rules = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect();
    program(rules, libc::ENOSYS, arch)
}

fn refused(arch: TargetArch, network: Network) -> Result<BpfProgram, String> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let mut spaces = Vec::new();
    for bit in (0..31).map(|bit| 1_i32 << bit).filter(|bit| NAMESPACES & bit != 0) {
        let bit = u64::from(bit.unsigned_abs());
        spaces.push(rule(0, SeccompCmpOp::MaskedEq(bit), bit)?);
    }
    rules.insert(libc::SYS_clone, spaces);
    // Sockets of other kinds than these reach into the kernel.
    let mut families = vec![libc::AF_UNIX];
    if network != Network::None {
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    let others = families.iter().map(|family| {
        SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            u64::from(family.unsigned_abs()),
        )
    });
    let others: Vec<_> = others.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let others = SeccompRule::new(others).map_err(|error| error.to_string())?;
    rules.insert(libc::SYS_socket, vec![others]);
    program(rules, libc::EPERM, arch)
}

fn rule(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, String> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, value);
    let condition = condition.map_err(|error| error.to_string())?;
    SeccompRule::new(vec![condition]).map_err(|error| error.to_string())
}

fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    error: i32,
    arch: TargetArch,
) -> Result<BpfProgram, String> {
    let answer = SeccompAction::Errno(error.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, arch);
    let filter = filter.map_err(|error| error.to_string())?;
    let program: BpfProgram =
        filter.try_into().map_err(|error: seccompiler::BackendError| error.to_string())?;
    Ok(without_second_numbers(program))
}

/// Puts a refusal of the numbers before it that calls have a second time on x86: a filter of the first ones would
/// let them pass.
fn without_second_numbers(program: BpfProgram) -> BpfProgram {
    if !cfg!(target_arch = "x86_64") {
        return program;
    }
    const SECOND: u32 = 0x4000_0000;
    let load = seccompiler::sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    let test = seccompiler::sock_filter { code: 0x35, jt: 0, jf: 1, k: SECOND };
    let answer = 0x0005_0000 | libc::ENOSYS.unsigned_abs();
    let refuse = seccompiler::sock_filter { code: 0x06, jt: 0, jf: 0, k: answer };
    [load, test, refuse].into_iter().chain(program).collect()
}
