"""What lifecycle hooks are given."""

from tenure_worker import Context as AgentLifecycleContext

__all__ = ["AgentLifecycleContext"]
