echo tried
python3 - <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for pid in [os.getppid()] + [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]:
    if libc.ptrace(16, pid, None, None) == 0:
        print("ATTACHED", flush=True)
        os.waitpid(pid, 0)
        libc.ptrace(17, pid, None, None)
        break
END
